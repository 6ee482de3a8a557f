// SPDX-License-Identifier: BSD-2-Clause
// Ring entries are one cache line, and what the card writes and reads has no hidden padding.
#include "abi/queue.h"

#include <gtest/gtest.h>

#include <cstring>

namespace {

// Sets every named field to ones;
// a byte still zero would be padding that leaks what was there before.
TEST(Queue, SubmissionHasNoPadding) {
  peal_submission entry;
  std::memset(&entry, 0, sizeof(entry));
  entry.operation = 0xff;
  entry.algorithm = 0xff;
  entry.flags = 0xffff;
  entry.member = entry.send_key = entry.receive_key = entry.root = ~0u;
  entry.sequence = entry.cookie = entry.send_offset = entry.receive_offset = entry.block_bytes =
      ~0ull;
  std::memset(entry.reserved, 0xff, sizeof(entry.reserved));
  entry.phase = 0xff;
  for (size_t i = 0; i < sizeof(entry); i++) {
    EXPECT_EQ(reinterpret_cast<const uint8_t*>(&entry)[i], 0xff) << "byte " << i;
  }
}

TEST(Queue, CompletionHasNoPadding) {
  peal_completion entry;
  std::memset(&entry, 0, sizeof(entry));
  entry.cookie = entry.sequence = entry.card_ns = ~0ull;
  entry.member = entry.failed_rank = ~0u;
  entry.status = 0xffff;
  entry.operation = 0xff;
  std::memset(entry.reserved, 0xff, sizeof(entry.reserved));
  entry.bytes = entry.tag = ~0ull;
  std::memset(entry.reserved_too, 0xff, sizeof(entry.reserved_too));
  entry.phase = 0xff;
  for (size_t i = 0; i < sizeof(entry); i++) {
    EXPECT_EQ(reinterpret_cast<const uint8_t*>(&entry)[i], 0xff) << "byte " << i;
  }
}

TEST(Queue, StatusesFitTheCompletion) {
  EXPECT_LE(static_cast<uint32_t>(PEAL_STATUS_COUNT), 0xffffu);
  EXPECT_EQ(static_cast<int>(PEAL_STATUS_OK), 0);
}

}  // namespace
