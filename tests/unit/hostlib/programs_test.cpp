// SPDX-License-Identifier: BSD-2-Clause
// Programs of the C API: what goes to the card when they are committed, started and freed.
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "abi/program.h"
#include "hostlib/ended.h"
#include "hostlib/programs.h"
#include "hostlib/rings.h"
#include "tests/unit/hostlib/one_group.h"

namespace peal::host {
namespace {

class ProgramApi : public OneGroup {
 protected:
  void SetUp() override {
    OneGroup::SetUp();
    ASSERT_EQ(peal_program_create(0, 1, nullptr, &program), PEAL_OK);
    ASSERT_EQ(peal_program_counter(program, 0, &own), PEAL_OK);
    ASSERT_EQ(peal_alloc(context, 64, &memory), PEAL_OK);
  }
  void TearDown() override {
    EXPECT_EQ(peal_program_free(program), PEAL_OK);
    OneGroup::TearDown();
  }
  // The card looks at the program, and finds that.
  peal_error commit(uint32_t status = PEAL_STATUS_OK) {
    std::thread player([&] {
      look = card.await_entry();
      card.complete(look, status);
    });
    const peal_error error = peal_program_commit(group, program);
    player.join();
    return error;
  }
  std::string checked() {
    char text[256] = "?";
    size_t length = 0;
    result = peal_program_check(program, text, sizeof(text), &length);
    EXPECT_EQ(length, std::strlen(text));
    return text;
  }

  peal_program* program = nullptr;
  uint32_t own = 99;
  void* memory = nullptr;
  peal_submission look = {};
  peal_error result = PEAL_OK;
};

TEST_F(ProgramApi, CommitGivesTheCardWhatItIsAndHasItLookedAt) {
  const peal_program_notice notice = {nullptr, own, 2};
  ASSERT_EQ(peal_program_signal(program, 0, &notice, PEAL_NO_COUNT), PEAL_OK);
  ASSERT_EQ(peal_program_wait(program, own, 2), PEAL_OK);
  ASSERT_EQ(commit(), PEAL_OK);
  ASSERT_EQ(card.committed.size(), 1u);
  const peal_commit_program& request = card.committed[0];
  EXPECT_EQ(request.member, group->member);
  EXPECT_EQ(request.count, 4u);
  EXPECT_EQ(request.counters, 1u);
  EXPECT_EQ(request.scheduled, 0u);
  EXPECT_EQ(request.name, 0u);
  EXPECT_EQ(request.mode, PEAL_PROGRAM_MODE_TASKS);
  EXPECT_TRUE(card.keys.contains(request.key));
  EXPECT_EQ(look.operation, PEAL_OPERATION_START);
  EXPECT_EQ(look.send_key, 1u);
  EXPECT_EQ(look.sequence, 0u);
  EXPECT_EQ(look.block_bytes, 0u);
}

TEST_F(ProgramApi, AnEngineGoesToTheCardWhichMayNotHaveIt) {
  peal_program_params params = {};
  params.struct_bytes = sizeof(params);
  params.engine = 2;
  ASSERT_EQ(peal_program_free(program), PEAL_OK);
  ASSERT_EQ(peal_program_create(0, 1, &params, &program), PEAL_OK);
  ASSERT_EQ(commit(), PEAL_OK);
  EXPECT_EQ(card.committed.at(0).engine, 2u);
  ASSERT_EQ(peal_program_free(program), PEAL_OK);
  ASSERT_EQ(peal_program_create(0, 1, &params, &program), PEAL_OK);
  card.refuse_commit = PEAL_ERR_BAD_FLAGS;
  EXPECT_EQ(peal_program_commit(group, program), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_STREQ(peal_last_error_text(), "the card has no transmit engine 2");
  // What an older caller does not say is engine 0; no byte holds 256.
  peal_program* other = nullptr;
  params.struct_bytes = offsetof(peal_program_params, engine);
  EXPECT_EQ(peal_program_create(0, 1, &params, &other), PEAL_OK);
  EXPECT_EQ(peal_program_free(other), PEAL_OK);
  params.struct_bytes = sizeof(params);
  params.engine = 256;
  EXPECT_EQ(peal_program_create(0, 1, &params, &other), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(other, nullptr);
}

// How a start ended whose completion says this.
class FailedStart : public ProgramApi {
 protected:
  std::string text_of(uint32_t status, uint64_t index, uint64_t reason, uint32_t rank) {
    if (!card.committed.empty()) return text_of_start(status, index, reason, rank);
    EXPECT_EQ(commit(), PEAL_OK);
    return text_of_start(status, index, reason, rank);
  }
  int failed_rank = -2;

 private:
  std::string text_of_start(uint32_t status, uint64_t index, uint64_t reason, uint32_t rank) {
    peal_request* request = nullptr;
    EXPECT_EQ(peal_program_start(program, 1, &request), PEAL_OK);
    peal_submission entry = {};
    EXPECT_TRUE(card.take(&entry));
    card.complete_start(entry, status, index, reason, rank);
    EXPECT_EQ(peal_wait(request), static_cast<peal_error>(status));
    std::string text = peal_last_error_text();
    failed_rank = peal_request_failed_rank(request);
    EXPECT_EQ(peal_request_free(request), PEAL_OK);
    return text.substr(text.find(':') + 2);
  }
};

TEST_F(FailedStart, ItsPlaceIsNamedAndWhoseItWas) {
  EXPECT_EQ(text_of(PEAL_STATUS_BAD_PROGRAM, 3, PEAL_PROGRAM_REASON_KEY, PEAL_NO_RANK),
            "a descriptor of the program is bad: descriptor 3: no such memory key of this context");
  EXPECT_EQ(failed_rank, -1);
  EXPECT_EQ(
      text_of(PEAL_STATUS_BAD_PROGRAM, 3, PEAL_PROGRAM_REASON_KEY | PEAL_PROGRAM_ELSEWHERE, 5),
      "rank 5's start failed: a descriptor of the program is bad: descriptor 3: no such "
      "memory key of this context");
  EXPECT_EQ(failed_rank, 5);
  EXPECT_EQ(text_of(PEAL_STATUS_DMA_FAULT, 4, PEAL_PROGRAM_ELSEWHERE, 6),
            "rank 6's start failed: the card could not reach the memory: descriptor 4");
  EXPECT_EQ(
      text_of(PEAL_STATUS_BAD_PROGRAM, 1, PEAL_PROGRAM_REASON_AHEAD | PEAL_PROGRAM_ELSEWHERE, 2),
      "rank 2's start failed: a descriptor of the program is bad: counter 1: a rank told a "
      "counter of an iteration that is too far ahead");
}

// What an earlier start of the same request ended by is not told of one that the card's end ends.
TEST_F(FailedStart, OneThatTheCardsEndEndsHasNoPlace) {
  EXPECT_EQ(text_of(PEAL_STATUS_DMA_FAULT, 4, PEAL_PROGRAM_ELSEWHERE, 6),
            "rank 6's start failed: the card could not reach the memory: descriptor 4");
  peal_request* request = nullptr;
  ASSERT_EQ(peal_program_start(program, 1, &request), PEAL_OK);
  {
    const std::lock_guard lock(context->mutex);
    break_context(*context, PEAL_ERR_CARD_GONE);
  }
  EXPECT_EQ(peal_wait(request), PEAL_ERR_CARD_GONE);
  EXPECT_EQ(std::string(peal_last_error_text()),
            std::string("start 1: ") + peal_strerror(PEAL_ERR_CARD_GONE));
}

// Programs that tell each other know each other's names before one of them is on the card.
class SeveralPrograms : public ProgramApi {
 protected:
  void SetUp() override {
    ProgramApi::SetUp();
    ASSERT_EQ(peal_program_create(0, 1, nullptr, &other), PEAL_OK);
    ASSERT_EQ(peal_program_counter(other, 0, &own), PEAL_OK);
    for (const auto& [from, to] : {std::pair{program, other}, std::pair{other, program}}) {
      const peal_program_notice notice = {to, own, 1};
      ASSERT_EQ(peal_program_signal(from, 0, &notice, PEAL_NO_COUNT), PEAL_OK);
      ASSERT_EQ(peal_program_wait(from, own, 1), PEAL_OK);
    }
  }
  void TearDown() override {
    EXPECT_EQ(peal_program_free(other), PEAL_OK);
    ProgramApi::TearDown();
  }
  // The card looks at the one and then at the other, if it comes to that.
  peal_error commit_all(uint32_t first, uint32_t second) {
    std::thread player([&] {
      card.complete(card.await_entry(), first);
      if (first == PEAL_STATUS_OK) card.complete(card.await_entry(), second);
    });
    peal_program* const both[] = {program, other};
    const peal_error error = peal_program_commit_all(group, both, 2);
    player.join();
    return error;
  }

  peal_program* other = nullptr;
};
TEST_F(SeveralPrograms, AreCommittedTogetherInTheirOrder) {
  ASSERT_EQ(commit_all(PEAL_STATUS_OK, PEAL_STATUS_OK), PEAL_OK);
  ASSERT_EQ(card.committed.size(), 2u);
  EXPECT_EQ(card.committed[0].name, 0u);
  EXPECT_EQ(card.committed[1].name, 1u);
  peal_program* const again[] = {other};
  EXPECT_EQ(peal_program_commit_all(group, again, 1), PEAL_ERR_BUSY);
}

TEST_F(SeveralPrograms, AllOrNone) {
  const size_t keys = card.keys.size();
  EXPECT_EQ(commit_all(PEAL_STATUS_OK, PEAL_STATUS_BAD_PROGRAM), PEAL_ERR_BAD_PROGRAM);
  EXPECT_EQ(std::string(peal_last_error_text()).substr(0, 15), "program 1 of 2:");
  EXPECT_TRUE(card.programs.empty());
  EXPECT_EQ(card.keys.size(), keys);
  EXPECT_EQ(commit_all(PEAL_STATUS_OK, PEAL_STATUS_OK), PEAL_OK) << "it may be tried again";
  EXPECT_EQ(card.programs.size(), 2u);
}

TEST_F(SeveralPrograms, NoneTwice) {
  peal_program* const twice[] = {program, program};
  EXPECT_EQ(peal_program_commit_all(group, twice, 2), PEAL_ERR_BUSY);
  peal_program* const missing[] = {program, nullptr};
  EXPECT_EQ(peal_program_commit_all(group, missing, 2), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_program_commit_all(group, missing, 0), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_TRUE(card.committed.empty());
}

// As after so many commits that the next name is this one.
constexpr uint32_t come_round(uint32_t name) { return PEAL_NO_QUEUE + name; }

TEST_F(SeveralPrograms, ANameThatIsTakenIsPassedOver) {
  ASSERT_EQ(commit(), PEAL_OK);
  group->programs_named = come_round(0);
  std::swap(program, other);
  ASSERT_EQ(commit(), PEAL_OK);
  ASSERT_EQ(card.committed.size(), 2u);
  EXPECT_EQ(card.committed[1].name, 1u);
}

// The first has told the card by which name it tells the second: that one is no name of the second.
TEST_F(SeveralPrograms, WhereOneNameIsTakenAllAreNamedAnew) {
  peal_program* lives = nullptr;
  ASSERT_EQ(peal_program_create(0, 1, nullptr, &lives), PEAL_OK);
  std::swap(program, lives);
  ASSERT_EQ(commit(), PEAL_OK);
  std::swap(program, lives);
  group->programs_named = come_round(0) - 1;
  std::thread player([&] {
    for (int look = 0; look < 3; look++) card.complete(card.await_entry());
  });
  peal_program* const both[] = {program, other};
  EXPECT_EQ(peal_program_commit_all(group, both, 2), PEAL_OK) << peal_last_error_text();
  player.join();
  std::vector<uint16_t> names;
  for (const peal_commit_program& each : card.committed) names.push_back(each.name);
  EXPECT_EQ(names, std::vector<uint16_t>({0, PEAL_NO_QUEUE - 1, 1, 2}));
  EXPECT_EQ(card.programs, std::set<uint32_t>({1, 3, 4}));
  EXPECT_EQ(peal_program_free(lives), PEAL_OK);
}

TEST_F(SeveralPrograms, ACardThatHasNoFreeNameEndsTheCommit) {
  card.refuse_commit = PEAL_ERR_BUSY;
  EXPECT_EQ(peal_program_commit(group, program), PEAL_ERR_BUSY);
  EXPECT_GT(group->programs_named, 4096u);
  card.refuse_commit = PEAL_OK;
  EXPECT_EQ(commit(), PEAL_OK);
}

// Rank 0 of two: the test plays its card, and says what rank 1 says.
class TwoRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    for (size_t rank = 0; rank < 2; rank++) contexts[rank] = open_fake(&cards[rank]);
    group = make_fake_groups(contexts, nullptr)[0];
  }
  void TearDown() override {
    for (peal_context* context : contexts) peal_close(context);
  }

  // As programs.cpp has it.
  struct Word {
    uint16_t error;
    uint16_t name;
    uint32_t named;
  };
  void look() { cards[0].complete(cards[0].await_entry()); }
  // Rank 1 says that of the commit; `change` may misarrange what is else as here. What rank 0 says.
  template <typename Change>
  Word exchange(peal_error theirs, Change change) {
    const peal_submission entry = cards[0].await_entry();
    EXPECT_EQ(entry.operation, PEAL_OPERATION_ALLGATHER);
    Word own = {};
    {
      const std::lock_guard lock(contexts[0]->mutex);
      for (const Region& region : contexts[0]->memory.regions()) {
        if (region.key != entry.receive_key) continue;
        uint8_t* const memory = region.allocation.address;
        memcpy(&own, memory + entry.send_offset, sizeof(own));
        Word word = own;
        word.error = static_cast<uint16_t>(theirs);
        change(word);
        memcpy(memory + entry.receive_offset, &own, sizeof(own));
        memcpy(memory + entry.receive_offset + sizeof(own), &word, sizeof(word));
      }
    }
    cards[0].complete(entry);
    return own;
  }
  Word exchange(peal_error theirs) {
    return exchange(theirs, [](Word&) {});
  }
  std::vector<uint16_t> names() const {
    std::vector<uint16_t> names;
    for (const peal_commit_program& each : cards[0].committed) names.push_back(each.name);
    return names;
  }

  FakeCard cards[2];
  peal_context* contexts[2] = {};
  peal_group* group = nullptr;
};

TEST_F(TwoRanks, ANameThatIsTakenElsewhereIsPassedOver) {
  Allocation work;
  ASSERT_EQ(contexts[0]->transport->allocate(64, &work), PEAL_OK);
  peal_program* program = nullptr;
  std::thread rank([&] {
    EXPECT_EQ(commit_written(*group, Program({.rank = 0, .ranks = 2}), work, &program), PEAL_OK)
        << peal_last_error_text();
  });
  for (const peal_error theirs : {PEAL_ERR_BUSY, PEAL_OK}) {
    look();
    exchange(theirs);
    EXPECT_TRUE(cards[0].mapped.contains(work.key));
  }
  rank.join();
  EXPECT_EQ(names(), std::vector<uint16_t>({0, 1}));
  EXPECT_EQ(cards[0].programs, std::set<uint32_t>({2}));
  EXPECT_EQ(peal_program_free(program), PEAL_OK);
  EXPECT_FALSE(cards[0].mapped.contains(work.key));
}

// A rank that has made more commits than this one has other names.
TEST_F(TwoRanks, WhereNamesDifferAllGoOnFromTheLast) {
  peal_program* program = nullptr;
  ASSERT_EQ(peal_program_create(0, 2, nullptr, &program), PEAL_OK);
  std::thread rank([&] { EXPECT_EQ(peal_program_commit(group, program), PEAL_OK); });
  look();
  exchange(PEAL_OK, [](Word& word) {
    word.name = 4;
    word.named = 5;
  });
  look();
  exchange(PEAL_OK);
  rank.join();
  EXPECT_EQ(names(), std::vector<uint16_t>({0, 5}));
  EXPECT_EQ(group->programs_named, 6u);
  EXPECT_EQ(peal_program_free(program), PEAL_OK);
}

// Nobody waits for the rank whose program is committed already: it fails on all of them.
TEST_F(TwoRanks, ACommitOfACommittedOneFailsEverywhere) {
  peal_program* programs[2] = {};
  for (peal_program*& program : programs)
    ASSERT_EQ(peal_program_create(0, 2, nullptr, &program), PEAL_OK);
  std::thread rank([&] {
    EXPECT_EQ(peal_program_commit(group, programs[0]), PEAL_OK);
    EXPECT_EQ(peal_program_commit(group, programs[0]), PEAL_ERR_BUSY);
    EXPECT_EQ(peal_program_commit_all(group, programs, 2), PEAL_ERR_BUSY);
    EXPECT_STREQ(peal_last_error_text(), "peal_program_commit_all: program 0 is committed");
    EXPECT_EQ(peal_program_commit(group, programs[1]), PEAL_ERR_PEER_REFUSED);
  });
  look();
  exchange(PEAL_OK);
  for (const uint32_t names_of_others : {2u, 4u}) {
    const Word own = exchange(PEAL_OK, [&](Word& word) { word.named = names_of_others; });
    EXPECT_EQ(own.error, PEAL_ERR_INVALID_ARGUMENT);
  }
  look();
  exchange(PEAL_ERR_INVALID_ARGUMENT);
  rank.join();
  EXPECT_EQ(names(), std::vector<uint16_t>({0, 4}));
  EXPECT_EQ(cards[0].programs, std::set<uint32_t>({1}));
  for (peal_program* program : programs) EXPECT_EQ(peal_program_free(program), PEAL_OK);
}

// Needs no card and no group.
class TrinaryApi : public ::testing::Test {
 protected:
  TrinaryApi() {
    params.struct_bytes = sizeof(params);
    params.torus[0] = 2;
    params.torus[1] = 2;
    params.torus[2] = 3;
    params.buffer = memory.data();
    params.bytes = memory.size();
    params.segment_bytes = 100;
    params.buffers = buffers.data();
  }
  peal_error write(uint32_t rank = 1, uint32_t size = 12) {
    programs[0] = programs[1] = programs[2] = reinterpret_cast<peal_program*>(&memory);
    return peal_program_trinary(rank, size, &params, programs);
  }
  // Refused with that, and these words; and nothing is left to be freed.
  void expect_refused(peal_error error, const char* words, uint32_t rank = 1, uint32_t size = 12) {
    EXPECT_EQ(write(rank, size), error);
    EXPECT_NE(std::string(peal_last_error_text()).find(words), std::string::npos)
        << peal_last_error_text();
    for (const peal_program* program : programs) EXPECT_EQ(program, nullptr);
  }

  std::vector<uint8_t> memory = std::vector<uint8_t>(1000);
  std::vector<peal_named_memory> buffers = std::vector<peal_named_memory>(12);
  peal_trinary_params params = {};
  peal_program* programs[PEAL_TRINARY_ENGINES] = {};
};

TEST_F(TrinaryApi, ThreeProgramsThatACardWouldTake) {
  for (uint32_t rank = 0; rank < 12; rank++) {
    ASSERT_EQ(write(rank), PEAL_OK) << peal_last_error_text();
    for (peal_program* program : programs) {
      EXPECT_EQ(peal_program_check(program, nullptr, 0, nullptr), PEAL_OK);
      EXPECT_EQ(peal_program_free(program), PEAL_OK);
    }
  }
}

TEST_F(TrinaryApi, ATorusMustFitTheGroup) {
  expect_refused(PEAL_ERR_INVALID_ARGUMENT, "a torus of 2x2x3 has 12 ranks, not 13", 1, 13);
  params.torus[2] = 0;
  expect_refused(PEAL_ERR_INVALID_ARGUMENT, "a torus of 2x2x0 has 0 ranks, not 12");
  params.torus[0] = 12;
  params.torus[1] = params.torus[2] = 1;
  expect_refused(PEAL_ERR_INVALID_ARGUMENT, "2 links from each node");
}

TEST_F(TrinaryApi, WhatElseIsWrongIsNamed) {
  expect_refused(PEAL_ERR_BAD_RANK, "rank 12 of 12", 12);
  params.root = 12;
  expect_refused(PEAL_ERR_BAD_ROOT, "root 12 of 12");
  params.root = 0;
  params.segment_bytes = 0;
  expect_refused(PEAL_ERR_INVALID_ARGUMENT, "segments of no bytes");
  params.segment_bytes = 1;
  params.bytes = size_t{1} << 60;
  expect_refused(PEAL_ERR_INVALID_ARGUMENT, "a program has 8192 at most");
  params.buffers = nullptr;
  expect_refused(PEAL_ERR_INVALID_ARGUMENT, "buffers is null");
}

TEST_F(ProgramApi, StartsAreIterationsOneBehindTheOther) {
  ASSERT_EQ(commit(), PEAL_OK);
  peal_request* first = nullptr;
  peal_request* second = nullptr;
  ASSERT_EQ(peal_program_start(program, 1, &first), PEAL_OK);
  ASSERT_EQ(peal_program_start(program, 5, &second), PEAL_OK);
  ASSERT_EQ(peal_program_start(program, 1, nullptr), PEAL_OK);
  const uint64_t sequences[] = {0, 1, 6};
  for (const uint64_t sequence : sequences) {
    const peal_submission entry = take();
    EXPECT_EQ(entry.sequence, sequence);
    EXPECT_EQ(entry.block_bytes, sequence == 1 ? 5u : 1u);
    card.complete(entry);
  }
  EXPECT_EQ(peal_wait(first), PEAL_OK);
  EXPECT_EQ(peal_wait(second), PEAL_OK);
  EXPECT_EQ(peal_group_wait(group), PEAL_OK);
  EXPECT_EQ(peal_request_free(first), PEAL_OK);
  EXPECT_EQ(peal_request_free(second), PEAL_OK);
}

TEST_F(ProgramApi, StartsAreNoOperationsOfTheGroup) {
  ASSERT_EQ(commit(), PEAL_OK);
  peal_request* started = nullptr;
  ASSERT_EQ(peal_program_start(program, 1, &started), PEAL_OK);
  const peal_submission start = take();
  peal_request* barrier = post();
  const peal_submission entry = take();
  EXPECT_EQ(entry.sequence, 0u);
  card.complete(start, PEAL_STATUS_BAD_KEY);
  card.complete(entry);
  EXPECT_EQ(peal_wait(started), PEAL_ERR_BAD_KEY);
  EXPECT_EQ(peal_wait(barrier), PEAL_OK);
  peal_request* next = post();
  EXPECT_EQ(take().sequence, 1u) << "a start that was refused does not turn the group back";
  for (peal_request* request : {started, barrier, next}) peal_request_free(request);
}

TEST_F(ProgramApi, AsManyStartsAsTheCardTakes) {
  ASSERT_EQ(commit(), PEAL_OK);
  for (uint32_t i = 0; i < kFakeStarts; i++) {
    ASSERT_EQ(peal_program_start(program, 1, nullptr), PEAL_OK);
  }
  EXPECT_EQ(peal_program_start(program, 1, nullptr), PEAL_ERR_TOO_MANY);
  peal_request* refused = reinterpret_cast<peal_request*>(this);
  EXPECT_EQ(peal_program_start(program, 1, &refused), PEAL_ERR_TOO_MANY);
  EXPECT_EQ(refused, nullptr);
  card.complete(take());
  EXPECT_EQ(peal_program_start(program, 1, nullptr), PEAL_OK);
  peal_submission last = {};
  while (card.take(&last)) card.complete(last);
  EXPECT_EQ(last.sequence, kFakeStarts) << "what was refused here took no number";
  EXPECT_EQ(peal_group_wait(group), PEAL_OK);
}

TEST_F(ProgramApi, WhatTheCardFindsFailsTheCommitAndLeavesNothing) {
  const size_t keys = card.keys.size();
  EXPECT_EQ(commit(PEAL_STATUS_BAD_PROGRAM), PEAL_ERR_BAD_PROGRAM);
  EXPECT_TRUE(card.programs.empty());
  EXPECT_EQ(card.keys.size(), keys);
  EXPECT_EQ(commit(), PEAL_OK) << "it may be tried again";
  EXPECT_EQ(card.committed.back().name, 1u) << "by another name";
}

TEST_F(ProgramApi, WhatTheCardRefusesFailsTheCommitAndLeavesNothing) {
  const size_t keys = card.keys.size();
  card.refuse_commit = PEAL_ERR_NO_RESOURCES;
  EXPECT_EQ(peal_program_commit(group, program), PEAL_ERR_NO_RESOURCES);
  EXPECT_EQ(card.keys.size(), keys);
  EXPECT_EQ(peal_program_start(program, 1, nullptr), PEAL_ERR_INVALID_ARGUMENT);
}

TEST_F(ProgramApi, MemoryThatIsNotRegisteredFailsTheCommit) {
  char stack[8] = {};
  ASSERT_EQ(peal_program_send(program, 0, 1, stack, sizeof(stack), own), PEAL_OK);
  EXPECT_EQ(peal_program_commit(group, program), PEAL_ERR_NOT_REGISTERED);
  EXPECT_TRUE(card.committed.empty());
}

TEST_F(ProgramApi, OneThatIsWrongGoesToNoCard) {
  ASSERT_EQ(peal_program_wait(program, 7, 1), PEAL_OK);
  EXPECT_EQ(checked(),
            "descriptor 0: wrong: no such counter, or not one of that kind\n"
            "descriptor 1: nothing in it takes as long as a message: it cannot be started for "
            "several iterations\n");
  EXPECT_EQ(result, PEAL_ERR_BAD_PROGRAM);
  EXPECT_EQ(peal_program_commit(group, program), PEAL_ERR_BAD_PROGRAM);
  EXPECT_STREQ(peal_last_error_text(),
               "descriptor 0 of 3: no such counter, or not one of that kind");
  EXPECT_TRUE(card.committed.empty());
}

TEST_F(ProgramApi, OneForAnotherRankGoesToNoCard) {
  peal_program* other = nullptr;
  ASSERT_EQ(peal_program_create(1, 2, nullptr, &other), PEAL_OK);
  EXPECT_EQ(peal_program_commit(group, other), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_program_free(other), PEAL_OK);
}

TEST_F(ProgramApi, ACommittedOneIsNotWrittenTo) {
  ASSERT_EQ(commit(), PEAL_OK);
  EXPECT_EQ(peal_program_wait(program, own, 0), PEAL_ERR_BUSY);
  EXPECT_EQ(peal_program_counter(program, 0, &own), PEAL_ERR_BUSY);
  EXPECT_EQ(peal_program_commit(group, program), PEAL_ERR_BUSY);
}

TEST_F(ProgramApi, FreeGivesEverythingBackUnlessItRuns) {
  const size_t keys = card.keys.size();
  ASSERT_EQ(commit(), PEAL_OK);
  card.refuse_free = PEAL_ERR_BUSY;
  EXPECT_EQ(peal_program_free(program), PEAL_ERR_BUSY);
  EXPECT_EQ(card.keys.size(), keys + 1);
  card.refuse_free = PEAL_OK;
  EXPECT_EQ(peal_program_free(program), PEAL_OK);
  program = nullptr;
  EXPECT_TRUE(card.programs.empty());
  EXPECT_EQ(card.keys.size(), keys);
  EXPECT_EQ(peal_program_free(nullptr), PEAL_OK);
}

// One of the library's own, which nobody else would free.
TEST_F(ProgramApi, WhatTheCardKeepsForAWhileGoesLater) {
  const size_t keys = card.keys.size();
  for (const bool program_stays : {true, false}) {
    Allocation work;
    ASSERT_EQ(context->transport->allocate(64, &work), PEAL_OK);
    if (program_stays) card.busy_frees = 1;
    if (!program_stays) card.busy_keys = {work.key, work.key + 1};  // and what it is written in
    std::thread player([&] { card.complete(card.await_entry(), PEAL_STATUS_BAD_PROGRAM); });
    peal_program* made = nullptr;
    EXPECT_EQ(commit_written(*group, Program({}), work, &made), PEAL_ERR_BAD_PROGRAM);
    player.join();
    EXPECT_EQ(made, nullptr);
    EXPECT_NE(std::string(peal_last_error_text()).find("a descriptor of the program is bad"),
              std::string::npos);
    EXPECT_EQ(card.programs.size(), program_stays ? 1u : 0u);
    EXPECT_EQ(card.keys.size(), keys + (program_stays ? 1 : 2));
    card.busy_keys.clear();
    EXPECT_EQ(peal_group_abort(make_fake_group(context)), PEAL_OK);
    const std::lock_guard lock(context->mutex);
    forget_ended_programs(*context);
    EXPECT_TRUE(card.programs.empty());
    EXPECT_EQ(card.keys.size(), keys);
  }
}

// Or with its group, of which the card keeps nothing.
TEST_F(ProgramApi, WhatTheCardKeepsForAWhileGoesWithItsGroup) {
  const size_t keys = card.keys.size();
  card.busy_frees = 1;
  EXPECT_EQ(commit(PEAL_STATUS_BAD_PROGRAM), PEAL_ERR_BAD_PROGRAM);
  EXPECT_EQ(card.keys.size(), keys + 1);
  EXPECT_EQ(peal_group_abort(group), PEAL_OK);
  EXPECT_EQ(card.keys.size(), keys);
  const std::lock_guard lock(context->mutex);
  forget_ended_programs(*context);
  EXPECT_EQ(card.programs, std::set<uint32_t>({1})) << "it is not asked to free it";
}

TEST_F(ProgramApi, OneThatTheCardKeepsForAWhileMayBeCommittedAgain) {
  card.busy_frees = 1;
  EXPECT_EQ(commit(PEAL_STATUS_BAD_PROGRAM), PEAL_ERR_BAD_PROGRAM);
  EXPECT_EQ(card.programs, std::set<uint32_t>({1}));
  EXPECT_EQ(commit(), PEAL_OK);
  EXPECT_EQ(card.programs, std::set<uint32_t>({2}));
}

TEST_F(ProgramApi, MemoryIsNamedByKeyAndOffset) {
  uint32_t key = 0;
  uint64_t offset = 0;
  EXPECT_EQ(peal_memory_name(context, static_cast<char*>(memory) + 8, 16, &key, &offset), PEAL_OK);
  EXPECT_TRUE(card.keys.contains(key));
  EXPECT_EQ(offset, 8u);
  char stack[8] = {};
  EXPECT_EQ(peal_memory_name(context, stack, 8, &key, &offset), PEAL_ERR_NOT_REGISTERED);
}

TEST_F(ProgramApi, TextIsCutToItsRoomAndSaysItsLength) {
  char text[8];
  size_t length = 0;
  ASSERT_EQ(peal_program_print(program, PEAL_PROGRAM_AS_TEXT, text, sizeof(text), &length),
            PEAL_OK);
  EXPECT_STREQ(text, "program");
  const std::string whole = "program of rank 0 of 1: tasks\ncounter 0: own\n0 complete\n1 jump\n";
  EXPECT_EQ(length, whole.size());
  EXPECT_EQ(peal_program_print(program, PEAL_PROGRAM_AS_TEXT, nullptr, 0, &length), PEAL_OK);
  EXPECT_EQ(peal_program_print(program, PEAL_PROGRAM_AS_TEXT, nullptr, 1, &length),
            PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_program_print(program, 2, text, 8, &length), PEAL_ERR_INVALID_ARGUMENT);
  char graph[64];
  ASSERT_EQ(peal_program_print(program, PEAL_PROGRAM_AS_GRAPH, graph, sizeof(graph), nullptr),
            PEAL_OK);
  EXPECT_EQ(std::string(graph).substr(0, 17), "digraph program {");
}

TEST_F(ProgramApi, PutsArePostedWhereTheUserSaysSo) {
  for (const unsigned flags : {0u, PEAL_PROGRAM_POSTED_PUTS}) {
    const peal_program_params params = {sizeof(params), flags, 0, 0, 0};
    peal_program* made = nullptr;
    ASSERT_EQ(peal_program_create(0, 1, &params, &made), PEAL_OK);
    char text[128] = {};
    EXPECT_EQ(peal_program_print(made, PEAL_PROGRAM_AS_TEXT, text, sizeof(text), nullptr), PEAL_OK);
    EXPECT_EQ(std::string(text).find(", posted puts") != std::string::npos, flags != 0);
    EXPECT_EQ(peal_program_free(made), PEAL_OK);
  }
}

TEST_F(ProgramApi, AGateIsOfThePutBeforeIt) {
  EXPECT_EQ(peal_program_gate(program, own, 1), PEAL_ERR_INVALID_ARGUMENT) << "there is none";
  ASSERT_EQ(peal_program_put(program, 0, memory, 8, 1, 0, nullptr, PEAL_NO_COUNT), PEAL_OK);
  EXPECT_EQ(peal_program_gate(program, own, 0), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_STREQ(peal_last_error_text(), "peal_program_gate: a threshold of 0 waits for nothing");
  EXPECT_EQ(peal_program_gate(program, own, 2), PEAL_OK);
  char text[256] = {};
  ASSERT_EQ(peal_program_print(program, PEAL_PROGRAM_AS_TEXT, text, sizeof(text), nullptr),
            PEAL_OK);
  EXPECT_NE(std::string(text).find(", held until counter 0 has reached 2\n"), std::string::npos);
  ASSERT_EQ(peal_program_wait(program, own, 2), PEAL_OK);
  EXPECT_EQ(peal_program_gate(program, own, 1), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_STREQ(peal_last_error_text(), "peal_program_gate: the descriptor before it is not a put");
  EXPECT_EQ(peal_program_gate(nullptr, 0, 1), PEAL_ERR_INVALID_ARGUMENT);
}

TEST_F(ProgramApi, ArgumentsThatCannotBe) {
  peal_program* made = nullptr;
  EXPECT_EQ(peal_program_create(1, 1, nullptr, &made), PEAL_ERR_BAD_RANK);
  peal_program_params params = {sizeof(params), 4, 0, 0, 0};
  EXPECT_EQ(peal_program_create(0, 1, &params, &made), PEAL_ERR_INVALID_ARGUMENT);
  params.struct_bytes = 1;
  EXPECT_EQ(peal_program_create(0, 1, &params, &made), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(peal_program_create(0, 1, nullptr, nullptr), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_program_wait(nullptr, 0, 0), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_program_signal(program, 0, nullptr, 0), PEAL_ERR_INVALID_ARGUMENT);
  peal_request* refused = reinterpret_cast<peal_request*>(this);
  EXPECT_EQ(peal_program_start(program, 1, &refused), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(refused, nullptr);
  EXPECT_EQ(peal_program_commit(nullptr, program), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_program_check(nullptr, nullptr, 0, nullptr), PEAL_ERR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace peal::host
