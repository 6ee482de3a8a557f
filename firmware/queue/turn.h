// SPDX-License-Identifier: BSD-2-Clause
// What queues do, at the end of each entry point of the card: each that has something to do carries
// out some of its descriptors, a quota at most, and then waits for the others to have had theirs.
// So between two turns of a queue no other has more than a quota of descriptors, and packets and
// other hosts' entries are served.
#pragma once

#include "firmware/card_types.h"

namespace peal::queue {

void take_turns(Card& card);
// Sees to it that there is another turn, where there is something to do already.
void expect_turn(Card& card);

}  // namespace peal::queue
