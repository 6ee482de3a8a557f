// SPDX-License-Identifier: BSD-2-Clause
// The table of registered memory; see memory_map.h.
#include "hostlib/memory_map.h"

#include <algorithm>

namespace peal::host {

void MemoryMap::add(const Region& region) {
  regions_.push_back(region);
  version_++;
}

peal_error MemoryMap::find(const void* address, size_t bytes, uint32_t access, const char* what,
                           Region* region) const {
  const auto start = reinterpret_cast<uintptr_t>(address);
  const Region* too_short = nullptr;
  const Region* wrong_access = nullptr;
  for (auto candidate = regions_.rbegin(); candidate != regions_.rend(); ++candidate) {
    if (candidate->covers(start, bytes)) {
      if ((candidate->access & access) == access) {
        *region = *candidate;
        return PEAL_OK;
      }
      wrong_access = &*candidate;
    } else if (candidate->covers(start, 1)) {
      too_short = &*candidate;
    }
  }
  if (wrong_access != nullptr) {
    return fail(PEAL_ERR_BAD_ACCESS, "the %s buffer %p was registered without %s", what, address,
                access == PEAL_READ ? "PEAL_READ" : "PEAL_WRITE");
  }
  if (too_short != nullptr) {
    return fail(PEAL_ERR_BAD_BOUNDS,
                "the %s buffer %p of %zu bytes leaves its registered memory after %zu bytes", what,
                address, bytes, too_short->bytes - (start - too_short->start));
  }
  return fail(PEAL_ERR_NOT_REGISTERED,
              "the %s buffer %p is in no registered memory: use peal_alloc() or peal_register()",
              what, address);
}

const Region* MemoryMap::allocated_at(const void* address) const {
  const auto start = reinterpret_cast<uintptr_t>(address);
  for (const Region& region : regions_) {
    if (region.allocated && region.start == start) return &region;
  }
  return nullptr;
}

void MemoryMap::remove(uint32_t key) {
  std::erase_if(regions_, [key](const Region& region) { return region.key == key; });
  version_++;
}

}  // namespace peal::host
