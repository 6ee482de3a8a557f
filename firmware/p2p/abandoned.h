// SPDX-License-Identifier: BSD-2-Clause
// What comes of iterations of programs that have failed (firmware/queue/failed.h): the start that
// it was for is over, or will not run, and its memory may be the user's again. So it is taken, as
// what is well, and thrown away: who sends it fails by what it is told, not by this.
#pragma once

#include "firmware/card_types.h"

namespace peal::p2p {

bool is_of_failed(const Card& card, uint16_t member, uint16_t program, uint64_t iteration);
// `program`: its name plus one; 0: of none.
inline bool is_abandoned(const Card& card, const Connection& connection, uint16_t program,
                         uint64_t iteration) {
  return program != 0 && card.queues.failed_top != 0 &&
         is_of_failed(card, connection.member, program, iteration);
}
// The same of a put: it is written where the own start of that iteration has ended well, whoever's
// failed. Nobody is kept from that memory, and what is told behind the put says that it is there.
bool ended_well(const Card& card, uint16_t member, uint16_t program, uint64_t iteration);
inline bool is_put_abandoned(const Card& card, const Connection& connection, uint16_t program,
                             uint64_t iteration) {
  return is_abandoned(card, connection, program, iteration) &&
         !ended_well(card, connection.member, program, iteration);
}
// Other programs that this one of the member's tells, as slots have them.
void list_told(const Card& card, uint16_t member, uint16_t program,
               uint16_t (&told)[PEAL_SKIP_TOLD]);

// Is a put of these iterations of the program being written into memory?
bool is_landing(const Card& card, const Member& member, uint16_t program, uint64_t from,
                uint64_t to);
// A message of such an iteration, which came with its bytes or without: its sender is told that it
// is over. False: there is no record for that now.
[[nodiscard]] bool throw_away(Card& card, Connection& connection, uint32_t request, bool whole);
// Those that were announced to this member before. What cannot be answered now is, later.
void throw_away_announced(Card& card, Member& member);
// Messages of this queue's that nobody has matched yet, and that the other side does not know of.
void give_up_messages(Card& card, uint16_t queue);

}  // namespace peal::p2p
