// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/host_memory.h"

#include <bit>
#include <cstring>
#include <utility>

namespace peal::sim {

using emulator::ZeroedMemory;

namespace {
constexpr uint64_t kSmallBytes = 16 << 10;
constexpr uint64_t kSharedBytes = 4 << 20;
// Larger regions, such as channels, are mostly never touched.
constexpr uint64_t kReusedBytes = 256 << 10;
constexpr size_t kSpareBytes = size_t{64} << 20;

// Memory of clusters that are gone, for the thread's next ones: to clear what was used costs a
// tenth of what the faults of fresh pages do, and tests make clusters by the thousand. Sizes are
// powers of two.
class Spares {
 public:
  ZeroedMemory take(size_t bytes) {
    const size_t rounded = std::bit_ceil(bytes);
    std::vector<Spare>& alike = spares_[std::countr_zero(rounded)];
    if (alike.empty()) return ZeroedMemory(rounded);
    Spare spare = std::move(alike.back());
    alike.pop_back();
    kept_ -= rounded;
    std::memset(spare.memory.data(), 0, spare.used);
    return std::move(spare.memory);
  }
  // Of which the first `used` bytes may have been written.
  void give(ZeroedMemory memory, size_t used) {
    const size_t bytes = memory.bytes();
    if (kept_ + bytes > kSpareBytes) return;
    kept_ += bytes;
    spares_[std::countr_zero(bytes)].push_back({std::move(memory), used});
  }

 private:
  struct Spare {
    ZeroedMemory memory;
    size_t used;
  };
  std::vector<Spare> spares_[std::countr_zero(kSharedBytes) + 1];
  size_t kept_ = 0;
};
thread_local Spares spares;
}  // namespace

HostMemory::~HostMemory() {
  for (Region& region : regions_) {
    if (region.memory.data() != nullptr && region.bytes <= kReusedBytes)
      spares.give(std::move(region.memory), region.bytes);
  }
  for (ZeroedMemory& shared : shared_) {
    const bool last = &shared == &shared_.back();
    spares.give(std::move(shared), last ? shared_used_ : kSharedBytes);
  }
}

uint8_t* HostMemory::add_small(uint64_t bytes) {
  const uint64_t taken = (bytes + 63) & ~uint64_t{63};
  if (shared_.empty() || shared_used_ + taken > kSharedBytes) {
    shared_.push_back(spares.take(kSharedBytes));
    shared_used_ = 0;
  }
  uint8_t* const data = shared_.back().data() + shared_used_;
  shared_used_ += taken;
  return data;
}

uint32_t HostMemory::add(uint32_t card, uint64_t bytes, emulator::Touched touched) {
  if (bytes <= kSmallBytes) {
    regions_.push_back({add_small(bytes), ZeroedMemory(), bytes, card, false});
  } else {
    ZeroedMemory memory = bytes <= kReusedBytes ? spares.take(bytes) : ZeroedMemory(bytes, touched);
    uint8_t* const data = memory.data();
    regions_.push_back({data, std::move(memory), bytes, card, false});
  }
  return static_cast<uint32_t>(regions_.size() - 1);
}

void HostMemory::remove(uint32_t region) {
  regions_[region].data = nullptr;
  regions_[region].memory = ZeroedMemory();
  regions_[region].bytes = 0;
}

bool HostMemory::contains(uint32_t card, uint32_t region, uint64_t offset, uint64_t bytes) const {
  if (region >= regions_.size()) return false;
  const Region& found = regions_[region];
  return found.data != nullptr && found.card == card && offset <= found.bytes &&
         bytes <= found.bytes - offset;
}

}  // namespace peal::sim
