// SPDX-License-Identifier: BSD-2-Clause
// What a table of parts was written for. Programs exchange the same shape again and again: where a
// call has the buffers and arrays that a free table was written for, neither is looked at twice.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "hostlib/blocks.h"
#include "hostlib/posting.h"

namespace peal::host {

// A call as it depends on its arguments alone; `send.count` is 0 in place.
struct PartArguments {
  peal_operation operation = PEAL_OPERATION_NONE;
  uint64_t memory_version = 0;  // of the MemoryMap: other memory, other keys; never 0
  const Blocks& send;
  const Blocks& receive;
};

// Of one table; at first of nothing.
class PartShape {
 public:
  // Whether a call with these arguments comes to the same table and posting. Inlined into the calls
  // that do not wait, where every instruction counts (tools/host-cost).
  [[nodiscard, gnu::always_inline]] inline bool is_of(const PartArguments& arguments) const {
    if (memory_version_ != arguments.memory_version || operation_ != arguments.operation ||
        !receive_.is_of(arguments.receive) || !send_.is_of(arguments.send)) {
      return false;
    }
    const size_t* numbers = numbers_.data();
    return skip_same(numbers, arguments.receive) && skip_same(numbers, arguments.send);
  }
  // Copies the arrays. May throw; then it is of nothing.
  void remember(const PartArguments& arguments, const Posting& posting);
  void forget() { memory_version_ = 0; }
  // To be posted as it is: whose and which it is are written anew each time.
  [[nodiscard]] Posting& posting() { return posting_; }

 private:
  struct Side {
    const void* address = nullptr;
    uint32_t count = 0;
    bool offsets = false;  // said by the caller

    [[nodiscard]] bool is_of(const Blocks& blocks) const {
      return address == blocks.address && count == blocks.count &&
             offsets == (blocks.offsets != nullptr);
    }
  };

  // Whether the next numbers are the array's; goes on behind them.
  [[nodiscard, gnu::always_inline]] static inline bool skip_same(const size_t*& numbers,
                                                                 const size_t* array,
                                                                 uint32_t count) {
    const size_t* const from = numbers;
    numbers += count;
    return array != nullptr && std::memcmp(from, array, count * sizeof(*array)) == 0;
  }
  [[nodiscard, gnu::always_inline]] static inline bool skip_same(const size_t*& numbers,
                                                                 const Blocks& blocks) {
    if (blocks.count == 0) return true;
    return skip_same(numbers, blocks.bytes, blocks.count) &&
           (blocks.offsets == nullptr || skip_same(numbers, blocks.offsets, blocks.count));
  }

  uint64_t memory_version_ = 0;
  peal_operation operation_ = PEAL_OPERATION_NONE;
  Side send_;
  Side receive_;
  std::vector<size_t> numbers_;  // lengths, then offsets if said: received, then sent
  Posting posting_ = {};
};

}  // namespace peal::host
