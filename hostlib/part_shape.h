// SPDX-License-Identifier: BSD-2-Clause
// What a table of parts was written for. Programs exchange the same shape again and again: where a
// call has the buffers and arrays that a free table was written for, neither is looked at twice.
#pragma once

#include <cstdint>
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
  // Whether a call with these arguments comes to the same table and posting.
  [[nodiscard]] bool is_of(const PartArguments& arguments) const;
  // Copies the arrays. May throw; then it is of nothing.
  void remember(const PartArguments& arguments, const Posting& posting);
  void forget() { memory_version_ = 0; }
  [[nodiscard]] const Posting& posting() const { return posting_; }

 private:
  struct Side {
    const void* address = nullptr;
    uint32_t count = 0;
    bool offsets = false;  // said by the caller
  };

  uint64_t memory_version_ = 0;
  peal_operation operation_ = PEAL_OPERATION_NONE;
  Side send_;
  Side receive_;
  std::vector<size_t> numbers_;  // lengths, then offsets if said: received, then sent
  Posting posting_ = {};
};

}  // namespace peal::host
