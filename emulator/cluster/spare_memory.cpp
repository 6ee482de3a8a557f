// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/spare_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace peal::sim {

using emulator::Touched;
using emulator::ZeroedMemory;

namespace {
constexpr size_t kSpareBytes = size_t{256} << 20;  // that a thread keeps, of pages that it has
// What has not more is cleared whole.
constexpr size_t kClearedWhole = 256 << 10;

// Writes zeros to the pages that the process has of the memory, as the kernel knows them
// (proc_pid_pagemap(5)): all others are zero. How many bytes these are, or none if the kernel does
// not say.
size_t clear_pages(uint8_t* data, size_t bytes) {
  constexpr uint64_t kPresentOrSwapped = uint64_t{3} << 62;
  const int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (map < 0) return 0;
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_t cleared = 0;
  const size_t pages = (bytes + page_bytes - 1) / page_bytes;
  std::array<uint64_t, 1024> entries;
  for (size_t page = 0; page < pages; page += entries.size()) {
    const size_t count = std::min(entries.size(), pages - page);
    const auto offset = static_cast<off_t>((reinterpret_cast<uintptr_t>(data) / page_bytes + page) *
                                           sizeof(uint64_t));
    const size_t wanted = count * sizeof(uint64_t);
    if (pread(map, entries.data(), wanted, offset) != static_cast<ssize_t>(wanted)) {
      cleared = 0;
      break;
    }
    for (size_t i = 0; i < count; i++) {
      if ((entries[i] & kPresentOrSwapped) == 0) continue;
      const size_t from = (page + i) * page_bytes;
      std::memset(data + from, 0, std::min(page_bytes, bytes - from));
      cleared += page_bytes;
    }
  }
  close(map);
  return cleared;
}

class Spares {
 public:
  ZeroedMemory take(size_t bytes, Touched touched, Contents contents) {
    const size_t rounded = std::bit_ceil(ZeroedMemory::rounded(bytes, touched));
    std::vector<Spare>& alike = alike_of(rounded, touched, contents);
    if (alike.empty()) return ZeroedMemory(rounded, touched);
    Spare spare = std::move(alike.back());
    alike.pop_back();
    kept_ -= spare.held;
    return std::move(spare.memory);
  }

  void give(ZeroedMemory memory, Touched touched, size_t used, Contents contents) {
    size_t held = used;
    if (contents == Contents::kZero) {
      if (used <= kClearedWhole) {
        std::memset(memory.data(), 0, used);
      } else {
        held = clear_pages(memory.data(), used);
        if (held == 0) return;
      }
    }
    kept_ += held;
    std::vector<Spare>& alike = alike_of(memory.bytes(), touched, contents);
    alike.push_back({std::move(memory), held, ++given_});
    while (kept_ > kSpareBytes) drop_oldest();
  }

 private:
  struct Spare {
    ZeroedMemory memory;
    size_t held;
    uint64_t given;  // how many were before it: ascends in each list
  };

  // Sizes that nobody takes any more are not in the way of those that are taken now.
  void drop_oldest() {
    std::vector<Spare>* oldest = nullptr;
    for (std::vector<Spare>& alike : spares_) {
      if (alike.empty()) continue;
      if (oldest == nullptr || alike.front().given < oldest->front().given) oldest = &alike;
    }
    kept_ -= oldest->front().held;
    oldest->erase(oldest->begin());
  }

  std::vector<Spare>& alike_of(size_t bytes, Touched touched, Contents contents) {
    const size_t use = (touched == Touched::kWhole ? 1 : 0) + (contents == Contents::kAny ? 2 : 0);
    return spares_[use * 64 + static_cast<size_t>(std::countr_zero(bytes))];
  }

  std::array<std::vector<Spare>, 4 * size_t{64}> spares_;  // by use and logarithm of their bytes
  size_t kept_ = 0;
  uint64_t given_ = 0;
};
thread_local Spares spares;
}  // namespace

ZeroedMemory take_memory(size_t bytes, Touched touched, Contents contents) {
  return spares.take(bytes, touched, contents);
}

void give_memory(ZeroedMemory memory, Touched touched, size_t used, Contents contents) {
  if (memory.data() != nullptr) spares.give(std::move(memory), touched, used, contents);
}

}  // namespace peal::sim
