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
};

// Of one table; at first of nothing.
class PartShape {
  // (In front of those that use it, whose types are deduced from it.)
  // The operation, and a bit for the offsets of each side that its caller says and somebody looks
  // at.
  using Form = uint32_t;
  static constexpr Form kOfReceived = 0x100;
  static constexpr Form kOfSent = 0x200;
  // What `use` makes of the call's form, and of all arrays that it says and somebody looks at.
  template <typename Use>
  [[gnu::always_inline]] static inline bool with_arrays(const PartsCall& call, Use use) {
    const PartArrays& to = call.received;
    const PartArrays& from = call.sent;
    const Form form = call.operation;
    if (!call.sends_parts()) {
      if (to.offsets == nullptr) return use(form, to.bytes);
      return use(form | kOfReceived, to.bytes, to.offsets);
    }
    if (from.offsets == nullptr) {
      if (to.offsets == nullptr) return use(form, to.bytes, from.bytes);
      return use(form | kOfReceived, to.bytes, from.bytes, to.offsets);
    }
    if (to.offsets == nullptr) return use(form | kOfSent, to.bytes, from.bytes, from.offsets);
    return use(form | kOfReceived | kOfSent, to.bytes, from.bytes, to.offsets, from.offsets);
  }

 public:
  // Whether this call comes to the same table and posting; its group is the table's, so it has as
  // many ranks. `memory_version` is the MemoryMap's: other memory, other keys. Inlined into the
  // calls that do not wait, where every instruction counts (tools/host-cost). So many differences
  // in turn, and GCC takes the end for code that is never reached, unless each is called unlikely.
  [[nodiscard, gnu::always_inline]] inline bool is_of(const PartsCall& call,
                                                      uint64_t memory_version) const {
    if (memory_version_ != memory_version) [[unlikely]]
      return false;
    if (call.received.bytes == nullptr) [[unlikely]]
      return false;
    if (send_ != call.send) [[unlikely]]
      return false;
    if (receive_ != call.receive) [[unlikely]]
      return false;
    if (call.sends_parts() && call.sent.bytes == nullptr) [[unlikely]]
      return false;
    return with_arrays(
        call, [this](Form form, const auto*... arrays) __attribute__((always_inline)) {
          return form_ == form && all_same(ranks_, copies_.data(), arrays...);
        });
  }
  // Copies the arrays. May throw; then it is of nothing. The version is never 0.
  void remember(const PartsCall& call, uint32_t ranks, uint64_t memory_version,
                const Posting& posting);
  // The same for who has written posting() already. False where there is no room for the arrays:
  // then it is of nothing.
  [[nodiscard, gnu::always_inline]] inline bool remember_in_room(const PartsCall& call,
                                                                 uint32_t ranks,
                                                                 uint64_t memory_version) {
    forget();
    const bool room = with_arrays(
        call, [&](Form form, const auto*... arrays) __attribute__((always_inline)) {
          if (copies_.size() < copied_numbers(sizeof...(arrays), ranks)) [[unlikely]]
            return false;
          form_ = form;
          copy_numbers(copies_.data(), ranks, arrays...);
          return true;
        });
    if (!room) [[unlikely]]
      return false;
    ranks_ = ranks;
    send_ = call.send;
    receive_ = call.receive;
    memory_version_ = memory_version;
    return true;
  }
  void forget() { memory_version_ = 0; }
  // To be posted as it is: which it is gets written into the ring only.
  [[nodiscard]] Posting& posting() { return posting_; }

 private:
  uint64_t memory_version_ = 0;
  const void* send_ = nullptr;
  const void* receive_ = nullptr;
  Form form_ = PEAL_OPERATION_NONE;
  uint32_t ranks_ = 0;
  std::vector<size_t> copies_;  // of what with_arrays() finds
  Posting posting_ = {};
};

}  // namespace peal::host
