// SPDX-License-Identifier: BSD-2-Clause
// Reuse of channels (allgather paper, section 4.2: synchronisation for reuse overlaps with later
// operations). K/2 operations are an epoch. When all of an epoch are locally complete, DMA
// included, the card says so up a tree; when all have, its root knows that everybody has passed the
// epoch, and its K/2 places serve the epoch after next, whose first packet says that to the others.
// So a rank is at most K operations ahead, at the price of N - 1 packets every K/2 operations, or
// twice as many where others than the root begin. docs/decisions/0004, 0079.
//
// Where operations synchronise that costs nothing. One in the second half of an epoch starts on a
// card that has finished the epoch before, and is complete where everybody has started it: so
// everybody has finished the epoch before. An epoch that had such a one sends no signals, but where
// somebody asks for them, or has sent his. docs/decisions/0043.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// First sequence number that may not start yet.
inline uint64_t recycling_limit(const Member& member) {
  return (member.recycled + 2) * kEpochOperations;
}

// Does an operation with this number prove that the epoch before is finished, if it synchronises?
inline bool is_proving_place(uint64_t sequence) {
  return sequence % kEpochOperations >= kEpochOperations / 2;
}
// Must one that synchronises wait with its start, because it would prove what is not so yet? (It
// may start, otherwise.)
inline bool recycling_must_wait(const Member& member, uint64_t sequence) {
  return is_proving_place(sequence) && sequence / kEpochOperations != member.recycled &&
         member.epoch_finished[member.recycled & 1] < kEpochOperations;
}

// The member is connected.
void recycling_connect(Member& member);
// The next command waits for the oldest epoch. Before anybody does, silence is no reason to ask: an
// epoch that ends late is no harm to those who are not that far.
void recycling_awaited(Card& card, Member& member);
// An operation is locally complete; `everybody` has started it, where that is known.
void recycling_finished(Card& card, Member& member, uint64_t sequence, bool everybody);
// A rank that has begun this epoch, two or more beyond the oldest open one, knows that all before
// the last are recycled. False if that cannot be: this card has not finished them.
bool recycling_prove(Card& card, Member& member, uint64_t begun);
// An operation has its record, and the others have not been told of the last epoch that is recycled
// (member.recycling_withheld): they are where others begin it.
void recycling_begun(Card& card, Member& member, const Operation& operation);

// Packets whose operation is RECYCLE; returns the counter they deserve.
peal_counter recycling_on_signal(Card& card, Member& member, const peal_wire_header& header);
peal_counter recycling_on_nack(Card& card, Member& member, const peal_wire_header& header,
                               const peal_nack& nack);
// A question about it was answered: ranks disagree about its tree.
void recycling_on_split(Card& card, Member& member, const peal_wire_header& header);

// Asks for the signal of the oldest epoch that is missing, if its inquiry lets it.
void recycling_ask(Card& card, Member& member);
// NACKs what is due; returns when to look again.
TimeNs recycling_chase(Card& card, Member& member);

}  // namespace peal
