// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/host_memory.h"

#include <sys/mman.h>

#include <bit>
#include <cstring>
#include <new>
#include <utility>

namespace peal::sim {

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
  Mapping take(size_t bytes) {
    const size_t rounded = std::bit_ceil(bytes);
    std::vector<Spare>& alike = spares_[std::countr_zero(rounded)];
    if (alike.empty()) return Mapping(rounded);
    Spare spare = std::move(alike.back());
    alike.pop_back();
    kept_ -= rounded;
    std::memset(spare.memory.data(), 0, spare.used);
    return std::move(spare.memory);
  }
  // Of which the first `used` bytes may have been written.
  void give(Mapping memory, size_t used) {
    const size_t bytes = memory.bytes();
    if (kept_ + bytes > kSpareBytes) return;
    kept_ += bytes;
    spares_[std::countr_zero(bytes)].push_back({std::move(memory), used});
  }

 private:
  struct Spare {
    Mapping memory;
    size_t used;
  };
  std::vector<Spare> spares_[std::countr_zero(kSharedBytes) + 1];
  size_t kept_ = 0;
};
thread_local Spares spares;
}  // namespace

Mapping::Mapping(size_t bytes) : bytes_(bytes == 0 ? 1 : bytes) {
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<uint8_t*>(memory);
}

// Giving back the middle of what the system has merged makes two mappings of one, of which there
// may be too many: then the pages go, and the addresses are lost.
Mapping::~Mapping() {
  if (data_ != nullptr && munmap(data_, bytes_) != 0) madvise(data_, bytes_, MADV_DONTNEED);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

HostMemory::~HostMemory() {
  for (Region& region : regions_) {
    if (region.memory.data() != nullptr && region.bytes <= kReusedBytes)
      spares.give(std::move(region.memory), region.bytes);
  }
  for (Mapping& shared : shared_) {
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

uint32_t HostMemory::add(uint32_t card, uint64_t bytes) {
  if (bytes <= kSmallBytes) {
    regions_.push_back({add_small(bytes), Mapping(), bytes, card, false});
  } else {
    Mapping memory = bytes <= kReusedBytes ? spares.take(bytes) : Mapping(bytes);
    uint8_t* const data = memory.data();
    regions_.push_back({data, std::move(memory), bytes, card, false});
  }
  return static_cast<uint32_t>(regions_.size() - 1);
}

void HostMemory::remove(uint32_t region) {
  regions_[region].data = nullptr;
  regions_[region].memory = Mapping();
  regions_[region].bytes = 0;
}

bool HostMemory::contains(uint32_t card, uint32_t region, uint64_t offset, uint64_t bytes) const {
  if (region >= regions_.size()) return false;
  const Region& found = regions_[region];
  return found.data != nullptr && found.card == card && offset <= found.bytes &&
         bytes <= found.bytes - offset;
}

}  // namespace peal::sim
