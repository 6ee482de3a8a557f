// SPDX-License-Identifier: BSD-2-Clause
// Broadcast down a binomial tree rooted at any rank: the one-origin case of hopping packets. A
// packet goes on as it arrives, whether the host has posted or not. A piece is as much as an image
// of the channel holds, and 128 KiB at most, in packets of an MTU; the root is at most 2W
// pieces ahead of what all others have, of which credits tell it, up the same edges. What comes
// early waits in its packet, and what may be asked for later stays in its, as far as there is room.
// What the root reads is lent for all below. docs/decisions/0013, 0061, 0063, 0067
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::binomial {

extern const AlgorithmFunctions kFunctions;

}  // namespace peal::binomial
