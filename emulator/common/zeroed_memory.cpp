// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/common/zeroed_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <utility>

namespace peal::emulator {

namespace {
constexpr size_t kLargePage = size_t{2} << 20;
constexpr uint32_t kBeginnings = 256;  // pages behind its mapping's first where memory may begin

// Cards are used at the same places each, and so are channels. The kernel maps what is long at
// multiples of 2 MiB, end to end: pages that are used would be at equal distances, and rivals for
// the few places in which a processor may keep their translations. So each memory begins one page
// further behind its mapping's first than the one before, and distances grow: equal ones of some
// pages more than a power of two do not do (docs/performance/simulator.md). What lies ahead of a
// memory is never touched.
size_t bytes_ahead(size_t bytes, Touched touched) {
  static std::atomic<uint32_t> made = 0;
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (touched == Touched::kWhole || bytes < kBeginnings * page_bytes) return 0;
  return made.fetch_add(1, std::memory_order_relaxed) % kBeginnings * page_bytes;
}
}  // namespace

// Whole large pages, which the system aligns, if at least half of the only one is used.
size_t ZeroedMemory::rounded(size_t bytes, Touched touched) {
  if (touched == Touched::kSparsely || bytes < kLargePage / 2) return bytes == 0 ? 1 : bytes;
  return (bytes + kLargePage - 1) & ~(kLargePage - 1);
}

ZeroedMemory::ZeroedMemory(size_t bytes, Touched touched)
    : bytes_(rounded(bytes, touched)), ahead_(bytes_ahead(bytes_, touched)) {
  void* memory = mmap(nullptr, ahead_ + bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<uint8_t*>(memory) + ahead_;
  // Refused where the kernel has none: then the pages are small.
  if (touched == Touched::kWhole && bytes_ >= kLargePage) madvise(data_, bytes_, MADV_HUGEPAGE);
}

// Giving back the middle of what the system has merged makes two mappings of one, of which there
// may be too many: then the pages go, and the addresses are lost.
ZeroedMemory::~ZeroedMemory() {
  if (data_ != nullptr && munmap(data_ - ahead_, ahead_ + bytes_) != 0)
    madvise(data_, bytes_, MADV_DONTNEED);
}

ZeroedMemory::ZeroedMemory(ZeroedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      ahead_(std::exchange(other.ahead_, 0)) {}

ZeroedMemory& ZeroedMemory::operator=(ZeroedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(ahead_, other.ahead_);
  return *this;
}

}  // namespace peal::emulator
