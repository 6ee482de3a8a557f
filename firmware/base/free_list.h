// SPDX-License-Identifier: BSD-2-Clause
// The free ones of an array of records, which begins as zeros: a free record's `next` is its
// distance from the one behind it to the next free one, so that in the beginning each is followed
// by the one behind it, and nothing need be written before it is used.
#pragma once

#include <cstdint>

namespace peal {

// Takes the one that `free` is the index of. Its index plus one, as lists name records.
template <typename Record>
inline uint16_t take_free(const Record* records, uint16_t& free) {
  const auto index = static_cast<uint16_t>(free + 1);
  free = static_cast<uint16_t>(index + records[free].next);
  return index;
}
// Gives it back; it is taken first.
template <typename Record>
inline void give_free(Record* records, uint16_t& free, uint16_t index) {
  records[index - 1].next = static_cast<uint16_t>(free - index);
  free = static_cast<uint16_t>(index - 1);
}

}  // namespace peal
