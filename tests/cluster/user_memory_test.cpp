// SPDX-License-Identifier: BSD-2-Clause
// What a user's buffers hold before and after each operation: every wrong byte is found, and every
// access beyond what the operation of this rank needs.
#include "emulator/cluster/user_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

// One of three ranks.
class UserMemoryTest : public testing::Test {
 protected:
  static constexpr uint32_t kRanks = 3;
  static constexpr uint32_t kRank = 1;
  static UserMemory memory_of(uint32_t rank) {
    return UserMemory({1, 0}, {kRanks, rank, 2, kRanks * 100, kRanks * 100});
  }

  explicit UserMemoryTest(uint32_t rank = kRank) : rank_(rank), memory_(memory_of(rank)) {
    send_.resize(memory_.send_bytes());
    receive_.resize(memory_.receive_bytes());
    memory_.place(kSend, send_.data(), kReceive, receive_.data());
  }

  // What the cards would have done: the other ranks' blocks are those of memories of their own.
  void carry_out(uint32_t slot, uint64_t sequence, const OperationPlan& operation) {
    const Blocks blocks(operation, kRanks, rank_);
    for (uint32_t i = 0; i < blocks.received(); i++) {
      const BlockName name = blocks.received_name(i);
      UserMemory other = memory_of(name.from);
      std::vector<uint8_t> send(other.send_bytes());
      std::vector<uint8_t> receive(other.receive_bytes());
      other.place(0, send.data(), 1, receive.data());
      EXPECT_EQ(other.prepare(slot, sequence, operation), "");
      const Extent from = Blocks(operation, kRanks, name.from).sent_extent(name.to);
      const Extent to = blocks.received_extent(i);
      EXPECT_EQ(from.bytes, to.bytes);
      const uint8_t* const theirs = operation.in_place ? receive.data() + other.receive_offset(slot)
                                                       : send.data() + other.send_offset(slot);
      std::memcpy(receive_.data() + memory_.receive_offset(slot) + to.offset, theirs + from.offset,
                  to.bytes);
    }
  }

  // Whether the card may reach so many bytes of the buffers of slot 0, and no more.
  void expect_reach(uint64_t read_bytes, uint64_t written_bytes) {
    const auto expect = [this](uint32_t region, uint64_t offset, uint64_t bytes, bool write) {
      const auto allowed = [&](uint64_t at, uint64_t count) {
        return memory_.check_access(region, at, count, write).empty();
      };
      EXPECT_EQ(allowed(offset, 1), bytes >= 1) << "region " << region;
      EXPECT_EQ(allowed(offset, bytes), true) << "region " << region;
      EXPECT_FALSE(allowed(offset, bytes + 1)) << "region " << region;
      EXPECT_FALSE(allowed(offset - 1, bytes)) << "region " << region;
    };
    expect(kSend, memory_.send_offset(0), read_bytes, false);
    expect(kReceive, memory_.receive_offset(0), written_bytes, true);
    EXPECT_NE(memory_.check_access(kSend, memory_.send_offset(0), 1, true), "");
  }

  static constexpr uint32_t kSend = 10;
  static constexpr uint32_t kReceive = 11;
  const uint32_t rank_;
  UserMemory memory_;
  std::vector<uint8_t> send_;
  std::vector<uint8_t> receive_;
};

const std::vector<OperationPlan>& operations() {
  static const std::vector<OperationPlan> all = {
      broadcast(99), broadcast(99, true), root_broadcast(99, 0), root_broadcast(99, 1),
      alltoall(99),  alltoall(99, true),  broadcast(0),          root_broadcast(0, 2),
      alltoall(0),   broadcast(96),       root_broadcast(96, 2), alltoall(96, true),
      allgatherv(0), alltoallv(0)};
  return all;
}

// Of lengths of their own.
std::vector<OperationPlan> with_parts() {
  return {allgatherv(99),      allgatherv(99, true), alltoallv(99),
          alltoallv(99, true), allgatherv(64),       alltoallv(64)};
}

TEST_F(UserMemoryTest, ARightResultIsRight) {
  uint64_t sequence = 5;
  for (const OperationPlan& operation : operations()) {
    SCOPED_TRACE(operation_text(operation));
    EXPECT_EQ(memory_.prepare(1, sequence, operation), "");
    carry_out(1, sequence++, operation);
    EXPECT_EQ(memory_.finish(1, true), "");
    EXPECT_EQ(memory_.check_garbage(1), "");
  }
}

TEST_F(UserMemoryTest, EveryWrongByteIsFound) {
  uint64_t sequence = 0;
  for (const OperationPlan& operation : operations()) {
    SCOPED_TRACE(operation_text(operation));
    const uint64_t bytes = operation.block_bytes * Blocks(operation, kRanks, kRank).received();
    for (uint64_t at = 0; at < bytes; at += 11) {
      EXPECT_EQ(memory_.prepare(0, sequence, operation), "");
      carry_out(0, sequence++, operation);
      receive_[memory_.receive_offset(0) + at] ^= 1;
      EXPECT_NE(memory_.finish(0, true), "") << at;
    }
  }
}

TEST_F(UserMemoryTest, EveryByteAroundTheResultIsTheUsers) {
  uint64_t sequence = 0;
  for (const OperationPlan& operation : operations()) {
    SCOPED_TRACE(operation_text(operation));
    const uint64_t bytes = operation.block_bytes * Blocks(operation, kRanks, kRank).received();
    for (const uint64_t at : {-20, -1, 0, 1, 8, 70}) {
      EXPECT_EQ(memory_.prepare(0, sequence, operation), "");
      carry_out(0, sequence++, operation);
      receive_[memory_.receive_offset(0) + at + (at < 100 ? bytes : 0)] ^= 1;
      EXPECT_EQ(memory_.finish(0, true), std::string("bytes ") + (at < 100 ? "behind" : "before") +
                                             " the receive buffer were written");
    }
  }
}

TEST_F(UserMemoryTest, WrongBlocksAreNamed) {
  EXPECT_EQ(memory_.prepare(0, 1, broadcast(64)), "");
  EXPECT_EQ(memory_.finish(0, true), "block of rank 0 is wrong from byte 0 of 64: never written");
  EXPECT_EQ(memory_.prepare(0, 2, root_broadcast(64, 2)), "");
  EXPECT_EQ(memory_.finish(0, true), "block of rank 2 is wrong from byte 0 of 64: never written");
  // What rank 0 sent to rank 1 lies where rank 2's is expected.
  EXPECT_EQ(memory_.prepare(0, 3, alltoall(64)), "");
  carry_out(0, 3, alltoall(64));
  uint8_t* const result = receive_.data() + memory_.receive_offset(0);
  std::memcpy(result + 2 * 64, result, 64);
  EXPECT_EQ(memory_.finish(0, true),
            "block of rank 2 is wrong from byte 0 of 64: it is the block, of 0 operations before, "
            "of rank 0 for rank 1");
  // The own blocks of an operation in place, still where they were.
  EXPECT_EQ(memory_.prepare(0, 4, alltoall(64, true)), "");
  EXPECT_EQ(memory_.finish(0, true),
            "block of rank 0 is wrong from byte 0 of 64: it is the block, of 0 operations before, "
            "of rank 1 for rank 0");
}

TEST_F(UserMemoryTest, AWriteAfterCompletionIsFound) {
  EXPECT_EQ(memory_.prepare(0, 1, broadcast(64)), "");
  carry_out(0, 1, broadcast(64));
  EXPECT_EQ(memory_.finish(0, true), "");
  receive_[memory_.receive_offset(0) + 5] ^= 1;
  EXPECT_NE(memory_.check_garbage(0), "");
  EXPECT_NE(memory_.prepare(0, 2, broadcast(64)), "");
}

TEST_F(UserMemoryTest, AccessOnlyBetweenPostAndCompletion) {
  EXPECT_NE(memory_.check_access(kSend, 0, 8, false), "");
  EXPECT_EQ(memory_.prepare(0, 1, broadcast(64)), "");
  EXPECT_EQ(memory_.check_access(kSend, memory_.send_offset(0), 64, false), "");
  carry_out(0, 1, broadcast(64));
  EXPECT_EQ(memory_.finish(0, true), "");
  EXPECT_NE(memory_.check_access(kSend, memory_.send_offset(0), 64, false), "");
}

TEST_F(UserMemoryTest, AccessToWhatTheOperationNeeds) {
  struct Case {
    OperationPlan operation;
    uint64_t read_bytes;
    uint64_t written_bytes;
  };
  uint64_t sequence = 0;
  for (const Case& each : {Case{broadcast(64), 64, 3 * 64}, Case{broadcast(64, true), 0, 3 * 64},
                           Case{root_broadcast(64, kRank), 64, 0},
                           Case{root_broadcast(64, 0), 0, 64}, Case{alltoall(64), 3 * 64, 3 * 64},
                           Case{alltoall(64, true), 0, 3 * 64}, Case{kBarrier, 0, 0}}) {
    SCOPED_TRACE(operation_text(each.operation));
    EXPECT_EQ(memory_.prepare(0, sequence, each.operation), "");
    expect_reach(each.read_bytes, each.written_bytes);
    carry_out(0, sequence++, each.operation);
    EXPECT_EQ(memory_.finish(0, true), "");
  }
}

// Every rank: what is short, empty or of full length differs from one to the other.
class PartsTest : public UserMemoryTest, public testing::WithParamInterface<uint32_t> {
 protected:
  PartsTest() : UserMemoryTest(GetParam()) {}

  // What is wrong with an access to so many bytes so far into a buffer of slot 0.
  [[nodiscard]] std::string wrong_with(uint32_t region, uint64_t at, uint64_t bytes) const {
    const bool write = region == kReceive;
    const uint64_t buffer = write ? memory_.receive_offset(0) : memory_.send_offset(0);
    const std::string problem = memory_.check_access(region, buffer + at, bytes, write);
    return problem.substr(std::min(problem.size(), problem.find(": ") + 2));
  }

  uint64_t sequence_ = 0;
};

TEST_P(PartsTest, EveryWrongByteIsFoundByThePartItIsIn) {
  for (const OperationPlan& operation : with_parts()) {
    SCOPED_TRACE(operation_text(operation));
    const Blocks blocks(operation, kRanks, rank_);
    EXPECT_EQ(memory_.prepare(0, sequence_, operation), "");
    carry_out(0, sequence_++, operation);
    EXPECT_EQ(memory_.finish(0, true), "");
    for (uint32_t i = 0; i < kRanks; i++) {
      const Extent part = blocks.received_extent(i);
      for (uint64_t at = 0; at < part.bytes; at++) {
        EXPECT_EQ(memory_.prepare(0, sequence_, operation), "");
        carry_out(0, sequence_++, operation);
        receive_[memory_.receive_offset(0) + part.offset + at] ^= 1;
        const std::string expected = "block of rank " + std::to_string(i) + " is wrong from byte " +
                                     std::to_string(at / 8 * 8);
        EXPECT_EQ(memory_.finish(0, true).substr(0, expected.size()), expected);
      }
    }
  }
}

TEST_P(PartsTest, EveryByteBehindAPartIsTheUsers) {
  for (const OperationPlan& operation : with_parts()) {
    SCOPED_TRACE(operation_text(operation));
    const Blocks blocks(operation, kRanks, rank_);
    uint64_t found = 0;
    for (uint32_t i = 0; i < kRanks; i++) {
      const Extent part = blocks.received_extent(i);
      for (uint64_t at = part.bytes; at < operation.block_bytes; at++) {
        EXPECT_EQ(memory_.prepare(0, sequence_, operation), "");
        carry_out(0, sequence_++, operation);
        receive_[memory_.receive_offset(0) + part.offset + at] ^= 1;
        EXPECT_EQ(memory_.finish(0, true),
                  "bytes behind the part of rank " + std::to_string(i) + " were written");
        found++;
      }
    }
    EXPECT_GT(found, 0u);
  }
}

TEST_P(PartsTest, AccessToThePartsAndNotBehindThem) {
  for (const OperationPlan& operation : with_parts()) {
    SCOPED_TRACE(operation_text(operation));
    const Blocks blocks(operation, kRanks, rank_);
    const uint64_t block = operation.block_bytes;
    const std::string of = " of sequence " + std::to_string(sequence_);
    EXPECT_EQ(memory_.prepare(0, sequence_, operation), "");
    for (uint32_t i = 0; i < kRanks; i++) {
      const Extent part = blocks.received_extent(i);
      const bool last = i == 0;  // they lie backwards
      EXPECT_EQ(wrong_with(kReceive, part.offset, part.bytes), "");
      EXPECT_EQ(wrong_with(kReceive, part.offset, part.bytes + 1),
                last && part.bytes == block ? "outside the buffers" + of : "beyond a part" + of);
      for (uint64_t at = part.bytes; at < block; at++)
        EXPECT_EQ(wrong_with(kReceive, part.offset + at, 1), "beyond a part" + of) << at;
    }
    const uint32_t sent = operation.in_place ? 0 : blocks.sent();
    for (uint32_t i = 0; i < sent; i++) {
      const Extent part = blocks.sent_extent(i);
      EXPECT_EQ(wrong_with(kSend, part.offset, part.bytes), "");
      for (uint64_t at = part.bytes; at < block; at++)
        EXPECT_EQ(wrong_with(kSend, part.offset + at, 1), "beyond a part" + of) << at;
      const bool last = i + 1 == sent;
      const bool gap = part.bytes < block || (!last && blocks.sent_extent(i + 1).bytes == 0);
      const std::string further = wrong_with(kSend, part.offset, part.bytes + 1);
      const std::string behind = last ? "outside the buffers" + of : "";
      EXPECT_EQ(further, gap ? "beyond a part" + of : behind);
    }
    if (operation.in_place) {
      EXPECT_EQ(wrong_with(kSend, 0, 1), "outside the buffers" + of);
    }
    carry_out(0, sequence_++, operation);
    EXPECT_EQ(memory_.finish(0, true), "");
  }
}

// What has no gap may be read at once, and is written part by part.
TEST_F(UserMemoryTest, PartsSideBySide) {
  const OperationPlan operation = alltoallv(99);
  EXPECT_EQ(memory_.prepare(0, 0, operation), "");
  const Blocks blocks(operation, kRanks, kRank);
  ASSERT_EQ(blocks.sent_extent(0).bytes, 99u);
  const uint64_t both = 99 + blocks.sent_extent(1).bytes;
  ASSERT_LT(both, 2u * 99);
  EXPECT_EQ(memory_.check_access(kSend, memory_.send_offset(0), both, false), "");
  EXPECT_NE(memory_.check_access(kSend, memory_.send_offset(0), both + 1, false), "");
  EXPECT_EQ(memory_.check_access(kSend, memory_.send_offset(0) + 98, 2, false), "");

  const OperationPlan gathered = allgatherv(99);
  EXPECT_EQ(memory_.prepare(1, 1, gathered), "");
  const Extent part = Blocks(gathered, kRanks, kRank).received_extent(1);
  ASSERT_EQ(part.bytes, 99u);
  const uint64_t at = memory_.receive_offset(1) + part.offset;
  EXPECT_EQ(memory_.check_access(kReceive, at + 98, 2, false), "");
  EXPECT_NE(memory_.check_access(kReceive, at + 98, 2, true), "");
}

INSTANTIATE_TEST_SUITE_P(Ranks, PartsTest, testing::Values(0u, 1u, 2u));

}  // namespace
}  // namespace peal::sim
