// SPDX-License-Identifier: BSD-2-Clause
// All-to-all by Bruck's index algorithm (Bruck, Ho, Kipnis, Upfal, Weathersby, IEEE TPDS 8(11)),
// for small blocks: ⌈log2 N⌉ exchanges, each of half of all blocks, stored and forwarded in the
// card's staging buffer where the image fits, else in the channel. Each piece of a long block is an
// exchange of its own, W of them under way. docs/decisions/0014
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::bruck {

extern const AlgorithmFunctions kFunctions;

}  // namespace peal::bruck
