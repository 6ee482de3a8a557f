// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/address_tables.h"

#include <algorithm>
#include <utility>

namespace peal::host {
namespace {

constexpr uint32_t kUnitBytes = 64;       // no two tables share a cache line
constexpr uint32_t kBlockBytes = 16'384;  // 85 groups of 8 ranks

ptrdiff_t units_of(uint32_t bytes) { return (bytes + kUnitBytes - 1) / kUnitBytes; }

}  // namespace

AddressTables::Place AddressTables::take(uint32_t bytes) {
  const ptrdiff_t units = units_of(bytes);
  for (Block& block : blocks_) {
    const auto at = std::search_n(block.used.begin(), block.used.end(), units, false);
    if (at == block.used.end()) continue;
    std::fill_n(at, units, true);
    const auto offset = static_cast<uint32_t>(at - block.used.begin()) * kUnitBytes;
    return {block.memory.address + offset, block.memory.key, offset, bytes};
  }
  return {};
}

void AddressTables::give(const Place& place) {
  for (Block& block : blocks_) {
    if (block.memory.key != place.key) continue;
    std::fill_n(block.used.begin() + place.offset / kUnitBytes, units_of(place.bytes), false);
  }
}

size_t AddressTables::block_bytes(uint32_t bytes) { return std::max(bytes, kBlockBytes); }

void AddressTables::add(const Allocation& memory) {
  blocks_.push_back({memory, std::vector<bool>(memory.mapped_bytes / kUnitBytes)});
}

std::vector<Allocation> AddressTables::leave() {
  std::vector<Allocation> memory;
  for (const Block& block : std::exchange(blocks_, {})) memory.push_back(block.memory);
  return memory;
}

}  // namespace peal::host
