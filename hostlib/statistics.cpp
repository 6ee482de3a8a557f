// SPDX-License-Identifier: BSD-2-Clause
// What a context has done and holds.
#include <algorithm>

#include "hostlib/handles.h"
#include "hostlib/rings.h"
#include "hostlib/sized.h"

namespace peal::host {
namespace {

void count_regions(const MemoryMap& map, peal_statistics* whole) {
  whole->regions += static_cast<uint32_t>(map.regions().size());
  for (const Region& region : map.regions()) whole->region_bytes += region.bytes;
}

peal_error read_statistics(peal_context& context, peal_statistics* statistics) {
  const std::lock_guard guard(context.mutex);
  drain(context);
  peal_statistics whole = {};
  whole.posted = context.ring.submission_tail;
  whole.completed = context.completed;
  whole.failed = context.failed;
  whole.doorbells = context.doorbells;
  whole.sleeps = context.sleeps;
  whole.card_ns = context.card_ns;
  whole.groups =
      static_cast<uint32_t>(std::count_if(context.groups.begin(), context.groups.end(),
                                          [](const auto& each) { return !has_ended(*each); }));
  for (const peal_request& request : requests_of(context)) {
    whole.requests += request.state == peal_request::State::kFree ? 0 : 1;
    const bool program =
        request.persistent != nullptr && request.persistent->programs[0] != nullptr;
    whole.programs += program ? 1 : 0;
  }
  whole.ordinary = context.ordinary;
  count_regions(context.memory, &whole);
  count_regions(context.cache.map(), &whole);
  return give_struct(whole, "peal_statistics", statistics);
}

}  // namespace
}  // namespace peal::host

extern "C" peal_error peal_read_statistics(peal_context* context, peal_statistics* statistics) {
  if (context == nullptr || statistics == nullptr) {
    return peal::host::fail(PEAL_ERR_INVALID_ARGUMENT, "peal_read_statistics: an argument is null");
  }
  return peal::host::guarded(*context, "peal_read_statistics",
                             [&] { return peal::host::read_statistics(*context, statistics); });
}
