// SPDX-License-Identifier: BSD-2-Clause
// Allgather by recursive doubling, Bruck's order for sizes that are no power of two: ⌈log2 N⌉
// exchanges of ever more blocks, combined in the card's staging buffer where they fit (allgather
// paper, section 4.1.2), else in the channel. Each piece of a long block is an exchange of its own,
// W of them under way.
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::doubling {

extern const AlgorithmFunctions kFunctions;

}  // namespace peal::doubling
