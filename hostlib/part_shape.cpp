// SPDX-License-Identifier: BSD-2-Clause
// What tables of parts were written for; see part_shape.h.
#include "hostlib/part_shape.h"

#include <algorithm>
#include <cstring>

namespace peal::host {
namespace {

static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= sizeof(TwoNumbers), "copies are so aligned");

// A bit for each that is said.
uint8_t said(const size_t* received, const size_t* sent) {
  return static_cast<uint8_t>((received != nullptr ? 1 : 0) | (sent != nullptr ? 2 : 0));
}

}  // namespace

bool PartShape::has_these_offsets(const size_t* received, const size_t* sent) const {
  if (said(received, sent) != offsets_) return false;
  const auto same = [this](const size_t* array, Array which) {
    return array == nullptr || std::memcmp(array, copy_of(which), ranks_ * sizeof(*array)) == 0;
  };
  return same(received, kReceivedOffsets) && same(sent, kSentOffsets);
}

void PartShape::remember(const PartsCall& call, uint32_t ranks, uint64_t memory_version,
                         const Posting& posting) {
  forget();
  const PartArrays sent = call.sends_parts() ? call.sent : PartArrays();
  ranks_ = ranks;
  stride_ = static_cast<uint32_t>(copy_stride(ranks));
  numbers_.resize(size_t{kArrays} * stride_);
  const auto copy = [&](Array array, const size_t* from) {
    if (from != nullptr) std::copy_n(from, ranks, numbers_.data() + array * size_t{stride_});
  };
  copy(kReceivedBytes, call.received.bytes);
  copy(kSentBytes, sent.bytes);
  copy(kReceivedOffsets, call.received.offsets);
  copy(kSentOffsets, sent.offsets);
  offsets_ = said(call.received.offsets, sent.offsets);
  operation_ = call.operation;
  send_ = call.send;
  receive_ = call.receive;
  posting_ = posting;
  memory_version_ = memory_version;
}

}  // namespace peal::host
