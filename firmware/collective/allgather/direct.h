// SPDX-License-Identifier: BSD-2-Clause
// Allgather, directly: every rank sends its block to everybody itself. See direct.h one above; for
// blocks that are long enough for a card's bus to matter more than what it sends.
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::direct_allgather {

extern const AlgorithmFunctions kFunctions;

}  // namespace peal::direct_allgather
