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

// Where a block lies in its buffer, in bytes.
struct Extent {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// Buffers of an operation, in blocks of the largest length, whatever the rank.
struct BufferSizes {
  uint32_t send = 0;
  uint32_t receive = 0;
};

struct BlockRow {
  uint8_t operation;
  bool in_place;   // may be
  bool rooted;     // from the root, which receives nothing, to the others, who send nothing
  bool to_each;    // a rank sends a block to each rank; else one for all
  bool from_each;  // a rank has a block from each rank in the end; else the root's
  bool parts;      // of lengths of their own
};

[[nodiscard]] bool has_root(uint8_t operation);
// Does it need everybody's address?
[[nodiscard]] bool talks_to_all(uint32_t operation, uint32_t algorithm);
[[nodiscard]] bool may_be_in_place(uint8_t operation);
// Blocks have lengths of their own, and places that a table names (struct peal_part).
[[nodiscard]] bool has_parts(uint8_t operation);
// A rank sends each rank a block of its own.
[[nodiscard]] bool has_block_for_each(uint8_t operation);
[[nodiscard]] BufferSizes buffer_sizes(uint8_t operation, uint32_t ranks);
// How long this block is, whoever asks. Of those of an operation with parts many are empty, some
// short, and some as long as they may be; in place what two ranks exchange is of one length.
[[nodiscard]] uint64_t block_length(const OperationPlan& operation, const BlockName& name);

// Of one rank in one operation.
class Blocks {
 public:
  Blocks(const OperationPlan& operation, uint32_t ranks, uint32_t rank);

  // Whether the operation has anything to do with user memory.
  [[nodiscard]] bool any() const { return row_ != nullptr; }
  // How many the rank gives, and where each lies: in its send buffer or, in place, in its receive
  // buffer.
  [[nodiscard]] uint32_t sent() const;
  [[nodiscard]] Extent sent_extent(uint32_t index) const;
  [[nodiscard]] BlockName sent_name(uint32_t index) const;
  // How many it has in its receive buffer in the end, and where.
  [[nodiscard]] uint32_t received() const;
  // Parts lie backwards, and not side by side.
  [[nodiscard]] Extent received_extent(uint32_t index) const {
    const uint64_t place = row_->parts ? ranks_ - 1 - index : index;
    return {place * operation_.block_bytes, length(received_name(index))};
  }
  [[nodiscard]] BlockName received_name(uint32_t index) const {
    return {row_->from_each ? index : operation_.root, row_->to_each ? rank_ : 0};
  }
  // How many a table of parts names: those sent, where there is one for each rank and none is in
  // place, and those received. 0 where there is no table.
  [[nodiscard]] uint32_t named_parts() const;
  // Whether it ends only when every rank has posted it, or else only when the root has.
  [[nodiscard]] bool waits_for_all() const;

 private:
  [[nodiscard]] uint64_t length(const BlockName& name) const {
    return row_->parts ? block_length(operation_, name) : operation_.block_bytes;
  }

  const BlockRow* row_;
  OperationPlan operation_;
  uint32_t ranks_;
  uint32_t rank_;
};

}  // namespace peal::sim
