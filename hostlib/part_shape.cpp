// SPDX-License-Identifier: BSD-2-Clause
// What tables of parts were written for; see part_shape.h.
#include "hostlib/part_shape.h"

#include <algorithm>

namespace peal::host {
namespace {

static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= sizeof(TwoNumbers), "copies are so aligned");

}  // namespace

void PartShape::remember(const PartsCall& call, uint32_t ranks, uint64_t memory_version,
                         const Posting& posting) {
  forget();
  with_arrays(call, [&](Form, const auto*... arrays) {
    copies_.resize(std::max(copies_.size(), copied_numbers(sizeof...(arrays), ranks)));
    return true;
  });
  posting_ = posting;
  (void)remember_in_room(call, ranks, memory_version);
}

}  // namespace peal::host
