// SPDX-License-Identifier: BSD-2-Clause
// Blocks that differ in length: lengths that all ranks draw alike, and places that each draws for
// itself.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tests/e2e/rank_support.h"

namespace peal::e2e {

// What the lengths are like.
enum class Shape : uint8_t { kAny, kHalfEmpty, kAllOfOne, kNothing };
inline constexpr Shape kShapes[] = {Shape::kAny, Shape::kHalfEmpty, Shape::kAllOfOne,
                                    Shape::kNothing};

// One side of an allgatherv or alltoallv.
struct BlockSide {
  std::vector<size_t> bytes;
  std::vector<size_t> offsets;  // none: one behind the other
  size_t end = 0;               // behind the last byte

  [[nodiscard]] const size_t* places() const { return offsets.empty() ? nullptr : offsets.data(); }
  [[nodiscard]] size_t offset(uint32_t block) const;
};

// Both sides of this rank's call.
struct BlockCall {
  bool to_each = false;  // an alltoallv
  bool in_place = false;
  BlockSide send;  // of an alltoallv that is not in place
  BlockSide receive;
};

// How much memory a side may need, with lengths up to `longest`.
size_t side_bytes_max(const Job& job, size_t longest);

// `random` draws the same on all ranks. In place, an alltoallv's two ranks exchange blocks of the
// same length.
BlockCall draw_call(const Job& job, std::mt19937& random, bool to_each, bool in_place, Shape shape,
                    size_t longest);
// Garbage in all of `receive`, data in all that is sent.
void fill_blocks(const Job& job, const BlockCall& call, uint8_t* send, uint8_t* receive,
                 size_t receive_bytes, uint64_t iteration);
peal_error start_blocks(const Job& job, const BlockCall& call, const uint8_t* send,
                        uint8_t* receive, peal_request** request);
peal_error init_blocks(const Job& job, const BlockCall& call, const uint8_t* send, uint8_t* receive,
                       peal_request** request);
peal_error run_blocks(const Job& job, const BlockCall& call, const uint8_t* send, uint8_t* receive);
// Every byte: the blocks, and the garbage between and behind them.
bool blocks_are_right(const Job& job, const BlockCall& call, const uint8_t* receive,
                      size_t receive_bytes, uint64_t iteration);

}  // namespace peal::e2e
