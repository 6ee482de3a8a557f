// SPDX-License-Identifier: BSD-2-Clause
// memfd_create, its seals, and leases of it.
#include "emulator/nic/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <utility>

#include "abi/types.h"
#include "base/file_descriptor.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace peal::nic {
namespace {

// Touched at once up to here, so that the card's first access is no page fault;
// more would stall whoever waits.
constexpr size_t kPopulateMax = size_t{64} << 20;

// Where the system promises no more than it has (vm.overcommit_memory 2), a page that is not to be
// had is a SIGBUS for whoever touches it first. Mapping says nothing of that.
bool reserve(int memfd, size_t bytes) {
  if (ftruncate(memfd, static_cast<off_t>(bytes)) != 0) return false;
  if (bytes > kPopulateMax) return true;
  return retried([&] { return fallocate(memfd, 0, 0, static_cast<off_t>(bytes)); }) == 0;
}

void unmap(Mapping* mapping) {
  if (mapping->base != nullptr) munmap(mapping->base, mapping->bytes);
  mapping->base = nullptr;
}

}  // namespace

MappingBin::~MappingBin() {
  empty();
  while (kept_ != nullptr) destroy(std::exchange(kept_, kept_->next));
}

void MappingBin::throw_in(Mapping* mapping) {
  mapping->next = head_.load(std::memory_order_relaxed);
  while (!head_.compare_exchange_weak(mapping->next, mapping, std::memory_order_release,
                                      std::memory_order_relaxed)) {
  }
}

void MappingBin::empty() {
  Mapping* mapping = head_.exchange(nullptr, std::memory_order_acquire);
  while (mapping != nullptr) keep_or_delete(std::exchange(mapping, mapping->next));
}

void MappingBin::look_again() {
  empty();
  Mapping* mapping = std::exchange(kept_, nullptr);
  while (mapping != nullptr) keep_or_delete(std::exchange(mapping, mapping->next));
}

void MappingBin::keep_or_delete(Mapping* mapping) {
  unmap(mapping);
  if (is_held(*mapping)) {
    mapping->next = std::exchange(kept_, mapping);
  } else {
    destroy(mapping);
  }
}

Mapping* create_shared(const char* name, size_t bytes, Sharing sharing, int* fd) {
  const int memfd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memfd < 0) return nullptr;
  void* base = MAP_FAILED;
  if (reserve(memfd, bytes)) {
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

// A descriptor that is passed on is the same file, and so is what it maps: only a file that was
// opened by itself is counted by the kernel as somebody's. One that was merely named (O_PATH) is
// not: it is emptied in the end, and who may not open it then fills it no more.
bool know_holders(Mapping* mapping, int* fd) {
  const std::string path = "/proc/self/fd/" + std::to_string(*fd);
  FileDescriptor theirs(open(path.c_str(), O_RDWR | O_CLOEXEC));
  FileDescriptor probe(theirs.valid() ? open(path.c_str(), O_RDWR | O_CLOEXEC) : -1);
  if (!probe.valid()) return errno != EMFILE && errno != ENFILE && errno != ENOMEM;
  fchmod(probe.get(), 0600);
  fcntl(probe.get(), F_SETSIG, SIGURG);  // whoever opens it while it is leased: that ends nobody
  close(*fd);
  *fd = theirs.release();
  mapping->probe = probe.release();
  return true;
}

// The kernel leases a file for writing to nobody while another has it open.
bool is_held(const Mapping& mapping) {
  if (mapping.probe < 0) return false;
  if (fcntl(mapping.probe, F_SETLEASE, F_WRLCK) != 0) return errno == EAGAIN;
  fallocate(mapping.probe, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
            static_cast<off_t>(mapping.bytes));
  fcntl(mapping.probe, F_SETLEASE, F_UNLCK);
  return false;
}

void destroy(Mapping* mapping) {
  if (mapping == nullptr) return;
  unmap(mapping);
  if (mapping->probe >= 0) close(mapping->probe);
  if (mapping->let_go) mapping->let_go(mapping->bytes);
  delete mapping;
}

size_t whole_pages(uint64_t bytes) {
  constexpr uint64_t kMask = PEAL_PAGE_BYTES - 1;
  return bytes > UINT64_MAX - kMask ? 0 : (bytes + kMask) & ~kMask;
}

}  // namespace peal::nic
