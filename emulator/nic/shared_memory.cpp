// SPDX-License-Identifier: BSD-2-Clause
// memfd_create and its seals.
#include "emulator/nic/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "abi/types.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace peal::nic {
namespace {

// Touched at once up to here, so that the card's first access is no page fault;
// more would stall whoever waits.
constexpr size_t kPopulateMax = size_t{64} << 20;

}  // namespace

void MappingBin::throw_in(Mapping* mapping) {
  mapping->next = head_.load(std::memory_order_relaxed);
  while (!head_.compare_exchange_weak(mapping->next, mapping, std::memory_order_release,
                                      std::memory_order_relaxed)) {
  }
}

void MappingBin::empty() {
  Mapping* mapping = head_.exchange(nullptr, std::memory_order_acquire);
  while (mapping != nullptr) {
    Mapping* const next = mapping->next;
    destroy(mapping);
    mapping = next;
  }
}

Mapping* create_shared(const char* name, size_t bytes, Sharing sharing, int* fd) {
  const int memfd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memfd < 0) return nullptr;
  void* base = MAP_FAILED;
  if (ftruncate(memfd, static_cast<off_t>(bytes)) == 0) {
    const int populate = bytes <= kPopulateMax ? MAP_POPULATE : 0;
    base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | populate, memfd, 0);
  }
  int seals = F_SEAL_SHRINK | F_SEAL_GROW;
  if (sharing == Sharing::kReadOnlyForOthers) seals |= F_SEAL_FUTURE_WRITE;
  if (base == MAP_FAILED || fcntl(memfd, F_ADD_SEALS, seals | F_SEAL_SEAL) != 0) {
    const int error = errno;
    if (base != MAP_FAILED) munmap(base, bytes);
    close(memfd);
    errno = error;
    return nullptr;
  }
  *fd = memfd;
  return new Mapping{base, bytes};
}

Mapping* create_private(size_t bytes) {
  void* const base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  // Where huge pages are given to all, a first byte would cost 2 MiB.
  madvise(base, bytes, MADV_NOHUGEPAGE);
  return new Mapping{base, bytes};
}

void destroy(Mapping* mapping) {
  if (mapping == nullptr) return;
  munmap(mapping->base, mapping->bytes);
  if (mapping->unmapped) mapping->unmapped(mapping->bytes);
  delete mapping;
}

size_t whole_pages(uint64_t bytes) {
  constexpr uint64_t kMask = PEAL_PAGE_BYTES - 1;
  return bytes > UINT64_MAX - kMask ? 0 : (bytes + kMask) & ~kMask;
}

}  // namespace peal::nic
