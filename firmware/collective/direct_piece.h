// SPDX-License-Identifier: BSD-2-Clause
// What a direct exchange knows of a piece: which own blocks are sent and kept, which of others wait
// in the channel.
#pragma once

#include "firmware/collective/direct_blocks.h"
#include "firmware/operation/algorithm.h"
#include "firmware/operation/transfer.h"

namespace peal::direct {

// Where a transfer goes on.
enum Goal : uint8_t {
  kOwnRead,      // own block into a packet: to be kept and sent, or for the rank itself
  kOwnForAll,    // the same, for all that it was not sent to yet
  kOwnFramed,    // its frame, if it has parts, lies in the channel
  kOwnKept,      // it lies there itself
  kLand,         // a block to the user
  kEarlyFramed,  // its frame, if it has parts, into the channel:
  kLandEarly,    // the user's memory is not known, or not free yet
  kEarlyRead,    // from there into a bounce packet
  kPartsRead,    // of the table
};

// A piece's own blocks are counted by their way: that with index i is for rank + i, the first for
// the rank itself. One for all is kept once (Piece::retained), and can be repaired before that.
struct Sending {
  uint16_t next;               // first one that was not begun
  uint16_t kept;               // all below are sent and lie in the channel, where they must
  uint16_t ahead;              // the same of those behind, a bit each
  uint16_t early_count;        // bits in early
  uint16_t expected;           // how many others' blocks belong to it
  bool reading;                // the one for all
  bool copied;                 // it has gone, or goes, to the channel and to the user
  bool alone;                  // there was no packet beside it: the next rank gets one to itself
  uint64_t early[kRankWords];  // blocks that lie in the channel, by origin
};
static_assert(kPieceTransfers < 16, "own blocks that are being kept must fit the bits of ahead");

inline uint32_t way_of(const Membership& self, Rank to) { return minus(to, self.rank, self.ranks); }

inline bool is_kept_now(const Piece& piece, uint32_t way) {
  const auto& sending = own_state<Sending>(piece);
  if (way < sending.kept) return true;
  return way - sending.kept < 16 && (sending.ahead >> (way - sending.kept) & 1) != 0;
}

inline void note_kept(Piece& piece, uint32_t way) {
  auto& sending = own_state<Sending>(piece);
  sending.ahead = static_cast<uint16_t>(sending.ahead | 1u << (way - sending.kept));
  while ((sending.ahead & 1) != 0) {
    sending.ahead = static_cast<uint16_t>(sending.ahead >> 1);
    ++sending.kept;
  }
}

}  // namespace peal::direct
