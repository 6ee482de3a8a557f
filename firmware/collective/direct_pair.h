// SPDX-License-Identifier: BSD-2-Clause
// What a direct exchange knows: of itself, and of each pair of ranks. Of what all operations have
// it uses `base` (direct_pace.h) and the pieces, not as records of pieces: as lists of packets that
// wait, and for which piece of one block for all is being read. docs/decisions/0047
#pragma once

#include <bit>

#include "firmware/operation/algorithm.h"
#include "firmware/operation/layout.h"

namespace peal::direct {

// Where a transfer goes on. `detail` is the pair's way.
enum Goal : uint8_t {
  kOwnRead,      // own block into a packet: to be kept and sent, or for the rank itself
  kOwnForAll,    // the same, for all that wait for it
  kOwnFramed,    // its frame, if it has parts, lies in the channel
  kOwnKept,      // it lies there itself
  kLand,         // a block to the user
  kEarlyFramed,  // its frame, if it has parts, into the channel:
  kLandEarly,    // the user's memory is not known, or not free yet
  kEarlyRead,    // from there into a bounce packet
  kPartsRead,    // of the table
};

// What a rank gives.
enum class Own : uint8_t {
  kOneForEach,  // a block for every rank, in their order
  kOneForAll,   // the same one: read once for all who get it
};

// Of the operation.
struct Exchange {
  Pairs* pairs;        // the member's, of the operation's slot
  uint32_t own_bytes;  // of the one block for all, where it is a part
  uint16_t way;        // with whom the next questions begin, so that all get their turn
  uint16_t late_way;   // and those to who seems late
  uint16_t turn;       // and the next own blocks
  uint16_t left;       // pairs that have not exchanged everything
  uint16_t landing;    // blocks that are on their way to the user
  uint16_t retained;   // pieces of the one block for all that lie in the channel, by their images
  // Of the one block for all, too (direct_pace.h): pairs of those that go together that are at the
  // operation's base; from whom something has come; and with whom the first W pieces are over.
  uint16_t slowest;
  uint16_t heard;
  uint16_t settled;
  bool parted : 1;   // those from whom nothing has come are not waited for
  bool alone : 1;    // there was no packet beside it: the next rank gets one to itself
  bool stepped : 1;  // short blocks go in steps (alltoallv/bruck.h)
  Own own;
};

inline bool is_for_all(Operation& operation) {
  return own_state<Exchange>(operation).own == Own::kOneForAll;
}

inline Steps& steps_of(const Scope& scope) {
  return scope.member.steps[scope.operation.timer.slot];
}

inline uint32_t way_of(const Membership& self, Rank to) { return minus(to, self.rank, self.ranks); }
inline Rank rank_at(const Membership& self, uint32_t way) {
  return plus(self.rank, way, self.ranks);
}

inline Pairs& pairs_of(const Scope& scope) { return *own_state<Exchange>(scope.operation).pairs; }
// Something has come from the other.
inline bool has_come(const Pair& pair) { return pair.base != 0 || pair.come != 0; }
inline Pair& pair_at(const Scope& scope, uint32_t way) { return pairs_of(scope).of()[way]; }
// Of the bits of all pairs.
inline uint32_t words_of(const Scope& scope) { return (scope.member.membership.ranks + 63) / 64; }

// Do the two have a packet of the piece for each other?
inline bool exchanges(const Pair& pair, uint32_t number) { return number < pair.pieces; }
// Have they exchanged everything?
inline bool is_over(const Pair& pair) { return !exchanges(pair, pair.base); }

// The bit of a piece that the pair is at.
inline PieceBits bit_in(const Pair& pair, uint32_t number) {
  return static_cast<PieceBits>(1u << (number - pair.base));
}
inline void set(PieceBits& bits, PieceBits bit) { bits = static_cast<PieceBits>(bits | bit); }
inline void reset(PieceBits& bits, PieceBits bit) { bits = static_cast<PieceBits>(bits & ~bit); }

// The first own block that was not begun.
inline uint32_t next_of(const Pair& pair) {
  return pair.base + static_cast<uint32_t>(std::countr_one(pair.begun));
}
// Has the own block been sent, and is it kept where it must be, in its packet or in the channel?
inline bool is_sent(const Pair& pair, uint32_t number) {
  if (number < pair.base) return true;
  return number - pair.base < kPieceSlots && (pair.kept & bit_in(pair, number)) != 0;
}

// The one block for all: its piece lies in the channel.
inline PieceBits image_bit(uint32_t number) {
  return static_cast<PieceBits>(1u << (number % kPieceSlots));
}
inline bool is_retained(Operation& operation, uint32_t number) {
  return (own_state<Exchange>(operation).retained & image_bit(number)) != 0;
}

inline void note_retained(Operation& operation, uint32_t number) {
  auto& exchange = own_state<Exchange>(operation);
  exchange.retained = static_cast<uint16_t>(exchange.retained | image_bit(number));
}

}  // namespace peal::direct
