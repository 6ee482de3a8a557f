// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/blocks.h"

#include <algorithm>

#include "emulator/cluster/mix.h"

namespace peal::sim {

namespace {

constexpr uint64_t kLengths = 0x1e97;  // of the random numbers that lengths are drawn from

constexpr BlockRow kRows[] = {
    {PEAL_OPERATION_ALLGATHER, true, false, false, true, false},
    {PEAL_OPERATION_BROADCAST, false, true, false, false, false},
    {PEAL_OPERATION_ALLTOALL, true, false, true, true, false},
    {PEAL_OPERATION_ALLGATHERV, true, false, false, true, true},
    {PEAL_OPERATION_ALLTOALLV, true, false, true, true, true},
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

bool talks_to_all(uint32_t operation, uint32_t algorithm) {
  return algorithm == PEAL_ALGORITHM_DIRECT || operation == PEAL_OPERATION_ALLTOALLV;
}

bool may_be_in_place(uint8_t operation) {
  const BlockRow* row = row_of(operation);
  return row != nullptr && row->in_place;
}

bool has_parts(uint8_t operation) {
  const BlockRow* row = row_of(operation);
  return row != nullptr && row->parts;
}

uint64_t block_length(const OperationPlan& operation, const BlockName& name) {
  const uint64_t longest = operation.block_bytes;
  if (!has_parts(operation.operation)) return longest;
  const bool mutual =
      (operation.in_place || operation.place_by_rank) && has_block_for_each(operation.operation);
  const uint64_t draw = uint64_t{operation.lengths} << 32 | kLengths;
  const uint64_t drawn = mutual
                             ? mix(draw, std::min(name.from, name.to), std::max(name.from, name.to))
                             : mix(draw, name.from, name.to);
  switch (drawn % 8) {
    case 0:
    case 1:
      return 0;
    case 2:
      return longest;
    case 3:
      return std::min<uint64_t>(drawn / 8 % 16, longest);
    default:
      return drawn / 8 % (longest + 1);
  }
}

bool has_block_for_each(uint8_t operation) {
  const BlockRow* row = row_of(operation);
  return row != nullptr && row->to_each;
}

BufferSizes buffer_sizes(uint8_t operation, uint32_t ranks) {
  const BlockRow* row = row_of(operation);
  if (row == nullptr) return {};
  return {row->to_each ? ranks : 1, row->from_each ? ranks : 1};
}

Blocks::Blocks(const OperationPlan& operation, uint32_t ranks, uint32_t rank)
    : row_(row_of(operation.operation)), operation_(operation), ranks_(ranks), rank_(rank) {}

uint32_t Blocks::sent() const {
  if (row_ == nullptr || (row_->rooted && rank_ != operation_.root)) return 0;
  return row_->to_each ? ranks_ : 1;
}

Extent Blocks::sent_extent(uint32_t index) const {
  if (operation_.in_place) return received_extent(row_->to_each ? index : rank_);
  return {index * uint64_t{operation_.block_bytes}, length(sent_name(index))};
}

BlockName Blocks::sent_name(uint32_t index) const { return {rank_, row_->to_each ? index : 0}; }

uint32_t Blocks::received() const {
  if (row_ == nullptr || (row_->rooted && rank_ == operation_.root)) return 0;
  return row_->from_each ? ranks_ : 1;
}

uint32_t Blocks::named_parts() const {
  if (row_ == nullptr || !row_->parts) return 0;
  return (row_->to_each && !operation_.in_place ? sent() : 0) + received();
}

bool Blocks::waits_for_all() const { return row_ == nullptr || row_->from_each; }

}  // namespace peal::sim
