// SPDX-License-Identifier: BSD-2-Clause
// Memory on the card in which what arrives for an operation gathers, to reach the host in few
// writes. The card has a few buffers, for the groups that are at work: a member has one as long as
// an operation of it gathers, and its operations share it by the 32nd. Who finds no room goes
// without. What an operation that is over has gathered may stay until somebody needs the room, or,
// where it is small, as long as its record does.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// Room for so many bytes, at most CONFIG_STAGING_BYTES, or none (counted where no buffer was left).
void take_staging(Card& card, Member& member, Operation& operation, uint32_t bytes);
// The operation is over: what has gathered answers late questions until somebody needs the room.
void keep_staging(Member& member, const Operation& operation);
// Answers all late questions, from now on until the record is another's: nothing of it need lie in
// the channel. False: it takes more than its share of the member's buffer, or half of the card's
// buffers are held already.
[[nodiscard]] bool hold_staging(Card& card, Member& member, const Operation& operation);
inline bool holds_staging(const Member& member, const Operation& operation) {
  return (member.staging_held & operation.staging_mask) != 0;
}
void release_staging(Card& card, Member& member, Operation& operation);
// The member goes, and with it operations that nobody will end.
void release_all_staging(Card& card, Member& member);

}  // namespace peal
