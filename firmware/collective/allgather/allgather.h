// SPDX-License-Identifier: BSD-2-Clause
// What all allgathers have in common, whatever the algorithm: every rank gives one block and gets
// all of them, in the order of ranks.
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::allgather {

// Keys and bounds of the own block and of the result. The own block may lie in the result already.
peal_status check(Card& card, const Member& member, const peal_submission& entry, Command* command);

}  // namespace peal::allgather
