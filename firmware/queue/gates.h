// SPDX-License-Identifier: BSD-2-Clause
// What descriptors wait for: counters, each iteration's own. In session mode counter 0 moves the
// scheduling pointer on.
#pragma once

#include "firmware/queue/network.h"

namespace peal::queue {

// Rank `from` of the member's group, which may be the own one, tells a counter. It changes nothing
// but a counter of the card's where it is not its to tell, or comes too late. Too many steps, and
// an iteration too far ahead, end the start: whoever told would not tell it again.
void tell(Card& card, Member& member, Rank from, const Notice& notice);

inline uint32_t& count_of(Queue& queue, uint32_t counter) {
  return queue.counts[queue.origin.iteration % kStarts][counter];
}
inline bool is_session(const Queue& queue) { return queue.shape.mode == PEAL_PROGRAM_MODE_SESSION; }

// A counter that has not got so far: nothing else goes on before it has, but what is held.
inline void await_counter(Queue& queue, uint32_t counter, uint64_t count) {
  queue.awaits = queue.held_count == 0 ? Awaits::kCounter : Awaits::kCounterOrGate;
  queue.awaited = static_cast<uint16_t>(counter);
  queue.awaited_count = count;
}

// The next iteration's counters are there from now on; those of `passes` iterations begin anew.
void pass_iterations(Queue& queue, uint32_t passes);

}  // namespace peal::queue
