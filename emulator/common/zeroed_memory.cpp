// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/common/zeroed_memory.h"

#include <sys/mman.h>

#include <new>
#include <utility>

namespace peal::emulator {

namespace {
constexpr size_t kLargePage = size_t{2} << 20;
}  // namespace

// Whole large pages, which the system aligns, if at least half of the only one is used.
size_t ZeroedMemory::rounded(size_t bytes, Touched touched) {
  if (touched == Touched::kSparsely || bytes < kLargePage / 2) return bytes == 0 ? 1 : bytes;
  return (bytes + kLargePage - 1) & ~(kLargePage - 1);
}

ZeroedMemory::ZeroedMemory(size_t bytes, Touched touched) : bytes_(rounded(bytes, touched)) {
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<uint8_t*>(memory);
  // Refused where the kernel has none: then the pages are small.
  if (touched == Touched::kWhole && bytes_ >= kLargePage) madvise(data_, bytes_, MADV_HUGEPAGE);
}

// Giving back the middle of what the system has merged makes two mappings of one, of which there
// may be too many: then the pages go, and the addresses are lost.
ZeroedMemory::~ZeroedMemory() {
  if (data_ != nullptr && munmap(data_, bytes_) != 0) madvise(data_, bytes_, MADV_DONTNEED);
}

ZeroedMemory::ZeroedMemory(ZeroedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

ZeroedMemory& ZeroedMemory::operator=(ZeroedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace peal::emulator
