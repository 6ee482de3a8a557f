// SPDX-License-Identifier: BSD-2-Clause
// Regions and the copies into and out of them. The slow kinds (process, pages) are here; a mapped
// region is reached inline, by RegionTable::mapped().
#include "emulator/common/region_table.h"

#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace peal::emulator {

bool pages_fit(const BusWindow& bus, const PageList& pages, uint64_t bytes) {
  if (pages.page_shift < 12 || pages.page_shift > 30) return false;
  const uint64_t page_bytes = uint64_t{1} << pages.page_shift;
  if (pages.first_page_offset >= page_bytes || pages.addresses.size() > UINT32_MAX) return false;
  const uint64_t room = pages.addresses.size() << pages.page_shift;
  if (pages.first_page_offset > room || bytes > room - pages.first_page_offset) return false;
  return std::all_of(pages.addresses.begin(), pages.addresses.end(), [&](uint64_t address) {
    return (address & (page_bytes - 1)) == 0 && page_bytes <= bus.bytes &&
           address <= bus.bytes - page_bytes;
  });
}

RegionTable::RegionTable(uint32_t capacity) : capacity_(capacity) { assert(capacity <= 0xffffu); }

RegionTable::~RegionTable() {
  for (uint32_t i = 0; i < regions_.size(); i++) {
    if (regions_[i].kind != Kind::kFree) clear(i);
  }
}

const RegionTable::Region* RegionTable::find(RegionId id) const {
  const uint32_t index = id & 0xffffu;
  if (index >= regions_.size() || regions_[index].kind == Kind::kFree ||
      places_[index].generation != id >> 16)
    return nullptr;
  return &regions_[index];
}

// A free slot, with bytes and release filled in; null (and released) when there is none.
RegionTable::Region* RegionTable::claim(uint64_t bytes, Release& release, RegionId* id) {
  if (free_slots_.empty() && regions_.size() < capacity_ && bytes != 0) {
    free_slots_.push_back(static_cast<uint32_t>(regions_.size()));
    places_.emplace_back();
    regions_.emplace_back();
  }
  if (free_slots_.empty() || bytes == 0) {
    if (release) release();
    *id = kNoRegion;
    return nullptr;
  }
  const uint32_t index = free_slots_.back();
  free_slots_.pop_back();
  used_++;
  Place& place = places_[index];
  place.bytes = bytes;
  Region& region = regions_[index];
  region.owner = ~0u;
  region.use = RegionUse::kMemory;
  region.release = std::move(release);
  *id = place.generation << 16 | index;
  return &region;
}

void RegionTable::clear(uint32_t index) {
  Region& region = regions_[index];
  for (const int fd : {region.pidfd, region.memory}) {
    if (fd >= 0) close(fd);
  }
  const Release release = std::move(region.release);
  region = Region{};
  Place& place = places_[index];
  if (before_free_ && place.base != nullptr) before_free_(place.base, place.bytes);
  place.base = nullptr;
  place.bytes = 0;
  // The oldest free slot is not reused first, but 65536 generations make a stale id harmless long
  // enough; a card forgets a region before it is freed.
  place.generation = (place.generation + 1) & 0xffffu;
  if (release) release();
}

RegionId RegionTable::put_mapped(uint8_t* base, uint64_t bytes, Release release) {
  RegionId id = kNoRegion;
  Region* region = claim(base == nullptr ? 0 : bytes, release, &id);
  if (region == nullptr) return kNoRegion;
  region->kind = Kind::kMapped;
  places_[id & 0xffffu].base = base;
  return id;
}

RegionId RegionTable::put_process(pid_t pid, int pidfd, uint64_t address, uint64_t bytes,
                                  Release release, int memory) {
  RegionId id = kNoRegion;
  Region* region = claim(address + bytes < address ? 0 : bytes, release, &id);
  if (region == nullptr) {
    for (const int fd : {pidfd, memory}) {
      if (fd >= 0) close(fd);
    }
    return kNoRegion;
  }
  region->kind = Kind::kProcess;
  region->pid = pid;
  region->pidfd = pidfd;
  region->memory = memory;
  region->address = address;
  return id;
}

RegionId RegionTable::put_pages(const BusWindow& bus, PageList pages, uint64_t bytes,
                                Release release) {
  assert(pages_fit(bus, pages, bytes));
  RegionId id = kNoRegion;
  Region* region = claim(bytes, release, &id);
  if (region == nullptr) return kNoRegion;
  region->kind = Kind::kPages;
  region->bus = bus;
  region->pages = std::move(pages);
  return id;
}

void RegionTable::set_owner(RegionId region, ContextId owner, RegionUse use) {
  assert(contains(region));
  Region& found = regions_[region & 0xffffu];
  found.owner = owner;
  found.use = use;
}

bool RegionTable::free(RegionId region) {
  if (find(region) == nullptr) return false;
  const uint32_t index = region & 0xffffu;
  clear(index);
  free_slots_.push_back(index);
  used_--;
  return true;
}

void RegionTable::free_owned(ContextId owner, RegionUse use) {
  for (uint32_t i = 0; i < regions_.size() && used_ > 0; i++) {
    const Region& region = regions_[i];
    if (region.kind != Kind::kFree && region.owner == owner && region.use == use)
      free(places_[i].generation << 16 | i);
  }
}

uint64_t RegionTable::bytes_of(RegionId region) const {
  return find(region) == nullptr ? 0 : places_[region & 0xffffu].bytes;
}

bool RegionTable::process_range(HostAddress at, uint32_t bytes, ProcessRange* range) const {
  const Region* const region = find(at.region);
  if (region == nullptr || region->kind != Kind::kProcess) return false;
  const Place& place = places_[at.region & 0xffffu];
  if (bytes > place.bytes || at.offset > place.bytes - bytes) return false;
  *range = {region->pid, region->pidfd, region->memory, region->address + at.offset, region->owner};
  return true;
}

bool RegionTable::copy_in(HostAddress from, uint8_t* to, uint32_t bytes) {
  if (const uint8_t* memory = mapped(from, bytes); memory != nullptr) {
    std::memcpy(to, memory, bytes);
    return true;
  }
  return copy(from, to, bytes, Direction::kToCard);
}

bool RegionTable::copy_out(const uint8_t* from, HostAddress to, uint32_t bytes) {
  if (uint8_t* memory = mapped(to, bytes); memory != nullptr) {
    std::memcpy(memory, from, bytes);
    return true;
  }
  // Not written to in this direction.
  return copy(to, const_cast<uint8_t*>(from), bytes, Direction::kToHost);
}

bool RegionTable::copy(HostAddress host, uint8_t* card, uint32_t bytes, Direction direction) {
  const Region* region = find(host.region);
  bool ok = false;
  if (region != nullptr) {
    const Place& place = places_[host.region & 0xffffu];
    if (bytes <= place.bytes && host.offset <= place.bytes - bytes) {
      if (region->kind == Kind::kProcess) {
        ok = copy_process(*region, host.offset, card, bytes, direction);
      } else if (region->kind == Kind::kPages) {
        copy_pages(*region, host.offset, card, bytes, direction);
        ok = true;
      }
    }
  }
  if (!ok) faults_++;
  return ok;
}

bool RegionTable::copy_process(const Region& region, uint64_t offset, uint8_t* card, uint32_t bytes,
                               Direction direction) const {
  if (region.pidfd >= 0) {
    pollfd gone = {region.pidfd, POLLIN, 0};
    if (poll(&gone, 1, 0) != 0) return false;
  }
  if (region.memory != kByNumber) {
    const auto at = static_cast<off_t>(region.address + offset);
    const ssize_t copied = direction == Direction::kToCard ? pread(region.memory, card, bytes, at)
                                                           : pwrite(region.memory, card, bytes, at);
    return copied == static_cast<ssize_t>(bytes);
  }
  const iovec local = {card, bytes};
  // An address of another process: never a pointer here.
  const iovec remote = {reinterpret_cast<void*>(region.address + offset), bytes};
  const ssize_t copied = direction == Direction::kToCard
                             ? process_vm_readv(region.pid, &local, 1, &remote, 1, 0)
                             : process_vm_writev(region.pid, &local, 1, &remote, 1, 0);
  return copied == static_cast<ssize_t>(bytes);
}

void RegionTable::copy_pages(const Region& region, uint64_t offset, uint8_t* card, uint32_t bytes,
                             Direction direction) {
  const uint64_t page_bytes = uint64_t{1} << region.pages.page_shift;
  uint64_t at = offset + region.pages.first_page_offset;
  while (bytes > 0) {
    const uint64_t in_page = at & (page_bytes - 1);
    const auto part = static_cast<uint32_t>(std::min<uint64_t>(bytes, page_bytes - in_page));
    uint8_t* memory =
        region.bus.base + region.pages.addresses[at >> region.pages.page_shift] + in_page;
    if (direction == Direction::kToCard) {
      std::memcpy(card, memory, part);
    } else {
      std::memcpy(memory, card, part);
    }
    card += part;
    at += part;
    bytes -= part;
  }
}

}  // namespace peal::emulator
