// SPDX-License-Identifier: BSD-2-Clause
// What a direct exchange knows of each pair of ranks. A pair goes on by itself: its next piece but
// W begins when a piece is over between the two, whatever they have to wait for from others (but
// for one block for all: direct_pace.h). docs/decisions/0017
#pragma once

#include <bit>

#include "firmware/base/kept.h"
#include "firmware/collective/direct_blocks.h"
#include "firmware/operation/algorithm.h"
#include "firmware/operation/transfer.h"

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

inline uint32_t way_of(const Membership& self, Rank to) { return minus(to, self.rank, self.ranks); }
inline Rank rank_at(const Membership& self, uint32_t way) {
  return plus(self.rank, way, self.ranks);
}

inline Pairs& pairs_of(const Scope& scope) {
  return kept(scope.member.pairs[scope.operation.timer.slot]);
}
// Something has come from the other.
inline bool has_come(const Pair& pair) { return pair.base != 0 || pair.come != 0; }
inline Pair& pair_at(const Scope& scope, uint32_t way) { return pairs_of(scope).of[way]; }

// The bit of a piece that the pair is at.
inline PieceBits bit_in(const Pair& pair, uint32_t number) {
  return static_cast<PieceBits>(1u << (number - pair.base));
}
// Have the two exchanged everything?
inline bool is_over(const Scope& scope, uint32_t way) {
  return !exchanges(scope, pair_at(scope, way).base, rank_at(scope.member.membership, way));
}
inline void set(PieceBits& bits, PieceBits bit) { bits = static_cast<PieceBits>(bits | bit); }
inline void reset(PieceBits& bits, PieceBits bit) { bits = static_cast<PieceBits>(bits & ~bit); }

// The first own block that was not begun.
inline uint32_t next_of(const Pair& pair) {
  return pair.base + static_cast<uint32_t>(std::countr_one(pair.begun));
}
// Has the own block been sent, and does it lie in the channel where it must?
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

inline uint32_t words_of(const Scope& scope) { return (scope.member.membership.ranks + 63) / 64; }

// Nothing has come or gone.
void open_pairs(const Scope& scope);
// The host's memory is known from now on: own blocks may be sent.
void begin_pairs(const Scope& scope);
// An own block of the pair was begun: the next may be now, or not.
void note_begun(const Scope& scope, uint32_t way, uint32_t number);
// It was sent, and kept where it must be.
void note_sent(const Scope& scope, uint32_t way, uint32_t number);
// A block of the other's has come.
void note_come(const Scope& scope, uint32_t way, uint32_t number);
// One that waited is on its way to the user.
void note_landed(const Scope& scope, uint32_t way, uint32_t number);
// May the next own block be sent?
void look_at(const Scope& scope, uint32_t way);
// The next pair, from *way on and around, of which one may. False: there is none.
bool find_ready(const Scope& scope, uint32_t* way);

}  // namespace peal::direct
