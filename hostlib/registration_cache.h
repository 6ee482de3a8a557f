// SPDX-License-Identifier: BSD-2-Clause
// Registrations that operations make by themselves (PEAL_GROUP_REGISTER), kept for the next use of
// the same buffer: registering costs a command to the card, and through the driver pinned pages.
// The least recently looked up goes when there are too many. Whoever unmaps such memory need not
// say so: the transport knows (Transport::departures()), or reaches memory by its addresses, so
// that there is nothing to know. What has departed is not found any more, and is given back as soon
// as nobody holds it and no operation uses it. Under the context's lock. docs/decisions/0040
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <list>
#include <unordered_map>
#include <vector>

#include "hostlib/memory_map.h"
#include "hostlib/transport.h"

namespace peal::host {

inline constexpr size_t kCachedRegistrations = 256;

// May room on the card help?
inline bool is_full(peal_error error) {
  return error == PEAL_ERR_NO_RESOURCES || error == PEAL_ERR_NO_MEMORY;
}

class RegistrationCache {
 public:
  // $PEAL_REGISTRATIONS; INVALID_ARGUMENT where that is no number from 2 to 65536.
  peal_error read_limit();
  void set_limit(size_t most) { most_ = most; }

  // What to find: memory that must be reached in this way, and the registration that must not go
  // for it, because the same call needs it as well.
  struct Wanted {
    const void* address;
    size_t bytes;
    uint32_t access;  // PEAL_READ, PEAL_WRITE
    uint32_t keep;    // a key; 0: none
    // Nothing beside the range: that may go while the range is still in use.
    bool exactly = false;
  };
  // A registration that covers the range for that access: one that is kept, or a new one.
  peal_error take(Transport& transport, const Wanted& wanted, Region* region);
  // The key of one that is held: or, if its memory has departed, another of the same range.
  peal_error renew(Transport& transport, uint32_t key, uint32_t* anew);
  // One that was given out stays until it was let go of as often as it was held: a persistent
  // request names it at each start. False: it is none of the cache's.
  bool hold(uint32_t key);
  void let_go(uint32_t key);
  // Gives one back that is idle, or more, for whoever else needs the room. False: there is none.
  bool make_room(Transport& transport);

  // Changes whenever one that was given out may be gone: by take(), and by what the process unmaps.
  [[nodiscard]] uint64_t version() const { return map_.version(); }
  [[nodiscard]] uint64_t departures() const { return departures_->load(std::memory_order_relaxed); }
  [[nodiscard]] const MemoryMap& map() const { return map_; }
  // Of the transport's; before the first take().
  void watch(const std::atomic<uint64_t>& departures) { departures_ = &departures; }

 private:
  struct Kept {
    Region region;
    std::list<uint32_t>::iterator place;  // in used_; in late_ if it has departed
    uint32_t holds = 0;
    bool departed = false;
  };

  void forget(uint32_t key);
  bool give_back(Transport& transport, uint32_t key);
  bool evict(Transport& transport, uint32_t keep);
  void set_apart_departed(Transport& transport);
  void forget_departed(Transport& transport);
  void drop_covered(Transport& transport, const Region& region, uint32_t keep);

  static constinit const std::atomic<uint64_t> kNone;

  MemoryMap map_;
  std::list<uint32_t> used_;  // keys, the least recently used first
  std::list<uint32_t> late_;  // that have departed, and are to be given back
  std::unordered_map<uint32_t, Kept> kept_;
  const std::atomic<uint64_t>* departures_ = &kNone;
  uint64_t departed_ = 0;  // of them, seen
  size_t most_ = kCachedRegistrations;
};

// Keys of the cache that are held for as long as this lives, which is shorter than the cache does.
class HeldKeys {
 public:
  HeldKeys() = default;
  ~HeldKeys() {
    for (const uint32_t key : keys_) cache_->let_go(key);
  }
  HeldKeys(const HeldKeys&) = delete;
  HeldKeys& operator=(const HeldKeys&) = delete;

  void hold(RegistrationCache& cache, uint32_t key);
  // Those whose memory has departed are replaced, here and where they are named, by others of the
  // same ranges.
  peal_error renew(Transport& transport, std::initializer_list<uint32_t*> names);

 private:
  RegistrationCache* cache_ = nullptr;
  std::vector<uint32_t> keys_;  // each once
};

}  // namespace peal::host
