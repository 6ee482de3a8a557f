// SPDX-License-Identifier: BSD-2-Clause
// All-to-all, directly: every block goes straight from its origin to its destination, in pieces of
// at most one packet, W pieces under way, each to rank + 1, rank + 2, … in turn, so that not all
// send to one. For blocks that Bruck's way would carry too often. docs/decisions/0017
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::direct {

extern const AlgorithmFunctions kFunctions;

}  // namespace peal::direct
