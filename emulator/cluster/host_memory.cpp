// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/host_memory.h"

#include <utility>

#include "emulator/cluster/spare_memory.h"

namespace peal::sim {

using emulator::Touched;
using emulator::ZeroedMemory;

namespace {
constexpr uint64_t kSmallBytes = 16 << 10;
constexpr uint64_t kSharedBytes = 4 << 20;
}  // namespace

HostMemory::~HostMemory() {
  for (Region& region : regions_)
    give_memory(std::move(region.memory), region.touched, region.bytes);
  for (ZeroedMemory& shared : shared_) {
    const bool last = &shared == &shared_.back();
    give_memory(std::move(shared), Touched::kSparsely, last ? shared_used_ : kSharedBytes);
  }
}

uint8_t* HostMemory::add_small(uint64_t bytes) {
  const uint64_t taken = (bytes + 63) & ~uint64_t{63};
  if (shared_.empty() || shared_used_ + taken > kSharedBytes) {
    shared_.push_back(take_memory(kSharedBytes, Touched::kSparsely));
    shared_used_ = 0;
  }
  uint8_t* const data = shared_.back().data() + shared_used_;
  shared_used_ += taken;
  return data;
}

uint32_t HostMemory::add(uint32_t card, uint64_t bytes, Touched touched) {
  if (bytes <= kSmallBytes) {
    regions_.push_back({add_small(bytes), ZeroedMemory(), bytes, card, touched, false});
  } else {
    ZeroedMemory memory = take_memory(bytes, touched);
    uint8_t* const data = memory.data();
    regions_.push_back({data, std::move(memory), bytes, card, touched, false});
  }
  return static_cast<uint32_t>(regions_.size() - 1);
}

void HostMemory::remove(uint32_t region) {
  Region& removed = regions_[region];
  give_memory(std::move(removed.memory), removed.touched, removed.bytes);
  removed.data = nullptr;
  removed.memory = ZeroedMemory();
  removed.bytes = 0;
}

bool HostMemory::contains(uint32_t card, uint32_t region, uint64_t offset, uint64_t bytes) const {
  if (region >= regions_.size()) return false;
  const Region& found = regions_[region];
  return found.data != nullptr && found.card == card && offset <= found.bytes &&
         bytes <= found.bytes - offset;
}

}  // namespace peal::sim
