// SPDX-License-Identifier: BSD-2-Clause
// The kept registrations; see registration_cache.h.
#include "hostlib/registration_cache.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/whole_number.h"
#include "hostlib/administration.h"

namespace peal::host {
namespace {

constexpr uint64_t kLeast = 2;  // an operation needs two buffers
constexpr uint64_t kMost = 65536;

bool is_just(const Region& region, const RegistrationCache::Wanted& wanted) {
  return region.start == reinterpret_cast<uintptr_t>(wanted.address) &&
         region.bytes == wanted.bytes;
}

}  // namespace

constinit const std::atomic<uint64_t> RegistrationCache::kNone = 0;

peal_error RegistrationCache::read_limit() {
  const char* text = getenv("PEAL_REGISTRATIONS");
  if (text == nullptr || *text == '\0') return PEAL_OK;
  uint64_t most = 0;
  if (!parse_whole(text, kLeast, kMost, &most)) {
    return fail(PEAL_ERR_INVALID_ARGUMENT,
                "$PEAL_REGISTRATIONS is \"%s\": expected a number from %llu to %llu", text,
                static_cast<unsigned long long>(kLeast), static_cast<unsigned long long>(kMost));
  }
  most_ = most;
  return PEAL_OK;
}

void RegistrationCache::forget(uint32_t key) {
  const auto kept = kept_.find(key);
  if (kept == kept_.end()) return;
  if (kept->second.departed) {
    late_.erase(kept->second.place);
  } else {
    used_.erase(kept->second.place);
    map_.remove(key);
  }
  kept_.erase(kept);
}

bool RegistrationCache::hold(uint32_t key) {
  const auto kept = kept_.find(key);
  if (kept == kept_.end()) return false;
  kept->second.holds++;
  return true;
}

void RegistrationCache::let_go(uint32_t key) {
  if (const auto kept = kept_.find(key); kept != kept_.end()) kept->second.holds--;
}

// False: it is held, or an operation still uses it.
bool RegistrationCache::give_back(Transport& transport, uint32_t key) {
  if (kept_.at(key).holds > 0) return false;
  if (unregister_memory(transport, key) == PEAL_ERR_BUSY) return false;
  forget(key);
  return true;
}

// False: all are held or in use, or there is none.
bool RegistrationCache::evict(Transport& transport, uint32_t keep) {
  for (const uint32_t key : used_) {
    if (key != keep && give_back(transport, key)) return true;
  }
  return false;
}

bool RegistrationCache::make_room(Transport& transport) {
  const size_t before = kept_.size();
  forget_departed(transport);
  return kept_.size() < before || evict(transport, 0);
}

// What the process has unmapped is not looked up any more.
void RegistrationCache::set_apart_departed(Transport& transport) {
  const uint64_t left = departures();
  if (left == departed_) return;
  departed_ = left;
  for (uint32_t key = 0; transport.next_departed(&key);) {
    const auto kept = kept_.find(key);
    if (kept == kept_.end() || kept->second.departed) continue;  // the user's own registration
    kept->second.departed = true;
    late_.splice(late_.end(), used_, kept->second.place);
    map_.remove(key);
  }
}

// One that is held, or that an operation still uses, is tried again the next time.
void RegistrationCache::forget_departed(Transport& transport) {
  set_apart_departed(transport);
  for (auto each = late_.begin(); each != late_.end();) {
    const uint32_t key = *each++;
    (void)give_back(transport, key);
  }
}

// A buffer that grows from call to call leaves one registration.
void RegistrationCache::drop_covered(Transport& transport, const Region& region, uint32_t keep) {
  std::vector<uint32_t> covered;
  for (const Region& each : map_.regions()) {
    const bool less = (each.access & region.access) == each.access;
    if (each.key != region.key && each.key != keep && less &&
        region.covers(each.start, each.bytes)) {
      covered.push_back(each.key);
    }
  }
  for (const uint32_t key : covered) (void)give_back(transport, key);
}

peal_error RegistrationCache::take(Transport& transport, const Wanted& wanted, Region* region) {
  forget_departed(transport);
  const Region* kept = map_.lookup(wanted.address, wanted.bytes, wanted.access);
  if (kept != nullptr && (!wanted.exactly || is_just(*kept, wanted))) {
    used_.splice(used_.end(), used_, kept_.at(kept->key).place);
    *region = *kept;
    return PEAL_OK;
  }
  while (kept_.size() >= most_ && evict(transport, wanted.keep)) {
  }
  Region made;
  made.start = reinterpret_cast<uintptr_t>(wanted.address);
  made.bytes = wanted.bytes;
  made.access = wanted.access;
  std::string text;
  peal_error error = PEAL_OK;
  do {
    // A buffer that is only sent is only read; the key's access keeps it so.
    error = register_memory(transport, const_cast<void*>(wanted.address), wanted.bytes,
                            wanted.access, &made.key);
    if (error != PEAL_OK) text = last_error_text();
  } while (is_full(error) && evict(transport, wanted.keep));
  if (error != PEAL_OK) return fail(error, "%s", text.c_str());
  map_.add(made);
  kept_[made.key] = {made, used_.insert(used_.end(), made.key)};
  drop_covered(transport, made, wanted.keep);
  *region = made;
  return PEAL_OK;
}

peal_error RegistrationCache::renew(Transport& transport, uint32_t key, uint32_t* anew) {
  *anew = key;
  forget_departed(transport);
  const Kept& kept = kept_.at(key);
  if (!kept.departed) return PEAL_OK;
  const Region& gone = kept.region;
  Region region;
  const peal_error error = take(transport,
                                {.address = reinterpret_cast<const void*>(gone.start),
                                 .bytes = gone.bytes,
                                 .access = gone.access,
                                 .keep = 0,
                                 .exactly = true},
                                &region);
  if (error == PEAL_OK) *anew = region.key;
  return error;
}

void HeldKeys::hold(RegistrationCache& cache, uint32_t key) {
  cache_ = &cache;
  if (std::find(keys_.begin(), keys_.end(), key) != keys_.end()) return;
  keys_.reserve(keys_.size() + 1);
  if (cache.hold(key)) keys_.push_back(key);
}

peal_error HeldKeys::renew(Transport& transport, std::initializer_list<uint32_t*> names) {
  for (uint32_t& key : keys_) {
    uint32_t anew = 0;
    const peal_error error = cache_->renew(transport, key, &anew);
    if (error != PEAL_OK) return error;
    if (anew == key) continue;
    (void)cache_->hold(anew);
    for (uint32_t* const name : names)
      if (*name == key) *name = anew;
    cache_->let_go(key);
    key = anew;
  }
  return PEAL_OK;
}

}  // namespace peal::host
