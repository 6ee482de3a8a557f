// SPDX-License-Identifier: BSD-2-Clause
// What tables of parts were written for; see part_shape.h.
#include "hostlib/part_shape.h"

namespace peal::host {
namespace {

static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= sizeof(TwoNumbers), "copies are so aligned");

}  // namespace

void PartShape::remember(const PartsCall& call, uint32_t ranks, uint64_t memory_version,
                         const Posting& posting) {
  forget();
  with_arrays(call, [&](Form form, const auto*... arrays) {
    form_ = form;
    copies_.resize(copied_numbers(sizeof...(arrays), ranks));
    copy_numbers(copies_.data(), ranks, arrays...);
    return true;
  });
  ranks_ = ranks;
  send_ = call.send;
  receive_ = call.receive;
  posting_ = posting;
  memory_version_ = memory_version;
}

}  // namespace peal::host
