// SPDX-License-Identifier: BSD-2-Clause
// Programs of the C API: what goes to the card when they are committed, started and freed.
#include <cstring>
#include <string>
#include <thread>

#include "abi/program.h"
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

TEST_F(ProgramApi, ArgumentsThatCannotBe) {
  peal_program* made = nullptr;
  EXPECT_EQ(peal_program_create(1, 1, nullptr, &made), PEAL_ERR_BAD_RANK);
  peal_program_params params = {sizeof(params), 2, 0};
  EXPECT_EQ(peal_program_create(0, 1, &params, &made), PEAL_ERR_INVALID_ARGUMENT);
  params.struct_bytes = 1;
  EXPECT_EQ(peal_program_create(0, 1, &params, &made), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(peal_program_create(0, 1, nullptr, nullptr), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_program_wait(nullptr, 0, 0), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_program_signal(program, 0, nullptr, 0), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_program_start(program, 1, nullptr), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_program_commit(nullptr, program), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(peal_program_check(nullptr, nullptr, 0, nullptr), PEAL_ERR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace peal::host
