// SPDX-License-Identifier: BSD-2-Clause
// All-to-all, directly: every block goes straight from its origin to its destination. For blocks
// that Bruck's way would carry too often.
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::direct_alltoall {

extern const AlgorithmFunctions kFunctions;

}  // namespace peal::direct_alltoall
