// SPDX-License-Identifier: BSD-2-Clause
// Direct allgatherv: as the direct allgather, with blocks of the lengths and at the places that a
// table of parts says (operation/parts.h). docs/decisions/0020
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::direct_allgatherv {

extern const AlgorithmFunctions kFunctions;

}  // namespace peal::direct_allgatherv
