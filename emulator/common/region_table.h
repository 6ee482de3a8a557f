// SPDX-License-Identifier: BSD-2-Clause
// Host memory as the card's DMA engine sees it: a RegionId and an offset. Behind a region there is
// memory mapped here, memory of a process that merely registered it (process_vm_readv/writev), or
// pages of a guest by bus address. The firmware has checked bounds against the memory key; the
// table checks them again against the region, because it is the one that would touch the wrong
// memory.
//
// Fixed capacity. An id carries a generation, so that a stale id of a freed region never reaches
// its successor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <sys/types.h>

#include "firmware/port.h"

namespace peal::emulator {

inline constexpr RegionId kNoRegion = ~0u;

// Guest memory: bus address a lies at base + a, for a below bytes.
struct BusWindow {
  uint8_t* base = nullptr;
  uint64_t bytes = 0;
};

enum class RegionUse : uint8_t {
  kMemory,    // registered by a context, freed with it
  kChannels,  // a group's channels, freed when the card releases them
};

class RegionTable {
 public:
  explicit RegionTable(uint32_t capacity);
  ~RegionTable();
  RegionTable(const RegionTable&) = delete;
  RegionTable& operator=(const RegionTable&) = delete;

  // Each returns kNoRegion when the table is full. `release` runs once, when the region is freed
  // (munmap, closing a descriptor, telling a driver); it also runs if the table is full, so that
  // callers have one path.
  using Release = std::function<void()>;

  // `bytes` of memory at `base`, mapped in this process.
  RegionId put_mapped(uint8_t* base, uint64_t bytes, Release release);
  // Memory of process `pid`. `still_same` says whether the process is the one that registered (pids
  // are reused).
  RegionId put_process(pid_t pid, uint64_t address, uint64_t bytes, Release release);
  // Pages of 1 << page_shift bytes each within `bus`, the region beginning first_page_offset into
  // the first. Page addresses must have been checked with pages_fit().
  RegionId put_pages(const BusWindow& bus, std::vector<uint64_t> pages, uint32_t page_shift,
                     uint32_t first_page_offset, uint64_t bytes, Release release);
  // Whether every page is aligned and inside the bus window, and together they hold the bytes.
  static bool pages_fit(const BusWindow& bus, const std::vector<uint64_t>& pages,
                        uint32_t page_shift, uint32_t first_page_offset, uint64_t bytes);

  void set_owner(RegionId region, ContextId owner, RegionUse use);
  // Frees the region; false when the id is stale or was never given out.
  bool free(RegionId region);
  // Frees every region of this owner and use.
  void free_owned(ContextId owner, RegionUse use);

  // Copies between the card and a region. False when the id is stale, the range leaves the region,
  // or the memory cannot be reached any more (the process is gone).
  bool copy_in(HostAddress from, uint8_t* to, uint32_t bytes);
  bool copy_out(const uint8_t* from, HostAddress to, uint32_t bytes);

  [[nodiscard]] bool contains(RegionId region) const { return find(region) != nullptr; }
  [[nodiscard]] uint64_t bytes_of(RegionId region) const;
  [[nodiscard]] uint32_t used() const { return used_; }
  [[nodiscard]] uint32_t capacity() const { return capacity_; }
  [[nodiscard]] uint64_t faults() const { return faults_; }

 private:
  enum class Kind : uint8_t { kFree, kMapped, kProcess, kPages };

  struct Region {
    Kind kind = Kind::kFree;
    RegionUse use = RegionUse::kMemory;
    uint16_t generation = 0;
    ContextId owner = ~0u;
    uint8_t* base = nullptr;  // mapped: memory; pages: of the bus window
    uint64_t bytes = 0;
    uint64_t address = 0;  // process: virtual address; pages: offset into the first page
    pid_t pid = 0;
    uint32_t page_shift = 0;
    std::vector<uint64_t> pages;
    Release release;
  };

  [[nodiscard]] const Region* find(RegionId region) const;
  Region* claim(RegionId* id, const Release& release);
  void free_slot(uint32_t index);
  bool copy(HostAddress host, uint8_t* card, uint32_t bytes, bool to_card);

  std::unique_ptr<Region[]> regions_;
  std::vector<uint32_t> free_slots_;
  uint32_t capacity_;
  uint32_t used_ = 0;
  uint64_t faults_ = 0;
};

}  // namespace peal::emulator
