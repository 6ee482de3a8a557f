// SPDX-License-Identifier: BSD-2-Clause
// Which memory of this process the card may reach, and under which key. The fast path of an
// operation does not come here: groups keep their last hit and look again only when version() has
// changed or the hit does not cover the buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hostlib/transport.h"

namespace peal::host {

struct Region {
  uintptr_t start = 0;
  size_t bytes = 0;
  uint32_t key = 0;
  uint32_t access = 0;     // PEAL_READ, PEAL_WRITE
  bool allocated = false;  // by peal_alloc(); allocation is then valid
  Allocation allocation;
  uint64_t age = 0;  // the map's: of two the newer has the larger one

  [[nodiscard]] bool covers(uintptr_t from, size_t length) const {
    const uintptr_t offset = from - start;  // huge where it begins before
    return offset <= bytes && length <= bytes - offset;
  }
  // How the card knows an address that lies in it, together with the key.
  [[nodiscard]] uint64_t offset_of(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - start;
  }
};

// A lookup takes a time that grows with the logarithm of the number of regions, and with how many
// of them overlap there.
class MemoryMap {
 public:
  void add(const Region& region);
  // The newest region that covers the range for that access; null when there is none. Until the
  // next change.
  [[nodiscard]] const Region* lookup(const void* address, size_t bytes, uint32_t access) const;
  // The same; explains itself when there is none: NOT_REGISTERED, BAD_BOUNDS or BAD_ACCESS; `what`
  // names the buffer in the text.
  peal_error find(const void* address, size_t bytes, uint32_t access, const char* what,
                  Region* region) const;
  // The region that peal_alloc() put there; null when there is none.
  [[nodiscard]] const Region* allocated_at(const void* address) const;
  void remove(uint32_t key);

  // Changes with the map, and with what somebody else says has changed.
  [[nodiscard]] uint64_t version() const { return version_; }
  void note_change() { version_++; }
  [[nodiscard]] const std::vector<Region>& regions() const { return regions_; }

 private:
  // Calls visit(region) for all that begin at or before the address and may reach it.
  template <typename Visit>
  void visit_around(uintptr_t address, const Visit& visit) const;
  void note_reach();

  std::vector<Region> regions_;   // by their start
  std::vector<uintptr_t> reach_;  // of each: the last byte of it and of all before it
  uint64_t version_ = 1;
};

}  // namespace peal::host
