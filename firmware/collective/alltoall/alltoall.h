// SPDX-License-Identifier: BSD-2-Clause
// What all all-to-alls have in common, whatever the algorithm: every rank gives a block for every
// rank, and gets one from every rank, both in the order of ranks.
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::alltoall {

// Keys and bounds of what is given and of the result, N blocks each.
// The one may lie where the other will.
peal_status check(Card& card, const Member& member, const peal_submission& entry, Command* command);

}  // namespace peal::alltoall
