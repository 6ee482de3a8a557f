// SPDX-License-Identifier: BSD-2-Clause
// Alltoallv of which short blocks go in steps, as in Bruck's all-to-all, and long ones directly, as
// in the direct alltoallv; both at once. docs/decisions/0083
#pragma once

#include "firmware/collective/alltoallv/bruck_blocks.h"
#include "firmware/operation/algorithm.h"

namespace peal::bruckv {

extern const AlgorithmFunctions kFunctions;

}  // namespace peal::bruckv
