// SPDX-License-Identifier: BSD-2-Clause
// The host memory of all simulated machines: regions of zeroed memory, each reachable by one card
// only. Pages are taken from the machine when first touched, so a thousand cards with megabytes of
// channels cost little; and small regions share pages, so tens of thousands with a few bytes do.
// Buffers, whose users fill them, are not even cleared for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/cluster/spare_memory.h"
#include "emulator/common/zeroed_memory.h"

namespace peal::sim {

inline constexpr uint32_t kNoRegionNumber = ~0u;

// Where a region begins in the address space of its process.
inline constexpr uint32_t kRegionAddressShift = 32;
constexpr uint64_t address_of_region(uint32_t region) {
  return (uint64_t{region} + 1) << kRegionAddressShift;
}
// The region that would begin there, if any does.
constexpr uint32_t region_of_address(uint64_t address) {
  return static_cast<uint32_t>((address >> kRegionAddressShift) - 1);
}

class HostMemory {
 public:
  HostMemory() = default;
  // What lived to the end is kept for the thread's next object (spare_memory.h).
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  // A new region of `bytes` that only `card` may reach, aligned to 64 bytes. Neither its number
  // nor, if it is small or a buffer, its memory is ever used again.
  uint32_t add(uint32_t card, uint64_t bytes,
               emulator::Touched touched = emulator::Touched::kWhole);
  // The same, for bytes that are written before anybody looks at them: whatever is there.
  uint32_t add_buffer(uint32_t card, uint64_t bytes);
  // The same, for bytes that nobody ever looks at: all such regions lie in the same memory.
  uint32_t add_unseen(uint32_t card, uint64_t bytes);
  void remove(uint32_t region);
  // From now on no DMA reaches the region, as when its process has unmapped it.
  void make_unreachable(uint32_t region) { regions_[region].unreachable = true; }
  // Whether the bytes lie in a region of that card.
  [[nodiscard]] bool contains(uint32_t card, uint32_t region, uint64_t offset,
                              uint64_t bytes) const;
  [[nodiscard]] bool reachable(uint32_t region) const { return !regions_[region].unreachable; }
  // All of a live region.
  [[nodiscard]] uint8_t* data(uint32_t region) const { return regions_[region].data; }

 private:
  struct Region {
    uint8_t* data;                  // null when it was removed
    emulator::ZeroedMemory memory;  // of a large one
    uint64_t bytes;
    uint32_t card;
    emulator::Touched touched;
    bool unreachable = false;
  };
  // Memory that regions share, one behind the other.
  struct Shared {
    emulator::Touched touched;
    Contents contents;
    uint64_t least_bytes;  // that are taken at once
    std::vector<emulator::ZeroedMemory> memory = {};
    uint64_t used = 0;  // of the last one
  };
  static uint8_t* take_from(Shared& shared, uint64_t bytes);
  static void give_back(Shared& shared);
  uint32_t add_region(Region region);

  std::vector<Region> regions_;
  Shared small_{emulator::Touched::kSparsely, Contents::kZero, uint64_t{4} << 20};
  Shared buffers_{emulator::Touched::kWhole, Contents::kAny, uint64_t{32} << 20};
  std::vector<emulator::ZeroedMemory> unseen_;  // of the longest such region, and shorter ones
};

}  // namespace peal::sim
