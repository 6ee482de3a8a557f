// SPDX-License-Identifier: BSD-2-Clause
// Which blocks of an alltoallv are short, and where those that a step sends gather. A block goes
// down by the powers of two of its way, (origin - destination) mod N, the lowest first, as in
// Bruck's all-to-all (alltoall/bruck_order.h). Of N blocks at most half go in any one step: what
// fits a packet so many times is short. Two ranks with a longer one exchange both directly.
#pragma once

#include <bit>
#include <cstring>

#include "abi/wire.h"
#include "firmware/base/ranks.h"
#include "firmware/card_types.h"
#include "firmware/collective/direct_blocks.h"
#include "firmware/collective/direct_pair.h"

namespace peal::bruckv {

inline constexpr uint32_t kHeadBytes = sizeof(peal_step_block);

// Places for logs at the end of an image: for what each step sends and for what comes in it, shared
// out among the images of the channel. They take no more than half of it.
constexpr uint32_t log_places(uint32_t rounds) {
  return (2 * rounds + kPieceSlots - 1) / kPieceSlots;
}
inline constexpr uint32_t kLogBytes =
    least(CONFIG_MTU_BYTES, kImageBytes / 2 / log_places(kPairRounds > 0 ? kPairRounds : 1)) & ~7u;
static_assert(kLogBytes <= 0xffff, "lengths have 16 bits");

// Bytes of the longest short block.
constexpr uint32_t short_bytes(uint32_t ranks) {
  if (ranks < 2) return 0;
  const uint32_t share = kLogBytes / (ranks / 2);
  return share > kHeadBytes ? share - kHeadBytes : 0;
}
static_assert(short_bytes(2) <= 0xffff);

// The largest group: places for blocks that go directly have half an image at the least, and half
// of all heads are in a packet.
inline constexpr uint32_t kRanks =
    least(least(kPairRanks, kImageBytes / 2 / kPartPlaceBytes), 2 * (kLogBytes / kHeadBytes));

// The first step of a way from bit k on; none is left of 0.
constexpr uint32_t bits_from(uint32_t way, uint32_t k) { return way >> k << k; }
constexpr uint32_t step_of(uint32_t bits) { return static_cast<uint32_t>(std::countr_zero(bits)); }

inline peal_step_block head_at(const uint8_t* at) {
  peal_step_block head;
  std::memcpy(&head, at, kHeadBytes);
  return head;
}
inline void put_head(uint8_t* at, uint32_t way, uint32_t bytes) {
  const peal_step_block head = {static_cast<uint16_t>(way), static_cast<uint16_t>(bytes)};
  std::memcpy(at, &head, kHeadBytes);
}

// Where a transfer goes on. `detail` is the step, but for own blocks: the first rank, and above 16
// bits how many ranks.
enum Goal : uint8_t {
  kFirstGoal = 0x40,
  kOwnRead = kFirstGoal,  // own blocks into a packet
  kLogWritten,            // blocks into a log in the channel
  kStored,                // a packet that came early, there
  kFetched,               // from there into a packet
  kLanded,                // a block to the user
};

// What stays of an operation (group/sent_blocks.h) besides blocks that went directly: by its step.
inline constexpr uint32_t kLogNumber = PEAL_PIECE_STEP;
inline constexpr uint32_t kArrivalNumber = PEAL_PIECE_STEP - 1;  // no block's piece

// Does the pair with this rank exchange its blocks directly? The table is known.
inline bool goes_directly(const Scope& scope, Rank rank) {
  return direct::exchanges(direct::pair_at(scope, direct::way_of(scope.member.membership, rank)),
                           0);
}
// Does a step bring its block, or the head of one that comes directly?
inline bool comes_in_steps(const Scope& scope, Rank origin) {
  if (origin == scope.member.membership.rank) return false;
  return direct::part_from(scope, origin).bytes > 0 || goes_directly(scope, origin);
}

}  // namespace peal::bruckv
