// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/host_memory.h"

#include <algorithm>
#include <utility>

namespace peal::sim {

using emulator::Touched;
using emulator::ZeroedMemory;

namespace {
constexpr uint64_t kSmallBytes = 16 << 10;
}  // namespace

HostMemory::~HostMemory() {
  for (Region& region : regions_)
    give_memory(std::move(region.memory), region.touched, region.bytes);
  give_back(small_);
  give_back(buffers_);
  for (ZeroedMemory& memory : unseen_) {
    const size_t bytes = memory.bytes();
    give_memory(std::move(memory), Touched::kWhole, bytes, Contents::kAny);
  }
}

uint8_t* HostMemory::take_from(Shared& shared, uint64_t bytes) {
  const uint64_t taken = (bytes + 63) & ~uint64_t{63};
  if (shared.memory.empty() || shared.memory.back().bytes() - shared.used < taken) {
    const uint64_t more = std::max(taken, shared.least_bytes);
    shared.memory.push_back(take_memory(more, shared.touched, shared.contents));
    shared.used = 0;
  }
  uint8_t* const data = shared.memory.back().data() + shared.used;
  shared.used += taken;
  return data;
}

void HostMemory::give_back(Shared& shared) {
  for (ZeroedMemory& memory : shared.memory) {
    const bool last = &memory == &shared.memory.back();
    const uint64_t used = last ? shared.used : memory.bytes();
    give_memory(std::move(memory), shared.touched, used, shared.contents);
  }
}

uint32_t HostMemory::add_region(Region region) {
  regions_.push_back(std::move(region));
  return static_cast<uint32_t>(regions_.size() - 1);
}

uint32_t HostMemory::add(uint32_t card, uint64_t bytes, Touched touched) {
  if (bytes <= kSmallBytes)
    return add_region({take_from(small_, bytes), ZeroedMemory(), bytes, card, touched});
  ZeroedMemory memory = take_memory(bytes, touched);
  uint8_t* const data = memory.data();
  return add_region({data, std::move(memory), bytes, card, touched});
}

uint32_t HostMemory::add_buffer(uint32_t card, uint64_t bytes) {
  return add_region({take_from(buffers_, bytes), ZeroedMemory(), bytes, card, Touched::kWhole});
}

uint32_t HostMemory::add_unseen(uint32_t card, uint64_t bytes) {
  if (unseen_.empty() || unseen_.back().bytes() < bytes)
    unseen_.push_back(take_memory(bytes, Touched::kWhole, Contents::kAny));
  return add_region({unseen_.back().data(), ZeroedMemory(), bytes, card, Touched::kWhole});
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
