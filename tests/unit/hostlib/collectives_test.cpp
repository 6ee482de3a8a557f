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
    for (uint32_t rank = 0; rank < kSize; rank++) {
      if (contexts[rank] == nullptr) contexts[rank] = open_fake(&cards[rank]);
    }
    const std::vector<peal_group*> groups = make_fake_groups(contexts, &params);
    ASSERT_EQ(groups.size(), kSize);
    group = groups[kRank];
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
    if (taken.operation == PEAL_OPERATION_ALLGATHERV ||
        taken.operation == PEAL_OPERATION_ALLTOALLV) {
      return text + parts_text(taken);
    }
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

  // Keys and offsets, then its table: "offset+bytes" for each part that is not empty.
  std::string parts_text(const peal_submission& taken) {
    EXPECT_EQ(taken.block_bytes, 0u);
    EXPECT_EQ(taken.parts_key, group->part_tables.key());
    const bool both = taken.operation == PEAL_OPERATION_ALLTOALLV && taken.flags == 0;
    const auto* part = reinterpret_cast<const peal_part*>(group->part_tables.memory().address +
                                                          taken.parts_offset);
    std::string text = " send " + std::to_string(taken.send_key);
    if (taken.send_offset != 0) text += "+" + std::to_string(taken.send_offset);
    text += " receive " + std::to_string(taken.receive_key) + ":";
    for (uint32_t i = 0; i < (both ? 2 : 1) * kSize; i++, part++) {
      if (i == kSize) text += " /";
      text += part->bytes == 0
                  ? " -"
                  : " " + std::to_string(part->offset) + "+" + std::to_string(part->bytes);
    }
    return text;
  }

  // All six without blocking; what they post is nobody's.
  peal_error bcast(void* buffer, size_t bytes, uint32_t root) {
    return peal_ibcast(group, buffer, bytes, root, nullptr);
  }
  peal_error allgather(const void* send, void* receive, size_t bytes) {
    return peal_iallgather(group, send, receive, bytes, nullptr);
  }
  peal_error alltoall(const void* send, void* receive, size_t bytes) {
    return peal_ialltoall(group, send, receive, bytes, nullptr);
  }

  using Sizes = std::vector<size_t>;  // empty: null
  static const size_t* array(const Sizes& sizes) { return sizes.empty() ? nullptr : sizes.data(); }
  peal_error allgatherv(const void* send, void* receive, const Sizes& bytes,
                        const Sizes& offsets = {}) {
    return peal_iallgatherv(group, send, receive, array(bytes), array(offsets), nullptr);
  }
  peal_error alltoallv(const void* send, const Sizes& send_bytes, const Sizes& send_offsets,
                       void* receive, const Sizes& bytes, const Sizes& offsets = {}) {
    return peal_ialltoallv(group, send, array(send_bytes), array(send_offsets), receive,
                           array(bytes), array(offsets), nullptr);
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
  // The last one does for all that the first did.
  EXPECT_EQ(read.regions, 3u);
  EXPECT_EQ(read.region_bytes, 4 * kSize * kBlock + (1 + kSize) * kBlock);
}

// What a group remembers of its last buffers is no promise that they are still registered.
TEST_F(Collectives, WhatWasEvictedIsRegisteredAgain) {
  const peal_group_params params = {sizeof(peal_group_params), PEAL_GROUP_REGISTER,
                                    PEAL_ALLGATHER_AUTO, nullptr};
  make_group(params);
  peal_group* const first = group;
  make_group(params);
  contexts[kRank]->cache.set_limit(2);
  std::vector<uint8_t> own(4 * kBlock);
  std::vector<uint8_t> other(4 * kBlock);
  const auto post = [&](peal_group* by, uint8_t* buffer) {
    EXPECT_EQ(peal_iallgather(by, buffer + kSize * kBlock, buffer, kBlock, nullptr), PEAL_OK);
    peal_submission taken = {};
    ASSERT_TRUE(cards[kRank].take(&taken));
    EXPECT_TRUE(cards[kRank].keys.contains(taken.send_key));
    EXPECT_TRUE(cards[kRank].keys.contains(taken.receive_key));
    cards[kRank].complete(taken);
  };
  for (int i = 0; i < 3; i++) {
    post(first, own.data());
    post(first, own.data());
    post(group, other.data());
  }
  EXPECT_EQ(cards[kRank].keys.size(), 1u + 2u);
}

TEST_F(Collectives, TheTableOfAnAllgatherv) {
  uint8_t* const receive = memory + 300;
  EXPECT_EQ(allgatherv(memory + 7, receive, {5, 100, 0}), PEAL_OK);
  EXPECT_EQ(entry(), "0 allgatherv direct send 1+7 receive 1: 300+5 305+100 -");
  EXPECT_EQ(allgatherv(memory + 7, receive, {5, 100, 8}, {200, 50, 0}), PEAL_OK);
  EXPECT_EQ(entry(), "1 allgatherv direct send 1+7 receive 1: 500+5 350+100 300+8");
  EXPECT_EQ(allgatherv(PEAL_IN_PLACE, receive, {5, 100, 8}, {200, 50, 0}), PEAL_OK);
  EXPECT_EQ(entry(), "2 allgatherv direct flags 1 send 0 receive 1: 500+5 350+100 300+8");
}

TEST_F(Collectives, TheTableOfAnAlltoallv) {
  uint8_t* const receive = memory + 300;
  EXPECT_EQ(alltoallv(memory, {1, 2, 3}, {}, receive, {4, 5, 6}), PEAL_OK);
  EXPECT_EQ(entry(), "0 alltoallv direct send 1 receive 1: 0+1 1+2 3+3 / 300+4 304+5 309+6");
  EXPECT_EQ(alltoallv(memory, {1, 0, 3}, {90, 80, 70}, receive, {4, 5, 6}, {20, 10, 0}), PEAL_OK);
  EXPECT_EQ(entry(), "1 alltoallv direct send 1 receive 1: 90+1 - 70+3 / 320+4 310+5 300+6");
  EXPECT_EQ(alltoallv(PEAL_IN_PLACE, {}, {}, receive, {4, 5, 6}, {20, 10, 0}), PEAL_OK);
  EXPECT_EQ(entry(), "2 alltoallv direct flags 1 send 0 receive 1: 320+4 310+5 300+6");
  const Sizes nonsense = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
  EXPECT_EQ(alltoallv(PEAL_IN_PLACE, nonsense, nonsense, receive, {4, 0, 6}), PEAL_OK);
  EXPECT_EQ(entry(), "3 alltoallv direct flags 1 send 0 receive 1: 300+4 - 304+6");
}

// Offsets are into the region, which may begin before the buffer.
TEST_F(Collectives, PartsOfMemoryThatIsTheCallersOwn) {
  std::vector<uint8_t> own(1000);
  peal_memory* handle = nullptr;
  ASSERT_EQ(peal_register(contexts[kRank], own.data() + 100, 800, PEAL_READ | PEAL_WRITE, &handle),
            PEAL_OK);
  EXPECT_EQ(allgatherv(memory, own.data(), {1, 2, 3}, {897, 100, 500}), PEAL_OK);
  EXPECT_EQ(entry(), "0 allgatherv direct send 1 receive 2: 797+1 0+2 400+3");
  EXPECT_EQ(alltoallv(own.data() + 100, {1, 2, 3}, {}, memory, {1, 1, 1}), PEAL_OK);
  EXPECT_EQ(entry(), "1 alltoallv direct send 2 receive 1: 0+1 1+2 3+3 / 0+1 1+1 2+1");
}

TEST_F(Collectives, EmptyBlocksNeedNoBuffer) {
  EXPECT_EQ(allgatherv(nullptr, nullptr, {0, 0, 0}), PEAL_OK);
  EXPECT_EQ(entry(), "0 allgatherv direct send 0 receive 0: - - -");
  EXPECT_EQ(allgatherv(nullptr, memory, {1, 0, 1}, {0, SIZE_MAX, 1}), PEAL_OK);
  EXPECT_EQ(entry(), "1 allgatherv direct send 0 receive 1: 0+1 - 1+1");
  EXPECT_EQ(allgatherv(PEAL_IN_PLACE, nullptr, {0, 0, 0}), PEAL_OK);
  EXPECT_EQ(entry(), "2 allgatherv direct flags 1 send 0 receive 0: - - -");
  EXPECT_EQ(alltoallv(nullptr, {0, 0, 0}, {}, memory, {0, 0, 2}), PEAL_OK);
  EXPECT_EQ(entry(), "3 alltoallv direct send 0 receive 1: - - - / - - 0+2");
  EXPECT_EQ(alltoallv(memory, {0, 2, 0}, {}, nullptr, {0, 0, 0}), PEAL_OK);
  EXPECT_EQ(entry(), "4 alltoallv direct send 1 receive 0: - 0+2 - / - - -");
  EXPECT_EQ(alltoallv(PEAL_IN_PLACE, {}, {}, nullptr, {0, 0, 0}), PEAL_OK);
  EXPECT_EQ(entry(), "5 alltoallv direct flags 1 send 0 receive 0: - - -");
}

// The arrays are the caller's again when the call returns.
TEST_F(Collectives, ArraysAreReadBeforeTheCallReturns) {
  Sizes bytes = {1, 2, 3};
  Sizes offsets = {10, 20, 30};
  EXPECT_EQ(allgatherv(PEAL_IN_PLACE, memory, bytes, offsets), PEAL_OK);
  bytes.assign(kSize, 99);
  offsets.assign(kSize, 99);
  EXPECT_EQ(entry(), "0 allgatherv direct flags 1 send 0 receive 1: 10+1 20+2 30+3");
}

// A table is written once for calls that are the same, and again for whatever differs.
TEST_F(Collectives, TheSameCallAgainAndAnythingElse) {
  uint8_t* const receive = memory + kSize * kBlock;
  const auto both = [&](const Sizes& sent, const Sizes& from, const Sizes& bytes, const Sizes& to) {
    EXPECT_EQ(alltoallv(memory, sent, from, receive, bytes, to), PEAL_OK);
    return entry();
  };
  const std::string first =
      "alltoallv direct send 1 receive 1: 0+10 10+20 30+30 / 300+1 310+2 320+3";
  const Sizes sent = {10, 20, 30};
  const Sizes to = {0, 10, 20};
  EXPECT_EQ(both(sent, {}, {1, 2, 3}, to), "0 " + first);
  EXPECT_EQ(both(sent, {}, {1, 2, 3}, to), "1 " + first);
  EXPECT_EQ(both(sent, {}, {1, 2, 4}, to),
            "2 alltoallv direct send 1 receive 1: 0+10 10+20 30+30 / 300+1 310+2 320+4");
  EXPECT_EQ(both(sent, {}, {1, 2, 4}, {0, 10, 21}),
            "3 alltoallv direct send 1 receive 1: 0+10 10+20 30+30 / 300+1 310+2 321+4");
  EXPECT_EQ(both(sent, {0, 40, 80}, {1, 2, 4}, {0, 10, 21}),
            "4 alltoallv direct send 1 receive 1: 0+10 40+20 80+30 / 300+1 310+2 321+4");
  EXPECT_EQ(both({10, 20, 31}, {0, 40, 80}, {1, 2, 4}, {0, 10, 21}),
            "5 alltoallv direct send 1 receive 1: 0+10 40+20 80+31 / 300+1 310+2 321+4");
  EXPECT_EQ(both(sent, {}, {1, 2, 3}, to), "6 " + first);
  EXPECT_EQ(alltoallv(memory + 5, sent, {}, receive, {1, 2, 3}, to), PEAL_OK);
  EXPECT_EQ(entry(), "7 alltoallv direct send 1 receive 1: 5+10 15+20 35+30 / 300+1 310+2 320+3");
  EXPECT_EQ(alltoallv(PEAL_IN_PLACE, {}, {}, receive, {1, 2, 3}, to), PEAL_OK);
  EXPECT_EQ(entry(), "8 alltoallv direct flags 1 send 0 receive 1: 300+1 310+2 320+3");
  EXPECT_EQ(allgatherv(PEAL_IN_PLACE, receive, {1, 2, 3}, to), PEAL_OK);
  EXPECT_EQ(entry(), "9 allgatherv direct flags 1 send 0 receive 1: 300+1 310+2 320+3");
}

// Other lengths in each call, one behind the other and elsewhere, and with nothing among them.
TEST_F(Collectives, AnotherShapeInEachCall) {
  uint8_t* const receive = memory + kSize * kBlock;
  for (size_t i = 0; i < 4; i++) {
    const std::string number = std::to_string(i + 1);
    EXPECT_EQ(alltoallv(memory, {i + 1, 2, 3}, {}, receive, {4, 5, i + 1}), PEAL_OK);
    EXPECT_EQ(entry(), std::to_string(4 * i) + " alltoallv direct send 1 receive 1: 0+" + number +
                           " " + number + "+2 " + std::to_string(i + 3) + "+3 / 300+4 304+5 309+" +
                           number);
    EXPECT_EQ(alltoallv(PEAL_IN_PLACE, {}, {}, receive, {4, 0, i + 1}, {50, 0, 0}), PEAL_OK);
    EXPECT_EQ(entry(), std::to_string(4 * i + 1) +
                           " alltoallv direct flags 1 send 0 receive 1: 350+4 - 300+" + number);
    EXPECT_EQ(allgatherv(memory + i, receive, {4, 5, i + 1}), PEAL_OK);
    EXPECT_EQ(entry(), std::to_string(4 * i + 2) + " allgatherv direct send 1" +
                           (i == 0 ? "" : "+" + std::to_string(i)) +
                           " receive 1: 300+4 304+5 309+" + number);
    EXPECT_EQ(allgatherv(memory, receive, {4, 0, i + 1}), PEAL_OK) << "this rank sends nothing";
    EXPECT_EQ(entry(), std::to_string(4 * i + 3) +
                           " allgatherv direct send 0 receive 1: 300+4 - 304+" + number);
  }
}

// The card knows memory that is registered anew by another key.
TEST_F(Collectives, TheSameCallInOtherMemory) {
  std::vector<uint8_t> own(1000);
  peal_memory* registered = nullptr;
  const auto post_in_own = [&] {
    EXPECT_EQ(
        peal_register(contexts[kRank], own.data(), own.size(), PEAL_READ | PEAL_WRITE, &registered),
        PEAL_OK);
    EXPECT_EQ(allgatherv(PEAL_IN_PLACE, own.data(), {1, 2, 3}), PEAL_OK);
    const std::string text = entry();
    EXPECT_EQ(peal_group_wait(group), PEAL_OK);
    EXPECT_EQ(peal_unregister(registered), PEAL_OK);
    return text;
  };
  EXPECT_EQ(post_in_own(), "0 allgatherv direct flags 1 send 0 receive 2: 0+1 1+2 3+3");
  EXPECT_EQ(post_in_own(), "1 allgatherv direct flags 1 send 0 receive 4: 0+1 1+2 3+3");
  EXPECT_EQ(allgatherv(PEAL_IN_PLACE, own.data(), {1, 2, 3}), PEAL_ERR_NOT_REGISTERED);
}

// Whether anything is known of the memory of an earlier call, or nothing.
TEST_F(Collectives, WhatIsWrongWithBlocksIsSaidByName) {
  const auto text = [](peal_error got, peal_error wanted) {
    EXPECT_EQ(got, wanted);
    return std::string(peal_last_error_text());
  };
  const Sizes ones(kSize, 1);
  const Sizes long_one = {1, size_t{1} << 32, 1};
  const std::string limit = " block 1 has 4294967296 bytes, the limit is 4294967295";
  for (const bool known : {false, true}) {
    if (known) {
      EXPECT_EQ(alltoallv(memory, ones, {}, memory + 300, ones), PEAL_OK);
      EXPECT_NE(entry(), "");
      EXPECT_EQ(peal_group_wait(group), PEAL_OK);
    }
    EXPECT_EQ(text(allgatherv(memory, memory, {}), PEAL_ERR_INVALID_ARGUMENT),
              "allgatherv: the lengths of the receive blocks are null");
    EXPECT_EQ(text(alltoallv(memory, {}, {}, memory + 300, ones), PEAL_ERR_INVALID_ARGUMENT),
              "alltoallv: the lengths of the send blocks are null");
    EXPECT_EQ(text(alltoallv(memory, ones, {}, memory + 300, {}), PEAL_ERR_INVALID_ARGUMENT),
              "alltoallv: the lengths of the receive blocks are null");
    EXPECT_EQ(text(alltoallv(PEAL_IN_PLACE, ones, {}, memory, {}), PEAL_ERR_INVALID_ARGUMENT),
              "alltoallv: the lengths of the receive blocks are null");
    EXPECT_EQ(text(allgatherv(nullptr, memory, ones), PEAL_ERR_INVALID_ARGUMENT),
              "allgatherv: the send buffer is null");
    EXPECT_EQ(text(allgatherv(memory, nullptr, ones), PEAL_ERR_INVALID_ARGUMENT),
              "allgatherv: the receive buffer is null");
    EXPECT_EQ(text(alltoallv(nullptr, {0, 0, 1}, {}, memory, ones), PEAL_ERR_INVALID_ARGUMENT),
              "alltoallv: the send buffer is null");
    EXPECT_EQ(text(alltoallv(PEAL_IN_PLACE, {}, {}, nullptr, ones), PEAL_ERR_INVALID_ARGUMENT),
              "alltoallv: the receive buffer is null");
    EXPECT_EQ(text(allgatherv(memory, memory + 300, long_one), PEAL_ERR_BAD_LENGTH),
              "allgatherv: receive" + limit);
    EXPECT_EQ(text(alltoallv(memory, long_one, {}, memory + 300, ones), PEAL_ERR_BAD_LENGTH),
              "alltoallv: send" + limit);
    char wrapped[200];
    snprintf(wrapped, sizeof(wrapped),
             "alltoallv: send block 2, 1 bytes at %p + 18446744073709551615, wraps around",
             static_cast<void*>(memory));
    EXPECT_EQ(text(alltoallv(memory, ones, {0, 0, SIZE_MAX}, memory + 300, ones),
                   PEAL_ERR_INVALID_ARGUMENT),
              wrapped);
    EXPECT_EQ(text(allgatherv(memory + 300, memory, ones, {0, 1, 4 * kSize * kBlock}),
                   PEAL_ERR_BAD_BOUNDS)
                  .substr(0, 18),
              "the receive buffer");
    EXPECT_EQ(entry(), "");
  }
  EXPECT_EQ(peal_ibarrier(group, nullptr), PEAL_OK);
  EXPECT_EQ(entry(), "1 barrier dissemination bytes 0");
}

// A table that was begun for it is no earlier call's any more.
TEST_F(Collectives, WhatIsRefusedLeavesNoTable) {
  const Sizes bytes = {1, 2, 3};
  for (int i = 0; i < 2; i++) {
    EXPECT_EQ(alltoallv(memory, bytes, {}, memory + 300, bytes), PEAL_OK);
    EXPECT_EQ(entry(), std::to_string(i) +
                           " alltoallv direct send 1 receive 1: 0+1 1+2 3+3 / 300+1 301+2 303+3");
    EXPECT_EQ(peal_group_wait(group), PEAL_OK);
    EXPECT_EQ(alltoallv(memory, {9, 8, size_t{1} << 32}, {}, memory + 300, {7, 6, 5}),
              PEAL_ERR_BAD_LENGTH);
  }
}

// To the byte, and only where there are blocks: what lies between them is not looked at.
TEST_F(Collectives, BlocksThatOverlap) {
  const Sizes apart = {0, 300, 600};
  EXPECT_EQ(allgatherv(memory + 300 - 9, memory, {10, 10, 10}, apart), PEAL_ERR_INVALID_ARGUMENT);
  char expected[200];
  snprintf(expected, sizeof(expected),
           "allgatherv: blocks of the send buffer %p and of the receive buffer %p overlap: use "
           "PEAL_IN_PLACE",
           static_cast<void*>(memory + 300 - 9), static_cast<void*>(memory));
  EXPECT_STREQ(peal_last_error_text(), expected);
  EXPECT_EQ(alltoallv(memory, {10, 10, 11}, {10, 310, 290}, memory, {10, 10, 10}, apart),
            PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(entry(), "");
  EXPECT_EQ(allgatherv(memory + 300 - 10, memory, {10, 10, 10}, apart), PEAL_OK);
  EXPECT_EQ(entry(), "0 allgatherv direct send 1+290 receive 1: 0+10 300+10 600+10");
  EXPECT_EQ(alltoallv(memory, {10, 10, 10}, {10, 310, 290}, memory, {10, 10, 10}, apart), PEAL_OK);
  EXPECT_EQ(entry(),
            "1 alltoallv direct send 1 receive 1: 10+10 310+10 290+10 / 0+10 300+10 600+10");
  EXPECT_EQ(peal_group_wait(group), PEAL_OK);  // tables are written in one pass from now on
  EXPECT_EQ(allgatherv(memory + 300 - 9, memory, {10, 10, 10}, apart), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(alltoallv(memory, {10, 10, 10}, {}, memory + 29, {10, 10, 10}),
            PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(alltoallv(memory, {10, 10, 10}, {}, memory + 30, {10, 10, 10}), PEAL_OK);
  EXPECT_EQ(entry(), "2 alltoallv direct send 1 receive 1: 0+10 10+10 20+10 / 30+10 40+10 50+10");
}

// Each side from its first byte to its last, for what the card does there.
TEST_F(Collectives, ASideOfBlocksIsRegisteredForAllThatTheCardDoesWithIt) {
  std::vector<uint8_t> own(600);
  peal_memory* handle = nullptr;
  const Sizes bytes = {1, 1, 1};
  const Sizes spread = {298, 0, 299};
  ASSERT_EQ(peal_register(contexts[kRank], own.data(), 300, PEAL_READ, &handle), PEAL_OK);
  ASSERT_EQ(peal_register(contexts[kRank], own.data() + 300, 300, PEAL_WRITE, &handle), PEAL_OK);
  uint8_t* const read_only = own.data();
  uint8_t* const write_only = own.data() + 300;
  EXPECT_EQ(alltoallv(write_only, bytes, spread, memory, bytes), PEAL_ERR_BAD_ACCESS);
  EXPECT_EQ(alltoallv(memory, bytes, {}, read_only, bytes, spread), PEAL_ERR_BAD_ACCESS);
  EXPECT_EQ(alltoallv(PEAL_IN_PLACE, {}, {}, write_only, bytes, spread), PEAL_ERR_BAD_ACCESS);
  EXPECT_EQ(allgatherv(PEAL_IN_PLACE, write_only, bytes, spread), PEAL_ERR_BAD_ACCESS);
  EXPECT_EQ(allgatherv(write_only, memory, bytes), PEAL_ERR_BAD_ACCESS);
  EXPECT_EQ(allgatherv(memory, write_only + 1, bytes, spread), PEAL_ERR_BAD_BOUNDS);
  EXPECT_EQ(alltoallv(read_only + 1, bytes, spread, memory, bytes), PEAL_ERR_BAD_BOUNDS);
  EXPECT_EQ(allgatherv(memory, &own, bytes), PEAL_ERR_NOT_REGISTERED);
  EXPECT_EQ(entry(), "");
  EXPECT_EQ(alltoallv(read_only, bytes, spread, write_only, bytes, spread), PEAL_OK);
  EXPECT_EQ(entry(), "0 alltoallv direct send 2 receive 3: 298+1 0+1 299+1 / 298+1 0+1 299+1");
}

TEST_F(Collectives, AGroupThatRegistersDoesItForTheBlocksAndWhatLiesBetween) {
  make_group({sizeof(peal_group_params), PEAL_GROUP_REGISTER, PEAL_ALLGATHER_AUTO, nullptr});
  std::vector<uint8_t> own(1000);
  EXPECT_EQ(allgatherv(own.data(), own.data() + 100, {10, 20, 30}, {200, 100, 50}), PEAL_OK);
  EXPECT_EQ(entry(), "0 allgatherv direct send 3 receive 2: 150+10 50+20 0+30");
  peal_statistics read = {};
  read.struct_bytes = sizeof(read);
  EXPECT_EQ(peal_read_statistics(contexts[kRank], &read), PEAL_OK);
  EXPECT_EQ(read.regions, 3u);
  EXPECT_EQ(read.region_bytes, 4 * kSize * kBlock + 160 + 20);
}

TEST_F(Collectives, TheBlockingFormsReturnHowItEnded) {
  std::thread card([&] {
    for (const uint32_t status :
         {PEAL_STATUS_OK, PEAL_STATUS_MISMATCH, PEAL_STATUS_OK, PEAL_STATUS_PEER_DEAD,
          PEAL_STATUS_OK, PEAL_STATUS_MISMATCH, PEAL_STATUS_OK}) {
      const peal_submission taken = cards[kRank].await_entry();
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
  const size_t bytes[kSize] = {1, 2, 3};
  EXPECT_EQ(peal_alltoallv(group, memory, bytes, nullptr, memory + kBlock, bytes, nullptr),
            PEAL_ERR_MISMATCH);
  EXPECT_STREQ(peal_last_error_text(), "alltoallv 5: ranks disagree: rank 2");
  EXPECT_EQ(peal_allgatherv(group, memory, memory + kBlock, bytes, nullptr), PEAL_OK);
  card.join();
  peal_statistics read = {};
  read.struct_bytes = sizeof(read);
  EXPECT_EQ(peal_read_statistics(contexts[kRank], &read), PEAL_OK);
  EXPECT_EQ(read.posted, 7u);
  EXPECT_EQ(read.failed, 3u);
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
  const size_t one = 1;
  EXPECT_EQ(peal_allgatherv(nullptr, memory, memory, &one, &one), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_STREQ(peal_last_error_text(), "peal_allgatherv: group is null");
  EXPECT_EQ(peal_iallgatherv(nullptr, memory, memory, &one, &one, &request),
            PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_STREQ(peal_last_error_text(), "peal_iallgatherv: group is null");
  EXPECT_EQ(peal_alltoallv(nullptr, memory, &one, &one, memory, &one, &one),
            PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_STREQ(peal_last_error_text(), "peal_alltoallv: group is null");
  EXPECT_EQ(peal_ialltoallv(nullptr, memory, &one, &one, memory, &one, &one, &request),
            PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_STREQ(peal_last_error_text(), "peal_ialltoallv: group is null");
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
