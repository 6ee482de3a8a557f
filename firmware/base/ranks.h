// SPDX-License-Identifier: BSD-2-Clause
// Arithmetic on ranks: distances modulo the group size, powers of two, and where a peer stands in
// the table of 2⌈log2 N⌉ entries (allgather paper, section 4.1.1:
// all partners are a power of two away).
#pragma once

#include <bit>
#include <cstdint>

namespace peal {

using Rank = uint32_t;

inline constexpr uint32_t kNoPeer = ~0u;

// ⌈log2 n⌉ for n >= 1.
constexpr uint32_t ceil_log2(uint32_t n) { return static_cast<uint32_t>(std::bit_width(n - 1)); }
// ⌊log2 n⌋ for n >= 1.
// (std::countl_zero() has an answer for zero, too, and instructions for it.)
constexpr uint32_t floor_log2(uint32_t n) { return 31u ^ static_cast<uint32_t>(__builtin_clz(n)); }

// (rank + distance) mod ranks, for distance <= ranks.
constexpr Rank plus(Rank rank, uint32_t distance, uint32_t ranks) {
  const Rank sum = rank + distance;
  return sum >= ranks ? sum - ranks : sum;
}
// (rank - distance) mod ranks, for distance <= ranks.
constexpr Rank minus(Rank rank, uint32_t distance, uint32_t ranks) {
  return plus(rank, ranks - distance, ranks);
}

// Entry of the peer table: 2j is rank + 2^j, 2j + 1 is rank - 2^j.
constexpr uint32_t peer_ahead(uint32_t log_distance) { return 2 * log_distance; }
constexpr uint32_t peer_behind(uint32_t log_distance) { return 2 * log_distance + 1; }

// The entry that is the rank so far ahead, below `ranks`, or kNoPeer. Where one rank stands in two
// entries (N = 2: ahead and behind), that ahead: what is known of a peer is kept there.
constexpr uint32_t entry_of_ahead(uint32_t ahead, uint32_t ranks) {
  if (ahead == 0) return kNoPeer;
  if (std::has_single_bit(ahead)) return peer_ahead(floor_log2(ahead));
  const uint32_t behind = ranks - ahead;
  if (std::has_single_bit(behind)) return peer_behind(floor_log2(behind));
  return kNoPeer;
}
// The entry that is `other`, or kNoPeer.
constexpr uint32_t peer_entry(Rank rank, Rank other, uint32_t ranks) {
  return entry_of_ahead(minus(other, rank, ranks), ranks);
}

// Is another entry the one that peer_entry() gives for the same rank? (N = 2^i + 2^j: rank + 2^i is
// rank - 2^j.)
constexpr bool is_repeated_entry(uint32_t entry, uint32_t ranks) {
  return entry % 2 == 1 && std::has_single_bit(ranks - (1u << entry / 2));
}

}  // namespace peal
