// SPDX-License-Identifier: BSD-2-Clause
// Which blocks an operation takes from the memory of a rank's user and which it leaves there: what
// hosts fill, what checkers expect, and how far a card may reach.
// A row for each operation that has any.
#pragma once

#include <cstdint>

#include "emulator/cluster/operation_plan.h"

namespace peal::sim {

// Whose a block is, and for whom: 0 where it is for everybody.
struct BlockName {
  uint32_t from = 0;
  uint32_t to = 0;
};

// Buffers of an operation, in blocks, whatever the rank.
struct BufferSizes {
  uint32_t send = 0;
  uint32_t receive = 0;
};

struct BlockRow;

[[nodiscard]] bool has_root(uint8_t operation);
[[nodiscard]] bool may_be_in_place(uint8_t operation);
[[nodiscard]] BufferSizes buffer_sizes(uint8_t operation, uint32_t ranks);

// Of one rank in one operation.
class Blocks {
 public:
  Blocks(const OperationPlan& operation, uint32_t ranks, uint32_t rank);

  // Whether the operation has anything to do with user memory.
  [[nodiscard]] bool any() const { return row_ != nullptr; }
  // How many the rank gives: first in its send buffer, or, in place,
  // from this block of its receive buffer on.
  [[nodiscard]] uint32_t sent() const;
  [[nodiscard]] uint32_t sent_at() const;
  [[nodiscard]] BlockName sent_name(uint32_t index) const;
  // How many it has in its receive buffer in the end.
  [[nodiscard]] uint32_t received() const;
  [[nodiscard]] BlockName received_name(uint32_t index) const;
  // Whether it ends only when every rank has posted it, or else only when the root has.
  [[nodiscard]] bool waits_for_all() const;

 private:
  const BlockRow* row_;
  uint32_t ranks_;
  uint32_t rank_;
  uint32_t root_;
  bool in_place_;
};

}  // namespace peal::sim
