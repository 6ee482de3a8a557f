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

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "emulator/common/regions.h"
#include "firmware/port.h"

namespace peal::emulator {

// Guest memory: bus address a lies at base + a, for a below bytes.
struct BusWindow {
  uint8_t* base = nullptr;
  uint64_t bytes = 0;
};

struct PageList {
  std::vector<uint64_t> addresses;  // bus address of each page
  uint32_t page_shift = 12;         // log2 of a page's bytes
  uint32_t first_page_offset = 0;   // where the region begins in the first page
};

// Whether every page is aligned and inside the bus window, and together they hold the bytes.
bool pages_fit(const BusWindow& bus, const PageList& pages, uint64_t bytes);

class RegionTable final : public Regions {
 public:
  // At most 65535 regions.
  explicit RegionTable(uint32_t capacity);
  ~RegionTable();
  RegionTable(const RegionTable&) = delete;
  RegionTable& operator=(const RegionTable&) = delete;

  // What to do with the memory when its region is freed (unmap it, close a descriptor, tell a
  // driver); runs once. It also runs when the table is full, so that callers have one path.
  using Release = std::function<void()>;

  // Each returns kNoRegion when the table is full, or when the memory given is none.
  // `bytes` of memory at `base`, mapped in this process.
  RegionId put_mapped(uint8_t* base, uint64_t bytes, Release release);
  // Memory of process `pid`. `pidfd` (the table's to close) tells whether that number still means
  // the same process: numbers are reused, and a descriptor of a dead process is readable.
  // `memory` (the table's to close) reaches it, or says that process_vm_* does, or nothing.
  static constexpr int kByNumber = -1;
  static constexpr int kOutOfReach = -2;
  RegionId put_process(pid_t pid, int pidfd, uint64_t address, uint64_t bytes, Release release,
                       int memory = kByNumber);
  // Pages within `bus`; they must fit (pages_fit).
  RegionId put_pages(const BusWindow& bus, PageList pages, uint64_t bytes, Release release);

  // Called before memory that is mapped goes, for whoever has addresses of it. Empty: nobody has.
  using BeforeFree = std::function<void(const uint8_t* base, uint64_t bytes)>;
  void set_before_free(BeforeFree before_free) { before_free_ = std::move(before_free); }

  void set_owner(RegionId region, ContextId owner, RegionUse use) override;
  bool free(RegionId region) override;
  void free_owned(ContextId owner, RegionUse use) override;

  // The memory of a range, or null when the region is not mapped here or the range leaves it:
  // the fast path.
  uint8_t* mapped(HostAddress at, uint32_t bytes) const {
    const uint32_t index = at.region & 0xffffu;
    if (index >= places_.size()) return nullptr;
    const Place& place = places_[index];
    if (place.base == nullptr || place.generation != at.region >> 16) return nullptr;
    if (bytes > place.bytes || at.offset > place.bytes - bytes) return nullptr;
    return place.base + at.offset;
  }

  // Copies between the card and a region of any kind. False, and counted, when the id is stale, the
  // range leaves the region, or the memory cannot be reached any more (the process is gone or has
  // unmapped it).
  bool copy_in(HostAddress from, uint8_t* to, uint32_t bytes);
  bool copy_out(const uint8_t* from, HostAddress to, uint32_t bytes);

  // Where a range of a process's memory lies, for ports that copy it themselves; false for other
  // kinds, and when the id is stale or the range leaves the region. Failures are theirs to count.
  struct ProcessRange {
    pid_t pid;
    int pidfd;   // the table's; open as long as the region is
    int memory;  // the same
    uint64_t address;
    ContextId owner;
  };
  bool process_range(HostAddress at, uint32_t bytes, ProcessRange* range) const;
  void count_fault() { faults_++; }

  [[nodiscard]] bool contains(RegionId region) const { return find(region) != nullptr; }
  // 0 for a stale id.
  [[nodiscard]] uint64_t bytes_of(RegionId region) const;
  [[nodiscard]] uint32_t used() const { return used_; }
  [[nodiscard]] uint64_t faults() const { return faults_; }

 private:
  enum class Kind : uint8_t { kFree, kMapped, kProcess, kPages };

  // What every DMA looks at, apart from the rest.
  struct Place {
    uint8_t* base = nullptr;  // of mapped regions only
    uint64_t bytes = 0;
    uint32_t generation = 0;  // 16 bits
  };

  struct Region {
    Kind kind = Kind::kFree;
    RegionUse use = RegionUse::kMemory;
    ContextId owner = ~0u;
    pid_t pid = 0;
    int pidfd = -1;
    int memory = kByNumber;
    uint64_t address = 0;  // virtual, of the process
    BusWindow bus;
    PageList pages;
    Release release;
  };

  [[nodiscard]] const Region* find(RegionId id) const;
  Region* claim(uint64_t bytes, Release& release, RegionId* id);
  void clear(uint32_t index);
  enum class Direction : uint8_t { kToCard, kToHost };
  bool copy(HostAddress host, uint8_t* card, uint32_t bytes, Direction direction);
  bool copy_process(const Region& region, uint64_t offset, uint8_t* card, uint32_t bytes,
                    Direction direction) const;
  static void copy_pages(const Region& region, uint64_t offset, uint8_t* card, uint32_t bytes,
                         Direction direction);

  uint32_t capacity_;
  // As many as were ever needed at once.
  std::vector<Place> places_;
  std::vector<Region> regions_;
  std::vector<uint32_t> free_slots_;
  uint32_t used_ = 0;
  uint64_t faults_ = 0;
  BeforeFree before_free_;
};

}  // namespace peal::emulator
