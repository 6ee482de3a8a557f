// SPDX-License-Identifier: BSD-2-Clause
// Blocks of a buffer that differ in length, as callers describe them (counts and displacements of
// MPI), and as the card reads them: a table of parts (abi/queue.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/queue.h"
#include "hostlib/error.h"
#include "hostlib/memory_map.h"

namespace peal::host {

// The arrays are the caller's, for as long as its call lasts.
struct Blocks {
  const void* address = nullptr;
  const size_t* bytes = nullptr;    // of each
  const size_t* offsets = nullptr;  // behind `address`; null: one behind the other
  uint32_t count = 0;
  const char* side = "";  // "send" or "receive", in texts
};

// What there is of them: from the first byte to the last, whatever lies between.
struct Extent {
  uintptr_t start = 0;
  size_t bytes = 0;    // 0 where all blocks are empty
  size_t longest = 0;  // bytes of the longest block
};

// Looks at all of them. INVALID_ARGUMENT or BAD_LENGTH names the operation, the side and the block.
peal_error measure_blocks(const char* operation, const Blocks& blocks, Extent* extent);
// Whether a byte is in a block of both. Their extents are known to be good.
bool blocks_overlap(const Blocks& a, const Blocks& b);
// A part for each, in memory that a card may read; `region` is where the blocks' memory begins.
void write_parts(const Blocks& blocks, uintptr_t region, peal_part* parts);

// Four in turn, so that what counts them is a quarter as much.
template <typename Visit>
[[gnu::always_inline]] inline void each_number(size_t count, Visit visit) {
  const size_t fours = count & ~size_t{3};
  size_t i = 0;
  for (; i < fours; i += 4) {
    visit(i);
    visit(i + 1);
    visit(i + 2);
    visit(i + 3);
  }
  for (; i < count; i++) visit(i);
}

// Measures blocks and writes their parts in one pass, without a branch for each, where there is
// nothing to be said: all of them lie in this region, and not all are empty. Else false, with
// anything in `parts` and `extent`; and measure_blocks() says what is wrong, if anything is. (Empty
// ones are taken for blocks: an extent may begin or end with one that has an offset.) Inlined into
// the calls that do not wait. `longest`: whether anybody wants to know of it.
[[gnu::always_inline]] inline bool write_parts_in(const Region& region, const Blocks& blocks,
                                                  bool longest, peal_part* parts, Extent* extent) {
  if (blocks.address == nullptr) [[unlikely]]
    return false;
  const size_t from = reinterpret_cast<uintptr_t>(blocks.address) - region.start;
  const size_t* const all_bytes = blocks.bytes;
  size_t lengths = 0;  // of all a bit that any has
  size_t most = 0;
  const auto take = [&](size_t r, size_t offset) __attribute__((always_inline)) {
    const size_t bytes = all_bytes[r];
    parts[r] = {offset, bytes};
    lengths |= bytes;
    if (longest) most = most < bytes ? bytes : most;
    return offset + bytes;
  };
  size_t first = from;
  size_t end = from;  // behind the last
  if (blocks.offsets == nullptr) {
    each_number(
        blocks.count, [&](size_t r) __attribute__((always_inline)) { end = take(r, end); });
  } else {
    const size_t* const offsets = blocks.offsets;
    size_t bits = 0;  // of all offsets, behind the buffer's and the region's first byte
    first = SIZE_MAX;
    end = 0;
    each_number(
        blocks.count, [&](size_t r) __attribute__((always_inline)) {
          const size_t offset = from + offsets[r];
          bits |= offset | offsets[r];
          first = offset < first ? offset : first;
          const size_t behind = take(r, offset);
          end = behind < end ? end : behind;
        });
    // With them nothing has wrapped around.
    if (bits > SIZE_MAX / 2) [[unlikely]]
      return false;
  }
  extent->start = region.start + first;
  extent->bytes = end - first;
  extent->longest = most;
  return lengths - 1 < UINT32_MAX && region.covers(extent->start, extent->bytes);
}

}  // namespace peal::host
