// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/blocks.h"

namespace peal::sim {

struct BlockRow {
  uint8_t operation;
  bool in_place;   // may be
  bool rooted;     // from the root, which receives nothing, to the others, who send nothing
  bool to_each;    // a rank sends a block to each rank; else one for all
  bool from_each;  // a rank has a block from each rank in the end; else the root's
};

namespace {

constexpr BlockRow kRows[] = {
    {PEAL_OPERATION_ALLGATHER, true, false, false, true},
    {PEAL_OPERATION_BROADCAST, false, true, false, false},
    {PEAL_OPERATION_ALLTOALL, true, false, true, true},
};

const BlockRow* row_of(uint8_t operation) {
  for (const BlockRow& row : kRows)
    if (row.operation == operation) return &row;
  return nullptr;
}

}  // namespace

bool has_root(uint8_t operation) {
  const BlockRow* row = row_of(operation);
  return row != nullptr && row->rooted;
}

bool may_be_in_place(uint8_t operation) {
  const BlockRow* row = row_of(operation);
  return row != nullptr && row->in_place;
}

BufferSizes buffer_sizes(uint8_t operation, uint32_t ranks) {
  const BlockRow* row = row_of(operation);
  if (row == nullptr) return {};
  return {row->to_each ? ranks : 1, row->from_each ? ranks : 1};
}

Blocks::Blocks(const OperationPlan& operation, uint32_t ranks, uint32_t rank)
    : row_(row_of(operation.operation)),
      ranks_(ranks),
      rank_(rank),
      root_(operation.root),
      in_place_(operation.in_place) {}

uint32_t Blocks::sent() const {
  if (row_ == nullptr || (row_->rooted && rank_ != root_)) return 0;
  return row_->to_each ? ranks_ : 1;
}

uint32_t Blocks::sent_at() const { return in_place_ && !row_->to_each ? rank_ : 0; }

BlockName Blocks::sent_name(uint32_t index) const { return {rank_, row_->to_each ? index : 0}; }

uint32_t Blocks::received() const {
  if (row_ == nullptr || (row_->rooted && rank_ == root_)) return 0;
  return row_->from_each ? ranks_ : 1;
}

BlockName Blocks::received_name(uint32_t index) const {
  return {row_->from_each ? index : root_, row_->to_each ? rank_ : 0};
}

bool Blocks::waits_for_all() const { return row_ == nullptr || row_->from_each; }

}  // namespace peal::sim
