// SPDX-License-Identifier: BSD-2-Clause
// What packets on an edge of a ring prove. Of a piece the left neighbour sends its own block first,
// then what it gets from its left, which is that one's own block first: in the order of distance,
// the nearest origin first. But nobody holds anything back: a block that was late, or lost on the
// way and repaired, is passed on when it comes, after others that are farther. So each packet says
// how many blocks nearer than the farthest that its sender has passed on it has not passed on:
// held back, because it lacks them itself. What its receiver lacks beyond that number is lost, on
// this edge, and known to be with the left neighbour. What is farther than the farthest that has
// come may be on its way. docs/decisions/0024
#pragma once

#include <cstdint>

namespace peal::ring {

// Distances are those of the receiver: 1 is the left neighbour's own block, N - 1 the right one's.
// Zero: nothing has come of the piece.
struct Heard {
  uint16_t farthest;     // that has come; 0: none
  uint16_t lost;         // blocks nearer than that, as of the last packet
  uint16_t fresh_first;  // of them, those that were not asked for are in [fresh_first, fresh_end)
  uint16_t fresh_end;
};

// A packet's word has room for so many: whoever holds more back says this, which proves nothing.
inline constexpr uint32_t kManyHeldBack = 255;

// Of the blocks nearer than `end`, which is the farthest that a rank has passed on plus one, it
// holds back those that are not among the `passed_on`.
constexpr uint8_t held_back(uint32_t end, uint32_t passed_on) {
  const uint32_t held = end - passed_on;
  return static_cast<uint8_t>(held < kManyHeldBack ? held : kManyHeldBack);
}

inline void note_fresh(Heard& heard, uint32_t first, uint32_t end) {
  const bool none = heard.fresh_first == heard.fresh_end;
  if (none || first < heard.fresh_first) heard.fresh_first = static_cast<uint16_t>(first);
  if (none || end > heard.fresh_end) heard.fresh_end = static_cast<uint16_t>(end);
}

// A block came at its first sending, the `come`th from the left, whose sender held so many back.
// How many more are lost than were known to be.
inline uint32_t heard_first(Heard& heard, uint32_t distance, uint32_t come, uint32_t held) {
  const uint32_t before = heard.farthest;
  if (distance > before) heard.farthest = static_cast<uint16_t>(distance);
  if (held >= kManyHeldBack) return 0;
  const uint32_t missing = heard.farthest - come;
  const uint32_t lost = missing > held ? missing - held : 0;
  const uint32_t more = lost > heard.lost ? lost - heard.lost : 0;
  heard.lost = static_cast<uint16_t>(lost);
  if (more == 0) return 0;
  // Those that the packet has jumped over are enough to explain it, or any may be.
  const uint32_t jumped = distance > before ? distance - before - 1 : 0;
  note_fresh(heard, more <= jumped ? before + 1 : 1, heard.farthest);
  return more;
}

// A block came as a repair.
inline void heard_again(Heard& heard, uint32_t distance) {
  if (distance > heard.farthest) {
    heard.farthest = static_cast<uint16_t>(distance);
  } else if (heard.lost > 0) {
    --heard.lost;
  }
}

}  // namespace peal::ring
