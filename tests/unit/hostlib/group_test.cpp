// SPDX-License-Identifier: BSD-2-Clause
// Making groups: the two rounds, and that every failure reaches every rank and gives the member
// back.
#include "hostlib/group.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <set>
#include <thread>

#include "tests/support/forbid.h"
#include "tests/unit/hostlib/one_group.h"

namespace peal::host {
namespace {

// An out-of-band allgather among threads.
class Exchange {
 public:
  explicit Exchange(uint32_t size) : size_(size), barrier_(size) {}

  struct Seat {
    Exchange* exchange;
    uint32_t rank;
    int rounds = 0;
    int fail_in_round = -1;
  };

  static int allgather(void* argument, const void* send, void* receive, size_t bytes) {
    auto* seat = static_cast<Seat*>(argument);
    Exchange& exchange = *seat->exchange;
    if (seat->rank == 0) exchange.blocks_.resize(bytes * exchange.size_);
    exchange.barrier_.arrive_and_wait();
    memcpy(exchange.blocks_.data() + seat->rank * bytes, send, bytes);
    exchange.barrier_.arrive_and_wait();
    memcpy(receive, exchange.blocks_.data(), exchange.blocks_.size());
    exchange.barrier_.arrive_and_wait();
    return seat->rounds++ == seat->fail_in_round ? 1 : 0;
  }

 private:
  uint32_t size_;
  std::barrier<> barrier_;
  std::vector<uint8_t> blocks_;
};

struct Outcome {
  peal_error error = PEAL_OK;
  std::string text;
  int rounds = 0;
};

class Groups : public testing::Test {
 protected:
  static constexpr uint32_t kSize = 5;

  // All ranks make one group; `change` may misarrange a rank.
  template <typename Change>
  std::vector<Outcome> create(Change change) {
    std::vector<Outcome> outcomes(kSize);
    Exchange exchange(kSize);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < kSize; rank++) {
      threads.emplace_back([&, rank] {
        peal_context* context = open_fake(&cards[rank]);
        peal_group_params params = {sizeof(peal_group_params), 0, PEAL_ALLGATHER_RECURSIVE_DOUBLING,
                                    nullptr};
        Exchange::Seat seat = {&exchange, rank};
        change(rank, cards[rank], params, seat);
        peal_group* group = nullptr;
        outcomes[rank].error =
            peal_group_create(context, rank, kSize, Exchange::allgather, &seat, &params, &group);
        outcomes[rank].text = peal_last_error_text();
        outcomes[rank].rounds = seat.rounds;
        EXPECT_EQ(group != nullptr, outcomes[rank].error == PEAL_OK);
        peal_close(context);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return outcomes;
  }

  void expect_nothing_reserved() {
    for (const FakeCard& card : cards) {
      EXPECT_TRUE(card.reserved.empty());
      EXPECT_TRUE(card.connected_members.empty());
    }
  }

  FakeCard cards[kSize];
};

TEST_F(Groups, PeersAreThePowersOfTwoBothWays) {
  const auto outcomes = create([](uint32_t, FakeCard&, peal_group_params&, Exchange::Seat&) {});
  for (uint32_t rank = 0; rank < kSize; rank++) {
    EXPECT_EQ(outcomes[rank].error, PEAL_OK) << outcomes[rank].text;
    EXPECT_EQ(outcomes[rank].rounds, 2);
    ASSERT_EQ(cards[rank].peers.size(), 6u);
    for (uint32_t j = 0; j < 3; j++) {
      EXPECT_EQ(cards[rank].peers[2 * j].rank, (rank + (1u << j)) % kSize);
      EXPECT_EQ(cards[rank].peers[2 * j + 1].rank, (rank + 2 * kSize - (1u << j)) % kSize);
    }
  }
}

TEST_F(Groups, OneRankIsRefusedByItsCard) {
  const auto outcomes =
      create([](uint32_t rank, FakeCard& card, peal_group_params&, Exchange::Seat&) {
        if (rank == 3) card.refuse_reserve = PEAL_ERR_NO_RESOURCES;
      });
  for (uint32_t rank = 0; rank < kSize; rank++) {
    EXPECT_EQ(outcomes[rank].error, rank == 3 ? PEAL_ERR_NO_RESOURCES : PEAL_ERR_PEER_REFUSED);
    EXPECT_EQ(outcomes[rank].rounds, 2);
    if (rank != 3) {
      EXPECT_EQ(outcomes[rank].text,
                "reserving the group: rank 3 failed: a fixed pool of the card is used up");
    }
  }
  expect_nothing_reserved();
}

TEST_F(Groups, OneRankCannotConnect) {
  const auto outcomes =
      create([](uint32_t rank, FakeCard& card, peal_group_params&, Exchange::Seat&) {
        if (rank == 0) card.refuse_connect = PEAL_ERR_BAD_GROUP;
      });
  for (uint32_t rank = 0; rank < kSize; rank++) {
    EXPECT_EQ(outcomes[rank].error, rank == 0 ? PEAL_ERR_BAD_GROUP : PEAL_ERR_PEER_REFUSED);
  }
  expect_nothing_reserved();
}

TEST_F(Groups, DifferentTables) {
  const auto outcomes =
      create([](uint32_t rank, FakeCard&, peal_group_params& params, Exchange::Seat&) {
        if (rank == 4) params.allgather_algorithm = PEAL_ALLGATHER_ALL_TO_ALL_BROADCAST;
      });
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.error, PEAL_ERR_MISMATCH);
  expect_nothing_reserved();
}

// As many bytes as the header of version 2 has: what lies behind them is none of the library's.
TEST_F(Groups, RulesAreReadWhereTheCallerKnowsOfThem) {
  const auto outcomes = create([](uint32_t, FakeCard&, peal_group_params& params, Exchange::Seat&) {
    params.struct_bytes = offsetof(peal_group_params, algorithms);
    params.algorithms = "nonsense";
  });
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.error, PEAL_OK) << outcome.text;
}

// However they say it: a parameter of its own, one rule, or several.
TEST_F(Groups, RulesThatComeToTheSame) {
  const auto outcomes =
      create([](uint32_t rank, FakeCard&, peal_group_params& params, Exchange::Seat&) {
        if (rank % 2 == 0) return;
        params.allgather_algorithm = PEAL_ALLGATHER_AUTO;
        params.algorithms = rank == 1
                                ? "allgather:recursive-doubling"
                                : "allgather:0-4k:recursive-doubling,allgather:recursive-doubling";
      });
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.error, PEAL_OK) << outcome.text;
}

TEST_F(Groups, DifferentRules) {
  const auto outcomes =
      create([](uint32_t rank, FakeCard&, peal_group_params& params, Exchange::Seat&) {
        params.allgather_algorithm = PEAL_ALLGATHER_AUTO;
        if (rank == 4) params.algorithms = "allgather:100k:recursive-doubling";
      });
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.error, PEAL_ERR_MISMATCH);
  expect_nothing_reserved();
}

TEST_F(Groups, SenselessRulesOfOne) {
  const auto outcomes =
      create([](uint32_t rank, FakeCard&, peal_group_params& params, Exchange::Seat&) {
        if (rank == 2) params.algorithms = "allgather:fastest";
      });
  for (uint32_t rank = 0; rank < kSize; rank++) {
    EXPECT_EQ(outcomes[rank].error, rank == 2 ? PEAL_ERR_INVALID_ARGUMENT : PEAL_ERR_PEER_REFUSED);
  }
  EXPECT_EQ(outcomes[2].text,
            "peal_group_params.algorithms: \"allgather:fastest\": \"fastest\" is no algorithm of "
            "allgather: expected all-to-all-broadcast, recursive-doubling, direct or ring");
  expect_nothing_reserved();
}

// Of three ranks one makes it for something else: all are told which.
TEST(GroupPurpose, IsCompared) {
  for (const uint32_t odd : {0u, 7u}) {
    FakeCard cards[3];
    peal_context* contexts[3] = {};
    peal_group_builder* builders[3] = {};
    for (uint32_t rank = 0; rank < 3; rank++) {
      contexts[rank] = open_fake(&cards[rank]);
      ASSERT_EQ(begin_group(*contexts[rank], rank, 3, {}, &builders[rank]), PEAL_OK);
      set_purpose(*builders[rank], rank == 1 ? odd : 5);
    }
    for (int exchange = 0; exchange < 2; exchange++) {
      const std::vector<uint8_t> records = records_of(builders);
      for (peal_group_builder* builder : builders) {
        peal_group* group = nullptr;
        EXPECT_EQ(peal_group_advance(builder, records.data(), &group),
                  exchange == 0 ? PEAL_OK : PEAL_ERR_MISMATCH);
      }
    }
    EXPECT_EQ(peal_last_error_text(),
              std::string("reserving the group: rank 1 makes it for another operation, root or "
                          "length"));
    for (peal_context* context : contexts) peal_close(context);
  }
}

// The cards would drop each other's pieces: everybody is told whose card is the odd one.
TEST_F(Groups, DifferentCards) {
  const auto outcomes = create([](uint32_t rank, FakeCard& card, peal_group_params&,
                                  Exchange::Seat&) { card.geometry = rank == 3 ? 0xbad : 0x900d; });
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.error, PEAL_ERR_MISMATCH);
    EXPECT_EQ(
        outcome.text,
        "reserving the group: rank 3's card has geometry 00000bad, rank 0's 0000900d: version, "
        "channels, pieces, MTU and channel bytes must be the same on all cards of a group");
    EXPECT_EQ(outcome.rounds, 2);
  }
  expect_nothing_reserved();
}

TEST_F(Groups, IdIsRandomAndTheSameForAll) {
  std::set<uint64_t> ids;
  uint64_t ones = 0;
  uint64_t zeros = 0;
  for (int i = 0; i < 8; i++) {
    create([](uint32_t, FakeCard&, peal_group_params&, Exchange::Seat&) {});
    for (const FakeCard& card : cards) EXPECT_EQ(card.group_id, cards[0].group_id);
    ids.insert(cards[0].group_id);
    ones |= cards[0].group_id;
    zeros |= ~cards[0].group_id;
  }
  EXPECT_EQ(ids.size(), 8u);
  // Each half is drawn: neither is ever the same.
  for (const uint64_t half : {uint64_t{0xffffffff}, uint64_t{0xffffffff} << 32}) {
    EXPECT_GT(std::popcount(ones & zeros & half), 16);
  }
}

// Without randomness there is no group: nothing that could be guessed takes its place.
TEST_F(Groups, NoRandomnessNoGroup) {
  const pid_t child = fork();
  if (child == 0) {
    peal_context* context = open_fake(&cards[0]);
    const auto alone = [](void* rounds, const void* own, void* all, size_t bytes) {
      memcpy(all, own, bytes);
      ++*static_cast<int*>(rounds);
      return 0;
    };
    int rounds = 0;
    peal_group* group = nullptr;
    // As the kernel's own filter has it.
    if (!::peal::test::forbid({SYS_getrandom}, ENOSYS)) _exit(2);
    const peal_error error = peal_group_create(context, 0, 1, alone, &rounds, nullptr, &group);
    const std::string wanted = "getrandom: no id for the group: Function not implemented";
    const bool named = peal_last_error_text() == wanted;
    if (!named) fprintf(stderr, "%s\n", peal_last_error_text());
    _exit(error == PEAL_ERR_SYSTEM && named && rounds == 2 && group == nullptr &&
                  cards[0].reserved.empty()
              ? 0
              : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// As a caller without a blocking exchange makes them: in one thread, all ranks step by step.
TEST_F(Groups, StepByStep) {
  peal_context* contexts[kSize] = {};
  peal_group_builder* builders[kSize] = {};
  peal_group* groups[kSize] = {};
  for (uint32_t rank = 0; rank < kSize; rank++) {
    contexts[rank] = open_fake(&cards[rank]);
    ASSERT_EQ(peal_group_begin(contexts[rank], rank, kSize, nullptr, &builders[rank]), PEAL_OK);
  }
  for (int exchange = 0; exchange < 2; exchange++) {
    const std::vector<uint8_t> records = records_of(builders);
    for (uint32_t rank = 0; rank < kSize; rank++) {
      EXPECT_EQ(groups[rank], nullptr);
      ASSERT_EQ(peal_group_advance(builders[rank], records.data(), &groups[rank]), PEAL_OK);
    }
  }
  for (uint32_t rank = 0; rank < kSize; rank++) {
    ASSERT_NE(groups[rank], nullptr);
    EXPECT_EQ(peal_group_rank(groups[rank]), rank);
    EXPECT_EQ(cards[rank].connected_members.size(), 1u);
    peal_close(contexts[rank]);
  }
}

TEST_F(Groups, StepByStepAFailureComesFromTheLastStep) {
  peal_context* context = open_fake(&cards[0]);
  cards[0].refuse_reserve = PEAL_ERR_NO_RESOURCES;
  peal_group_builder* builder = nullptr;
  peal_group* group = nullptr;
  ASSERT_EQ(peal_group_begin(context, 0, 1, nullptr, &builder), PEAL_OK);
  ASSERT_EQ(peal_group_advance(builder, peal_group_record(builder), &group), PEAL_OK);
  EXPECT_EQ(peal_group_advance(builder, peal_group_record(builder), &group), PEAL_ERR_NO_RESOURCES);
  EXPECT_EQ(group, nullptr);
  peal_close(context);
}

// The same error of set-up and of a null argument, after which alone the builder is still there.
TEST_F(Groups, StepByStepOnlyNullArgumentsLeaveTheBuilder) {
  peal_context* context = open_fake(&cards[0]);
  peal_group_params params = {};
  params.struct_bytes = sizeof(params);
  params.flags = ~0u;
  peal_group_builder* builder = nullptr;
  peal_group* group = nullptr;
  ASSERT_EQ(peal_group_begin(context, 0, 1, &params, &builder), PEAL_OK);
  for (int exchange = 0; exchange < 2; exchange++) {
    EXPECT_EQ(peal_group_advance(builder, nullptr, &group), PEAL_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(peal_group_advance(builder, peal_group_record(builder), nullptr),
              PEAL_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(context->builders.size(), 1u);
    EXPECT_EQ(peal_group_advance(builder, peal_group_record(builder), &group),
              exchange == 0 ? PEAL_OK : PEAL_ERR_INVALID_ARGUMENT);
  }
  EXPECT_TRUE(context->builders.empty());
  peal_close(context);
}

TEST_F(Groups, ACancelledOneGivesItsMemberBack) {
  peal_context* context = open_fake(&cards[0]);
  peal_group_builder* builder = nullptr;
  peal_group* group = nullptr;
  ASSERT_EQ(peal_group_begin(context, 0, 1, nullptr, &builder), PEAL_OK);
  EXPECT_EQ(cards[0].reserved.size(), 1u);
  ASSERT_EQ(peal_group_advance(builder, peal_group_record(builder), &group), PEAL_OK);
  peal_group_cancel(builder);
  peal_group_cancel(nullptr);
  expect_nothing_reserved();
  EXPECT_EQ(peal_group_begin(context, 1, 1, nullptr, &builder), PEAL_ERR_BAD_RANK);
  EXPECT_EQ(peal_group_begin(nullptr, 0, 1, nullptr, &builder), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_group_advance(nullptr, nullptr, &group), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_group_record(nullptr), nullptr);
  peal_close(context);
}

// Even while another thread of the parent is inside the library.
TEST_F(Groups, AChildMayNotGoOnWithItsParentsBuilder) {
  peal_context* context = open_fake(&cards[0]);
  peal_group_builder* builder = nullptr;
  ASSERT_EQ(peal_group_begin(context, 0, 1, nullptr, &builder), PEAL_OK);
  pid_t child = 0;
  {
    const std::lock_guard as_another_thread(context->mutex);
    child = fork();
    if (child == 0) {
      peal_group* group = nullptr;
      peal_group_builder* another = nullptr;
      const bool refused =
          peal_group_advance(builder, peal_group_record(builder), &group) == PEAL_ERR_FORKED &&
          peal_group_begin(context, 0, 1, nullptr, &another) == PEAL_ERR_FORKED;
      _exit(refused ? 0 : 1);
    }
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  peal_close(context);  // frees the builder
}

TEST_F(Groups, WrongParameters) {
  const auto outcomes =
      create([](uint32_t rank, FakeCard&, peal_group_params& params, Exchange::Seat&) {
        if (rank == 1) params.flags = 1u << 20;
      });
  for (uint32_t rank = 0; rank < kSize; rank++) {
    EXPECT_EQ(outcomes[rank].error, rank == 1 ? PEAL_ERR_INVALID_ARGUMENT : PEAL_ERR_PEER_REFUSED);
  }
  expect_nothing_reserved();
}

TEST_F(Groups, AnAlgorithmThatThereIsNot) {
  const auto outcomes =
      create([](uint32_t rank, FakeCard&, peal_group_params& params, Exchange::Seat&) {
        const int seven = 7;
        if (rank == 1) memcpy(&params.allgather_algorithm, &seven, sizeof(seven));
      });
  EXPECT_EQ(outcomes[1].error, PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(outcomes[1].text, "allgather algorithm 7 in the parameters");
}

TEST_F(Groups, ExchangeFailsInTheSecondRound) {
  const auto outcomes = create([](uint32_t, FakeCard&, peal_group_params&, Exchange::Seat& seat) {
    seat.fail_in_round = 1;
  });
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.error, PEAL_ERR_OUT_OF_BAND);
  expect_nothing_reserved();
}

TEST_F(Groups, ExchangeThatReturnsNonsense) {
  FakeCard card;
  peal_context* context = open_fake(&card);
  peal_group* group = nullptr;
  const auto nonsense = [](void*, const void* own, void* all, size_t bytes) {
    memcpy(all, own, bytes);  // rank 1's block stays zero
    return 0;
  };
  EXPECT_EQ(peal_group_create(context, 0, 2, nonsense, nullptr, nullptr, &group),
            PEAL_ERR_OUT_OF_BAND);
  EXPECT_TRUE(card.reserved.empty());
  peal_close(context);
}

// A group of one rank, whose destroy ends as the test wants.
class Destroyed : public OneGroup {
 protected:
  void expect_end(uint32_t status, peal_error error, const char* text) {
    std::thread caller([&] {
      EXPECT_EQ(peal_group_destroy(group), error);
      EXPECT_STREQ(peal_last_error_text(), text);
    });
    card.complete(card.await_entry(), status, 3);
    caller.join();
    EXPECT_TRUE(context->groups.empty());
  }
};

TEST_F(Destroyed, ByOneThreadOnly) {
  peal_request* request = post();
  std::thread caller([&] { EXPECT_EQ(peal_group_destroy(group), PEAL_OK); });
  card.await_sleeper();  // it waits for the operation
  EXPECT_EQ(peal_group_destroy(group), PEAL_ERR_CLOSED);
  EXPECT_EQ(peal_group_abort(group), PEAL_ERR_CLOSED);
  card.complete(card.await_entry());
  card.complete(card.await_entry());
  caller.join();
  EXPECT_EQ(peal_request_free(request), PEAL_OK);
  EXPECT_TRUE(context->groups.empty());
}

TEST_F(Destroyed, WhoDisagreesLeavesTheGroup) {
  expect_end(PEAL_STATUS_MISMATCH, PEAL_ERR_MISMATCH, "destroying the group: ranks disagree");
  EXPECT_TRUE(card.reserved.empty());
}

TEST_F(Destroyed, WhatTheCardSaysToThatChangesNothing) {
  card.refuse_abandon = PEAL_ERR_BAD_GROUP;
  expect_end(PEAL_STATUS_MISMATCH, PEAL_ERR_MISMATCH, "destroying the group: ranks disagree");
}

TEST_F(Destroyed, WhatTheCardHasEndedIsNotEndedAgain) {
  expect_end(PEAL_STATUS_PEER_DEAD, PEAL_ERR_PEER_DEAD, "destroying the group: rank 3 is dead");
  EXPECT_EQ(card.reserved.size(), 1u);
}

TEST_F(Destroyed, NorWhatItKnowsNoMore) {
  expect_end(PEAL_STATUS_CLOSED, PEAL_ERR_CLOSED, "destroying the group: the group was destroyed");
  EXPECT_EQ(card.reserved.size(), 1u);
}

// A context and a group for each of so many ranks, each on a card of its own.
class TableOfAddresses : public testing::Test {
 protected:
  void TearDown() override {
    for (peal_context* context : contexts) peal_close(context);
  }
  void make(uint32_t size) {
    contexts.resize(size);
    groups.resize(size);
    Exchange exchange(size);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < size; rank++) {
      contexts[rank] = open_fake(&cards[rank]);
      threads.emplace_back([this, &exchange, rank, size] {
        Exchange::Seat seat = {&exchange, rank};
        ASSERT_EQ(peal_group_create(contexts[rank], rank, size, Exchange::allgather, &seat, nullptr,
                                    &groups[rank]),
                  PEAL_OK);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  static constexpr uint32_t kBytes = 8 * sizeof(peal_peer_address);
  FakeCard cards[8];
  std::vector<peal_context*> contexts;
  std::vector<peal_group*> groups;
};

TEST_F(TableOfAddresses, WhereSomeRanksAreNoPeersTheCardGetsIt) {
  for (FakeCard& card : cards) card.next_member = 1 + 3 * static_cast<uint32_t>(&card - cards);
  make(8);
  for (uint32_t rank = 0; rank < 8; rank++) {
    EXPECT_EQ(cards[rank].addresses_key, groups[rank]->table.key);
    EXPECT_EQ(cards[rank].keys, std::set<uint32_t>{groups[rank]->table.key});
    for (uint32_t of = 0; of < 8; of++) {
      peal_peer_address address;
      memcpy(&address, groups[rank]->table.address + of * sizeof(address), sizeof(address));
      EXPECT_EQ(address.rank, of);
      EXPECT_EQ(address.member, 1 + 3 * of);
    }
  }
}

TEST_F(TableOfAddresses, WhereAllArePeersThereIsNone) {
  make(5);
  for (uint32_t rank = 0; rank < 5; rank++) {
    EXPECT_EQ(cards[rank].addresses_key, 0u);
    EXPECT_TRUE(cards[rank].keys.empty());
  }
}

TEST_F(TableOfAddresses, ItsPlaceIsTheNextGroupsAndTheMemoryIsKept) {
  make(8);
  EXPECT_EQ(cards[2].addresses_offset, 0u);
  EXPECT_NE(contexts[2]->tables.take(kBytes).offset, 0u);
  EXPECT_EQ(peal_group_abort(groups[2]), PEAL_OK);
  EXPECT_EQ(contexts[2]->tables.take(kBytes).offset, 0u);
  for (const FakeCard& card : cards) EXPECT_EQ(card.keys.size(), 1u);
  peal_close(contexts[2]);
  EXPECT_TRUE(cards[2].mapped.empty());
  contexts.erase(contexts.begin() + 2);
}

TEST_F(TableOfAddresses, AGroupThatDoesNotComeToBeLeavesNone) {
  for (FakeCard& card : cards) card.refuse_connect = PEAL_ERR_NO_RESOURCES;
  contexts.resize(8);
  Exchange exchange(8);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 8; rank++) {
    contexts[rank] = open_fake(&cards[rank]);
    threads.emplace_back([this, &exchange, rank] {
      Exchange::Seat seat = {&exchange, rank};
      peal_group* group = nullptr;
      EXPECT_NE(
          peal_group_create(contexts[rank], rank, 8, Exchange::allgather, &seat, nullptr, &group),
          PEAL_OK);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (peal_context* context : contexts) {
    const AddressTables::Place place = context->tables.take(kBytes);
    EXPECT_TRUE(place.address != nullptr && place.offset == 0);
  }
}

}  // namespace
}  // namespace peal::host
