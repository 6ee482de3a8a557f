// SPDX-License-Identifier: BSD-2-Clause
// The table of registered memory; see memory_map.h.
#include "hostlib/memory_map.h"

#include <algorithm>

namespace peal::host {

template <typename Visit>
void MemoryMap::visit_around(uintptr_t address, const Visit& visit) const {
  const auto behind =
      std::upper_bound(regions_.begin(), regions_.end(), address,
                       [](uintptr_t value, const Region& region) { return value < region.start; });
  for (auto i = static_cast<size_t>(behind - regions_.begin()); i-- > 0;) {
    if (reach_[i] < address) return;
    visit(regions_[i]);
  }
}

void MemoryMap::note_reach() {
  reach_.resize(regions_.size());
  uintptr_t most = 0;
  for (size_t i = 0; i < regions_.size(); i++) {
    most = std::max(most, regions_[i].start + (regions_[i].bytes - 1));
    reach_[i] = most;
  }
}

void MemoryMap::add(const Region& region) {
  const auto behind =
      std::upper_bound(regions_.begin(), regions_.end(), region.start,
                       [](uintptr_t value, const Region& each) { return value < each.start; });
  regions_.insert(behind, region)->age = version_++;
  note_reach();
}

const Region* MemoryMap::lookup(const void* address, size_t bytes, uint32_t access) const {
  const auto start = reinterpret_cast<uintptr_t>(address);
  const Region* found = nullptr;
  visit_around(start, [&](const Region& region) {
    const bool newer = found == nullptr || region.age > found->age;
    if (newer && (region.access & access) == access && region.covers(start, bytes)) found = &region;
  });
  return found;
}

peal_error MemoryMap::find(const void* address, size_t bytes, uint32_t access, const char* what,
                           Region* region) const {
  const Region* found = lookup(address, bytes, access);
  if (found != nullptr) {
    *region = *found;
    return PEAL_OK;
  }
  const auto start = reinterpret_cast<uintptr_t>(address);
  bool wrong_access = false;
  size_t within = 0;
  visit_around(start, [&](const Region& each) {
    wrong_access |= each.covers(start, bytes);
    if (each.covers(start, 1)) within = std::max(within, each.bytes - (start - each.start));
  });
  if (wrong_access) {
    return fail(PEAL_ERR_BAD_ACCESS, "the %s buffer %p was registered without %s", what, address,
                access == PEAL_READ ? "PEAL_READ" : "PEAL_WRITE");
  }
  if (within != 0) {
    return fail(PEAL_ERR_BAD_BOUNDS,
                "the %s buffer %p of %zu bytes leaves its registered memory after %zu bytes", what,
                address, bytes, within);
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
  note_reach();
  version_++;
}

}  // namespace peal::host
