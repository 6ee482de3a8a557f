// SPDX-License-Identifier: BSD-2-Clause
// What a table of parts was written for. Programs exchange the same shape again and again: where a
// call has the buffers and arrays that a free table was written for, neither is looked at twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hostlib/posting.h"
#include "hostlib/same_numbers.h"
#include "peal/peal.h"

namespace peal::host {

// Blocks of one side of a call, as its caller says them: a number for each rank.
struct PartArrays {
  const size_t* bytes = nullptr;
  const size_t* offsets = nullptr;  // null: one block behind the other
};

// An operation whose blocks differ in length, as its caller says it. A table says where the blocks
// are: where the send blocks lie only if sends_parts(), else there is one at most.
struct PartsCall {
  peal_operation operation = PEAL_OPERATION_NONE;
  const void* send = nullptr;
  const void* receive = nullptr;
  PartArrays received;
  PartArrays sent;  // nobody looks at them unless sends_parts()

  [[nodiscard]] bool in_place() const { return send == PEAL_IN_PLACE; }
  [[nodiscard]] bool sends_parts() const {
    return operation == PEAL_OPERATION_ALLTOALLV && !in_place();
  }
  [[nodiscard]] bool says_offsets() const {
    return received.offsets != nullptr || sent.offsets != nullptr;
  }
};

// Of one table; at first of nothing.
class PartShape {
 public:
  // Whether this call comes to the same table and posting; its group is the table's, so it has as
  // many ranks. `memory_version` is the MemoryMap's: other memory, other keys. Inlined into the
  // calls that do not wait, where every instruction counts (tools/host-cost). So many differences
  // in turn, and GCC takes the end for code that is never reached, unless each is called unlikely.
  [[nodiscard, gnu::always_inline]] inline bool is_of(const PartsCall& call,
                                                      uint64_t memory_version) const {
    if (memory_version_ != memory_version) [[unlikely]]
      return false;
    if (send_ != call.send) [[unlikely]]
      return false;
    if (operation_ != call.operation) [[unlikely]]
      return false;
    if (receive_ != call.receive) [[unlikely]]
      return false;
    return has_lengths_of(call) && has_offsets_of(call);
  }
  // Copies the arrays. May throw; then it is of nothing. The version is never 0.
  void remember(const PartsCall& call, uint32_t ranks, uint64_t memory_version,
                const Posting& posting);
  void forget() { memory_version_ = 0; }
  // To be posted as it is: whose and which it is are written anew each time.
  [[nodiscard]] Posting& posting() { return posting_; }

 private:
  enum Array : uint8_t { kReceivedBytes, kSentBytes, kReceivedOffsets, kSentOffsets, kArrays };

  [[nodiscard]] const size_t* copy_of(Array array) const {
    return numbers_.data() + array * size_t{stride_};
  }
  [[nodiscard, gnu::always_inline]] inline bool has_lengths_of(const PartsCall& call) const {
    const Copied received = {call.received.bytes, copy_of(kReceivedBytes)};
    if (received.array == nullptr) [[unlikely]]
      return false;
    if (!call.sends_parts()) return all_same(ranks_, received);
    const Copied sent = {call.sent.bytes, copy_of(kSentBytes)};
    if (sent.array == nullptr) [[unlikely]]
      return false;
    return all_same(ranks_, received, sent);
  }
  [[nodiscard, gnu::always_inline]] inline bool has_offsets_of(const PartsCall& call) const {
    if (!call.says_offsets()) return offsets_ == 0;
    return has_these_offsets(call.received.offsets,
                             call.sends_parts() ? call.sent.offsets : nullptr);
  }
  [[nodiscard]] bool has_these_offsets(const size_t* received, const size_t* sent) const;

  uint64_t memory_version_ = 0;
  const void* send_ = nullptr;
  const void* receive_ = nullptr;
  peal_operation operation_ = PEAL_OPERATION_NONE;
  uint32_t ranks_ = 0;
  uint32_t stride_ = 0;          // of the copies: copy_stride()
  uint8_t offsets_ = 0;          // those that the caller said
  std::vector<size_t> numbers_;  // copies, in the order of Array; of what was not said anything
  Posting posting_ = {};
};

}  // namespace peal::host
