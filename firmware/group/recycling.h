// SPDX-License-Identifier: BSD-2-Clause
// Reuse of channels (allgather paper, section 4.2: synchronisation for reuse overlaps with later
// operations). K/2 operations are an epoch. When all of an epoch are locally complete, DMA
// included, the card enters the epoch's dissemination; when that is complete everybody has passed
// the epoch, and its K/2 places serve the epoch after next. So a rank is at most K operations
// ahead, at the price of N⌈log2 N⌉ packets every K/2 operations. docs/decisions/0004.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// First sequence number that may not start yet.
inline uint64_t recycling_limit(const Member& member) {
  return (member.recycled + 2) * kEpochOperations;
}

// The member is connected.
void recycling_connect(Member& member);
// The next command waits for the oldest epoch. Before anybody does, silence is no reason to ask: an
// epoch that ends late is no harm to those who are not that far.
void recycling_awaited(Card& card, Member& member);
// An operation is locally complete.
void recycling_finished(Card& card, Member& member, uint64_t sequence);
// A packet from two epochs ahead proves that the oldest open epoch is recycled. False if that
// cannot be: we have not entered it, or no packet is to be had to say so.
bool recycling_prove(Card& card, Member& member);

// Packets whose operation is RECYCLE; returns the counter they deserve.
peal_counter recycling_on_signal(Card& card, Member& member, const peal_wire_header& header);
peal_counter recycling_on_nack(Card& card, Member& member, const peal_wire_header& header,
                               const peal_nack& nack);

// Asks for the signal of the oldest epoch that is missing, if its inquiry lets it.
void recycling_ask(Card& card, Member& member);
// NACKs what is due; returns when to look again.
TimeNs recycling_chase(Card& card, Member& member);

}  // namespace peal
