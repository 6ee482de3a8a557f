// SPDX-License-Identifier: BSD-2-Clause
// The card's counters, by index and name.
#include "abi/counters.h"

#include <algorithm>

#include "hostlib/administration.h"
#include "hostlib/handles.h"

namespace peal::host {
namespace {

peal_error read_all(peal_context& context, uint64_t* values, size_t capacity, size_t* count) {
  uint32_t first = 0;
  uint32_t total = 1;
  while (first < total) {
    peal_read_counters_reply part = {};
    const peal_error error = read_counters(*context.transport, first, &part);
    if (error != PEAL_OK) return error;
    total = part.total;
    if (part.count == 0 && first < total) {
      return fail(PEAL_ERR_CARD_ANSWER, "the card has %u counters but sends none after %u", total,
                  first);
    }
    for (uint32_t i = 0; i < part.count && first + i < capacity; i++)
      values[first + i] = part.values[i];
    first += part.count;
  }
  *count = total;
  return PEAL_OK;
}

}  // namespace
}  // namespace peal::host

using peal::host::fail;

extern "C" peal_error peal_counters(peal_context* context, uint64_t* values, size_t capacity,
                                    size_t* count) {
  if (context == nullptr || count == nullptr || (values == nullptr && capacity != 0)) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_counters: an argument is null");
  }
  *count = 0;
  return peal::host::guarded(*context, "peal_counters", [&] {
    return peal::host::read_all(*context, values, capacity, count);
  });
}

extern "C" const char* peal_counter_name(size_t index) {
  static const char* const kNames[] = {
#define PEAL_COUNTER_NAME(symbol, name, text) name,
      PEAL_COUNTERS(PEAL_COUNTER_NAME)
#undef PEAL_COUNTER_NAME
  };
  return index < std::size(kNames) ? kNames[index] : nullptr;
}
