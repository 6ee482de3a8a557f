// SPDX-License-Identifier: BSD-2-Clause
// Blocks of a buffer that differ in length, as callers describe them (counts and displacements of
// MPI), and as the card reads them: a table of parts (abi/queue.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/queue.h"
#include "hostlib/error.h"

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

}  // namespace peal::host
