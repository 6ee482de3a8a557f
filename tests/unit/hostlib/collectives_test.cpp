// SPDX-License-Identifier: BSD-2-Clause
// The calls: what each writes into its submission entry, and what each refuses by itself.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/names.h"
#include "tests/unit/hostlib/fake_card.h"

namespace peal::host {
namespace {

constexpr uint32_t kSize = 3;
constexpr uint32_t kRank = 1;  // whose calls are looked at
constexpr size_t kBlock = 100;

class Collectives : public testing::Test {
 protected:
  void SetUp() override {
    make_group({sizeof(peal_group_params), 0, PEAL_ALLGATHER_AUTO, nullptr});
    memory = allocate(4 * kSize * kBlock);
  }
  void TearDown() override {
    for (peal_context* each : contexts) peal_close(each);
  }

  void make_group(const peal_group_params& params) {
    peal_group_builder* builders[kSize] = {};
    for (uint32_t rank = 0; rank < kSize; rank++) {
      if (contexts[rank] == nullptr) contexts[rank] = open_fake(&cards[rank]);
      ASSERT_EQ(peal_group_begin(contexts[rank], rank, kSize, &params, &builders[rank]), PEAL_OK);
    }
    for (int exchange = 0; exchange < 2; exchange++) {
      std::vector<uint8_t> records;
      for (const peal_group_builder* builder : builders) {
        const auto* record = static_cast<const uint8_t*>(peal_group_record(builder));
        records.insert(records.end(), record, record + PEAL_GROUP_RECORD_BYTES);
      }
      for (uint32_t rank = 0; rank < kSize; rank++) {
        peal_group* made = nullptr;
        ASSERT_EQ(peal_group_advance(builders[rank], records.data(), &made), PEAL_OK);
        if (rank == kRank) group = made;
      }
    }
  }

  uint8_t* allocate(size_t bytes) {
    void* allocated = nullptr;
    EXPECT_EQ(peal_alloc(contexts[kRank], bytes, &allocated), PEAL_OK);
    return static_cast<uint8_t*>(allocated);
  }

  // The next entry that the card sees, as a line; "" where there is none.
  std::string entry() {
    peal_submission taken = {};
    if (!cards[kRank].take(&taken)) return "";
    cards[kRank].complete(taken);
    std::string text = std::to_string(taken.sequence) + " " + names::operation(taken.operation) +
                       " " + names::algorithm(taken.algorithm);
    if (taken.flags != 0) text += " flags " + std::to_string(taken.flags);
    text += " bytes " + std::to_string(taken.block_bytes);
    if (taken.root != 0) text += " root " + std::to_string(taken.root);
    const auto side = [&](const char* name, uint32_t key, uint64_t offset) {
      if (key == 0 && offset == 0) return;
      text += std::string(" ") + name + " " + std::to_string(key) + "+" + std::to_string(offset);
    };
    side("send", taken.send_key, taken.send_offset);
    side("receive", taken.receive_key, taken.receive_offset);
    return text;
  }

  // All four without blocking; what they post is nobody's.
  peal_error bcast(void* buffer, size_t bytes, uint32_t root) {
    return peal_ibcast(group, buffer, bytes, root, nullptr);
  }
  peal_error allgather(const void* send, void* receive, size_t bytes) {
    return peal_iallgather(group, send, receive, bytes, nullptr);
  }
  peal_error alltoall(const void* send, void* receive, size_t bytes) {
    return peal_ialltoall(group, send, receive, bytes, nullptr);
  }

  FakeCard cards[kSize];
  peal_context* contexts[kSize] = {};
  peal_group* group = nullptr;
  uint8_t* memory = nullptr;  // key 1
};

TEST_F(Collectives, TheEntryOfEachCall) {
  uint8_t* const receive = memory + kSize * kBlock;
  EXPECT_EQ(peal_ibarrier(group, nullptr), PEAL_OK);
  EXPECT_EQ(entry(), "0 barrier dissemination bytes 0");
  EXPECT_EQ(allgather(memory + 7, receive, kBlock), PEAL_OK);
  EXPECT_EQ(entry(), "1 allgather recursive-doubling bytes 100 send 1+7 receive 1+300");
  EXPECT_EQ(allgather(PEAL_IN_PLACE, receive, kBlock), PEAL_OK);
  EXPECT_EQ(entry(), "2 allgather recursive-doubling flags 1 bytes 100 receive 1+300");
  EXPECT_EQ(alltoall(memory, receive, kBlock), PEAL_OK);
  EXPECT_EQ(entry(), "3 alltoall bruck bytes 100 send 1+0 receive 1+300");
  EXPECT_EQ(alltoall(PEAL_IN_PLACE, receive, kBlock), PEAL_OK);
  EXPECT_EQ(entry(), "4 alltoall bruck flags 1 bytes 100 receive 1+300");
}

TEST_F(Collectives, TheRootOfABroadcastSendsAndTheOthersReceive) {
  EXPECT_EQ(bcast(memory + 8, 1000, kRank), PEAL_OK);
  EXPECT_EQ(entry(), "0 broadcast binomial bytes 1000 root 1 send 1+8");
  EXPECT_EQ(bcast(memory + 8, 1000, 2), PEAL_OK);
  EXPECT_EQ(entry(), "1 broadcast binomial bytes 1000 root 2 receive 1+8");
  EXPECT_EQ(bcast(memory + 8, 1000, 0), PEAL_OK);
  EXPECT_EQ(entry(), "2 broadcast binomial bytes 1000 receive 1+8");
}

TEST_F(Collectives, NothingNeedsNoBuffer) {
  EXPECT_EQ(bcast(nullptr, 0, kRank), PEAL_OK);
  EXPECT_EQ(entry(), "0 broadcast binomial bytes 0 root 1");
  EXPECT_EQ(allgather(nullptr, nullptr, 0), PEAL_OK);
  EXPECT_EQ(entry(), "1 allgather recursive-doubling bytes 0");
  EXPECT_EQ(alltoall(nullptr, nullptr, 0), PEAL_OK);
  EXPECT_EQ(entry(), "2 alltoall bruck bytes 0");
  EXPECT_EQ(alltoall(PEAL_IN_PLACE, nullptr, 0), PEAL_OK);
  EXPECT_EQ(entry(), "3 alltoall bruck flags 1 bytes 0");
}

// Each with its text, and none uses up a sequence number.
TEST_F(Collectives, WhatIsWrongIsSaidByName) {
  const auto text = [](peal_error got, peal_error wanted) {
    EXPECT_EQ(got, wanted);
    return std::string(peal_last_error_text());
  };
  EXPECT_EQ(text(bcast(memory, 4, kSize), PEAL_ERR_BAD_ROOT),
            "broadcast: root 3, but the group has the ranks 0 to 2");
  EXPECT_EQ(text(bcast(nullptr, 0, UINT32_MAX), PEAL_ERR_BAD_ROOT),
            "broadcast: root 4294967295, but the group has the ranks 0 to 2");
  for (const size_t bytes : {size_t{1} << 32, SIZE_MAX, SIZE_MAX / kSize + 1}) {
    const std::string too_long =
        ": blocks of " + std::to_string(bytes) + " bytes, the limit is 4294967295";
    EXPECT_EQ(text(bcast(memory, bytes, 0), PEAL_ERR_BAD_LENGTH), "broadcast" + too_long);
    EXPECT_EQ(text(allgather(memory, memory, bytes), PEAL_ERR_BAD_LENGTH), "allgather" + too_long);
    EXPECT_EQ(text(alltoall(memory, memory, bytes), PEAL_ERR_BAD_LENGTH), "alltoall" + too_long);
  }
  EXPECT_EQ(text(bcast(nullptr, 1, 0), PEAL_ERR_INVALID_ARGUMENT),
            "broadcast: the broadcast buffer is null");
  EXPECT_EQ(text(bcast(nullptr, 1, kRank), PEAL_ERR_INVALID_ARGUMENT),
            "broadcast: the broadcast buffer is null");
  EXPECT_EQ(text(alltoall(nullptr, memory, 1), PEAL_ERR_INVALID_ARGUMENT),
            "alltoall: the send buffer is null");
  EXPECT_EQ(text(alltoall(memory, nullptr, 1), PEAL_ERR_INVALID_ARGUMENT),
            "alltoall: the receive buffer is null");
  EXPECT_EQ(text(alltoall(PEAL_IN_PLACE, nullptr, 1), PEAL_ERR_INVALID_ARGUMENT),
            "alltoall: the receive buffer is null");
  EXPECT_EQ(text(allgather(nullptr, memory, 1), PEAL_ERR_INVALID_ARGUMENT),
            "allgather: the send buffer is null");
  EXPECT_EQ(entry(), "");
  EXPECT_EQ(peal_ibarrier(group, nullptr), PEAL_OK);
  EXPECT_EQ(entry(), "0 barrier dissemination bytes 0");
}

// To the byte: buffers that only touch are none.
TEST_F(Collectives, BuffersThatOverlap) {
  uint8_t* const all = memory + kBlock;  // of kSize blocks
  uint8_t* const behind = all + kSize * kBlock;
  EXPECT_EQ(allgather(all - kBlock + 1, all, kBlock), PEAL_ERR_INVALID_ARGUMENT);
  char expected[200];
  snprintf(expected, sizeof(expected),
           "allgather: the send buffer %p and the receive buffer %p overlap: use PEAL_IN_PLACE",
           static_cast<void*>(all - kBlock + 1), static_cast<void*>(all));
  EXPECT_STREQ(peal_last_error_text(), expected);
  EXPECT_EQ(allgather(behind - 1, all, kBlock), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(alltoall(behind - 1, all, kBlock), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(alltoall(all, behind - 1, kBlock), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(alltoall(all, all, kBlock), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(entry(), "");
  EXPECT_EQ(allgather(all - kBlock, all, kBlock), PEAL_OK);
  EXPECT_EQ(allgather(behind, all, kBlock), PEAL_OK);
  uint8_t* const more = allocate(2 * kSize * kBlock);
  EXPECT_EQ(alltoall(more, more + kSize * kBlock, kBlock), PEAL_OK);
  EXPECT_EQ(alltoall(more + kSize * kBlock, more, kBlock), PEAL_OK);
}

// Every buffer as long as the operation makes it, and for the direction that it has there.
TEST_F(Collectives, EveryBufferIsRegisteredForAllThatTheCardDoesWithIt) {
  std::vector<uint8_t> own(3 * kSize * kBlock);
  uint8_t* const read_only = own.data();
  uint8_t* const write_only = read_only + kSize * kBlock;
  peal_memory* handle = nullptr;
  EXPECT_EQ(bcast(read_only, kBlock, 0), PEAL_ERR_NOT_REGISTERED);
  ASSERT_EQ(peal_register(contexts[kRank], read_only, kSize * kBlock, PEAL_READ, &handle), PEAL_OK);
  ASSERT_EQ(peal_register(contexts[kRank], write_only, kSize * kBlock, PEAL_WRITE, &handle),
            PEAL_OK);
  EXPECT_EQ(bcast(read_only, kBlock, 0), PEAL_ERR_BAD_ACCESS);
  EXPECT_EQ(bcast(write_only, kBlock, kRank), PEAL_ERR_BAD_ACCESS);
  EXPECT_EQ(bcast(write_only, kSize * kBlock + 1, 0), PEAL_ERR_BAD_BOUNDS);
  EXPECT_STREQ(std::string(peal_last_error_text()).substr(0, 20).c_str(), "the broadcast buffer");
  EXPECT_EQ(alltoall(write_only, memory, kBlock), PEAL_ERR_BAD_ACCESS);
  EXPECT_EQ(alltoall(memory, read_only, kBlock), PEAL_ERR_BAD_ACCESS);
  EXPECT_EQ(alltoall(PEAL_IN_PLACE, read_only, kBlock), PEAL_ERR_BAD_ACCESS);
  EXPECT_EQ(alltoall(PEAL_IN_PLACE, write_only, kBlock), PEAL_ERR_BAD_ACCESS);
  EXPECT_EQ(alltoall(read_only + 1, memory, kBlock), PEAL_ERR_BAD_BOUNDS);
  EXPECT_EQ(alltoall(memory, write_only + 1, kBlock), PEAL_ERR_BAD_BOUNDS);
  EXPECT_EQ(entry(), "");
  EXPECT_EQ(bcast(write_only, kSize * kBlock, 0), PEAL_OK);
  EXPECT_EQ(entry(), "0 broadcast binomial bytes 300 receive 3+0");
  EXPECT_EQ(bcast(read_only, kSize * kBlock, kRank), PEAL_OK);
  EXPECT_EQ(entry(), "1 broadcast binomial bytes 300 root 1 send 2+0");
  EXPECT_EQ(alltoall(read_only, write_only, kBlock), PEAL_OK);
  EXPECT_EQ(entry(), "2 alltoall bruck bytes 100 send 2+0 receive 3+0");
}

// In place the receive buffer is read, too: what was registered for writing does not do.
TEST_F(Collectives, AGroupThatRegistersDoesItForTheWholeBuffer) {
  make_group({sizeof(peal_group_params), PEAL_GROUP_REGISTER, PEAL_ALLGATHER_AUTO, nullptr});
  std::vector<uint8_t> own((kSize + 1) * kBlock);
  uint8_t* const send = own.data() + kSize * kBlock;
  EXPECT_EQ(allgather(send, own.data(), kBlock), PEAL_OK);
  EXPECT_EQ(entry(), "0 allgather recursive-doubling bytes 100 send 3+0 receive 2+0");
  EXPECT_EQ(allgather(send, own.data(), kBlock), PEAL_OK);
  EXPECT_EQ(entry(), "1 allgather recursive-doubling bytes 100 send 3+0 receive 2+0");
  EXPECT_EQ(allgather(PEAL_IN_PLACE, own.data(), kBlock), PEAL_OK);
  EXPECT_EQ(entry(), "2 allgather recursive-doubling flags 1 bytes 100 receive 4+0");
  peal_statistics read = {};
  read.struct_bytes = sizeof(read);
  EXPECT_EQ(peal_read_statistics(contexts[kRank], &read), PEAL_OK);
  EXPECT_EQ(read.regions, 4u);
  EXPECT_EQ(read.region_bytes, 4 * kSize * kBlock + (kSize + 1 + kSize) * kBlock);
}

TEST_F(Collectives, TheBlockingFormsReturnHowItEnded) {
  std::thread card([&] {
    for (const uint32_t status : {PEAL_STATUS_OK, PEAL_STATUS_MISMATCH, PEAL_STATUS_OK,
                                  PEAL_STATUS_PEER_DEAD, PEAL_STATUS_OK}) {
      peal_submission taken = {};
      while (!cards[kRank].take(&taken)) std::this_thread::yield();
      cards[kRank].complete(taken, status, status == PEAL_STATUS_OK ? PEAL_NO_RANK : 2);
    }
  });
  EXPECT_EQ(peal_bcast(group, memory, kBlock, 2), PEAL_OK);
  EXPECT_EQ(peal_bcast(group, memory, kBlock, 2), PEAL_ERR_MISMATCH);
  EXPECT_STREQ(peal_last_error_text(), "broadcast 1: ranks disagree: rank 2");
  EXPECT_EQ(peal_allgather(group, PEAL_IN_PLACE, memory, kBlock), PEAL_OK);
  EXPECT_EQ(peal_allgather(group, memory, memory + kBlock, kBlock), PEAL_ERR_PEER_DEAD);
  EXPECT_STREQ(peal_last_error_text(), "allgather 3: a member of the group died: rank 2");
  EXPECT_EQ(peal_barrier(group), PEAL_OK);
  card.join();
  peal_statistics read = {};
  read.struct_bytes = sizeof(read);
  EXPECT_EQ(peal_read_statistics(contexts[kRank], &read), PEAL_OK);
  EXPECT_EQ(read.posted, 5u);
  EXPECT_EQ(read.failed, 2u);
  EXPECT_EQ(read.requests, 0u);
}

TEST_F(Collectives, WithoutAGroup) {
  peal_request* request = nullptr;
  EXPECT_EQ(peal_bcast(nullptr, memory, 1, 0), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_STREQ(peal_last_error_text(), "peal_bcast: group is null");
  EXPECT_EQ(peal_ibcast(nullptr, memory, 1, 0, &request), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_STREQ(peal_last_error_text(), "peal_ibcast: group is null");
  EXPECT_EQ(peal_alltoall(nullptr, memory, memory, 1), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_STREQ(peal_last_error_text(), "peal_alltoall: group is null");
  EXPECT_EQ(peal_ialltoall(nullptr, memory, memory, 1, &request), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_STREQ(peal_last_error_text(), "peal_ialltoall: group is null");
}

TEST_F(Collectives, ARequestThatIsNotMadeIsNull) {
  peal_request* request = reinterpret_cast<peal_request*>(this);
  EXPECT_EQ(peal_ibcast(group, memory, 1, kSize, &request), PEAL_ERR_BAD_ROOT);
  EXPECT_EQ(request, nullptr);
  EXPECT_EQ(peal_ibcast(group, memory, 1, 0, &request), PEAL_OK);
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(entry(), "0 broadcast binomial bytes 1 receive 1+0");
  EXPECT_EQ(peal_wait(request), PEAL_OK);
  EXPECT_EQ(peal_request_card_ns(request), 1234u);
  EXPECT_EQ(peal_request_free(request), PEAL_OK);
}

}  // namespace
}  // namespace peal::host
