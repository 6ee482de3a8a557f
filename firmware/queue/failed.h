// SPDX-License-Identifier: BSD-2-Clause
// Starts that fail are told to the group: which iterations of which program, of which rank, and
// why. Whoever hears it for the first time tells its 2⌈log2 N⌉ peers, and repeats it to each until
// that has answered that it knows; each ends its own start of these iterations, when it comes to
// them. So nobody waits for what will not come. What still arrives of such an iteration is thrown
// away (p2p/abandoned.h): it was for a start that is over. docs/decisions/0041
#pragma once

#include "firmware/queue/network.h"

namespace peal::queue {

// The start that runs has failed: its iterations, from the one that runs on, are noted and told,
// and what its messages wait for is given up. False (counted): there is no record now; ask again.
[[nodiscard]] bool tell_failure(const Scope& scope);
// Iterations that were told too much, and will never be told again, cannot be carried out. Where
// there is no record now the queue remembers it by itself.
void fail_iteration(Card& card, Queue& queue, uint64_t iteration, const Failure& why);

// A put of that iteration was refused when its task was over already: `late`, if its start was,
// too. False (counted): there is no record now; ask again.
[[nodiscard]] bool fail_posted(Card& card, p2p::MissingPut& refused);
// The same, of a put that another rank skips, whose start of that iteration has failed. If it was
// over there, and here, it is the next one that may be told of the put: then that one fails.
[[nodiscard]] bool fail_skipped(Card& card, const p2p::MissingPut& skipped);
// The same, of a put of this rank's to itself.
[[nodiscard]] bool fail_uncopied(Card& card, p2p::MissingPut& uncopied);
// Is this told by a program of which that iteration has failed? Then what it tells of was thrown
// away, or never sent: it does not count, and where it was to tell another program, that one's
// iteration of the same number fails by the same.
[[nodiscard]] bool is_told_in_vain(Card& card, Member& member, const p2p::Noticed& noticed);

// Of a program whose starts fail together: has every rank begun the start that has failed here?
// The queue is woken when all have.
[[nodiscard]] bool all_have_begun(const Scope& scope);
// Whom that is waited for next; PEAL_NO_RANK: nobody.
[[nodiscard]] Rank awaited_to_begin(Card& card, const Queue& queue);

// An iteration is about to begin. Has it failed elsewhere?
void heed(Card& card, Queue& queue);
inline void heed_failures(Card& card, Queue& queue) {
  if ((card.queues.failed_top | card.queues.unnoted) != 0) heed(card, queue);
}

// What a peer, by its entry, says; and its answer to what was told.
peal_counter on_failed(Card& card, Member& member, uint32_t entry, const peal_failed& body);
peal_counter on_known(Card& card, const Member& member, uint32_t entry, const peal_failed& body);
// Of a member that has left the group: nothing of its programs is left.
void answer_failed(Card& card, const Membership& self, uint32_t entry, const peal_failed& body);

// It is time to tell those again that have not answered.
void repeat_failures(Card& card);

}  // namespace peal::queue
