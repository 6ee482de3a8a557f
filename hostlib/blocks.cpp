// SPDX-License-Identifier: BSD-2-Clause
// Blocks that differ in length; see blocks.h.
#include "hostlib/blocks.h"

#include <algorithm>
#include <vector>

namespace peal::host {
namespace {

// Calls `visit(block, start, bytes)` for each that is not empty, until it returns false. `start`
// has wrapped around where measure_blocks() would refuse the block.
template <typename Visit>
void each_block(const Blocks& blocks, Visit visit) {
  const auto address = reinterpret_cast<uintptr_t>(blocks.address);
  uintptr_t behind = address;
  for (uint32_t r = 0; r < blocks.count; r++) {
    const size_t bytes = blocks.bytes[r];
    const uintptr_t start = blocks.offsets == nullptr ? behind : address + blocks.offsets[r];
    if (bytes != 0 && !visit(r, start, bytes)) return;
    behind = start + bytes;
  }
}

struct Span {
  uintptr_t start;
  uintptr_t end;
  bool first;  // of the first side
};

void add_ranges(const Blocks& blocks, bool first, std::vector<Span>* ranges) {
  each_block(blocks, [&](uint32_t, uintptr_t start, size_t bytes) {
    ranges->push_back({start, start + bytes, first});
    return true;
  });
}

}  // namespace

peal_error measure_blocks(const char* operation, const Blocks& blocks, Extent* extent) {
  if (blocks.bytes == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: the lengths of the %s blocks are null", operation,
                blocks.side);
  }
  const auto address = reinterpret_cast<uintptr_t>(blocks.address);
  uintptr_t first = UINTPTR_MAX;
  uintptr_t last = 0;  // behind it
  peal_error error = PEAL_OK;
  *extent = {};
  each_block(blocks, [&](uint32_t r, uintptr_t start, size_t bytes) {
    if (bytes > UINT32_MAX) {
      error = fail(PEAL_ERR_BAD_LENGTH, "%s: %s block %u has %zu bytes, the limit is %u", operation,
                   blocks.side, r, bytes, UINT32_MAX);
    } else if (blocks.address == nullptr) {
      error = fail(PEAL_ERR_INVALID_ARGUMENT, "%s: the %s buffer is null", operation, blocks.side);
    } else if (start < address || start + bytes < start) {
      error =
          fail(PEAL_ERR_INVALID_ARGUMENT, "%s: %s block %u, %zu bytes at %p + %zu, wraps around",
               operation, blocks.side, r, bytes, blocks.address, start - address);
    }
    first = std::min(first, start);
    last = std::max(last, start + bytes);
    extent->longest = std::max(extent->longest, bytes);
    return error == PEAL_OK;
  });
  if (error != PEAL_OK || last == 0) return error;
  extent->start = first;
  extent->bytes = last - first;
  return PEAL_OK;
}

bool blocks_overlap(const Blocks& a, const Blocks& b) {
  std::vector<Span> ranges;
  ranges.reserve(size_t{a.count} + b.count);
  add_ranges(a, true, &ranges);
  add_ranges(b, false, &ranges);
  std::sort(ranges.begin(), ranges.end(),
            [](const Span& x, const Span& y) { return x.start < y.start; });
  uintptr_t ends[2] = {};  // of the blocks of either side that began so far
  for (const Span& range : ranges) {
    if (range.start < ends[range.first ? 0 : 1]) return true;
    uintptr_t& own = ends[range.first ? 1 : 0];
    own = std::max(own, range.end);
  }
  return false;
}

void write_parts(const Blocks& blocks, uintptr_t region, peal_part* parts) {
  std::fill_n(parts, blocks.count, peal_part{});
  each_block(blocks, [&](uint32_t r, uintptr_t start, size_t bytes) {
    parts[r] = {start - region, bytes};
    return true;
  });
}

}  // namespace peal::host
