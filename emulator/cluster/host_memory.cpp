// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/host_memory.h"

#include <sys/mman.h>

#include <new>
#include <utility>

namespace peal::sim {

Mapping::Mapping(size_t bytes) : bytes_(bytes == 0 ? 1 : bytes) {
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<uint8_t*>(memory);
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

uint32_t HostMemory::add(uint32_t card, uint64_t bytes) {
  regions_.push_back({Mapping(bytes), bytes, card, false});
  return static_cast<uint32_t>(regions_.size() - 1);
}

void HostMemory::remove(uint32_t region) {
  regions_[region].memory = Mapping();
  regions_[region].bytes = 0;
}

bool HostMemory::contains(uint32_t card, uint32_t region, uint64_t offset, uint64_t bytes) const {
  if (region >= regions_.size()) return false;
  const Region& found = regions_[region];
  return found.memory.data() != nullptr && found.card == card && offset <= found.bytes &&
         bytes <= found.bytes - offset;
}

}  // namespace peal::sim
