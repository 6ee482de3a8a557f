// SPDX-License-Identifier: BSD-2-Clause
// Programs that the card knows: committed, freed, and how many.
#include "firmware/queue/pool.h"

#include <functional>

#include "tests/unit/firmware/queue/queue_fixture.h"

namespace peal::test {
namespace {

class QueuePool : public QueueTest {
 protected:
  QueuePool() {
    program.sources = {kOwn};
    program.wait(0, 0);
    program.end();
    write(program);
  }
  peal_status commit_with(const std::function<void(peal_commit_program&)>& change) {
    peal_commit_program request = request_of(program);
    change(request);
    return commit_as(bench.context(), request, &program.handle);
  }
  WrittenProgram program;
};

TEST_F(QueuePool, EverythingInTheRequestIsChecked) {
  using Request = peal_commit_program;
  const Memory unreadable = bench.add_memory("unreadable", 4096, PEAL_ACCESS_WRITE);
  EXPECT_EQ(commit_with([](Request& r) { r.member ^= 1u << 16; }), PEAL_STATUS_BAD_GROUP);
  EXPECT_EQ(commit_with([](Request& r) { r.name = PEAL_NO_QUEUE; }), PEAL_STATUS_BAD_GROUP);
  EXPECT_EQ(commit_with([](Request& r) { r.mode = 0; }), PEAL_STATUS_BAD_FLAGS);
  EXPECT_EQ(commit_with([](Request& r) { r.mode = PEAL_PROGRAM_MODE_COUNT; }),
            PEAL_STATUS_BAD_FLAGS);
  EXPECT_EQ(commit_with([](Request& r) { r.engine = CONFIG_TRANSMIT_ENGINES; }),
            PEAL_STATUS_BAD_FLAGS);
  EXPECT_EQ(commit_with([](Request& r) { r.scheduled = 1; }), PEAL_STATUS_BAD_FLAGS);
  for (const uint32_t wrong : {0u, 1u, PEAL_PROGRAM_DESCRIPTORS_MAX + 1u, ~0u}) {
    EXPECT_EQ(commit_with([&](Request& r) { r.count = wrong; }), PEAL_STATUS_BAD_LENGTH) << wrong;
  }
  for (const uint32_t wrong : {CONFIG_QUEUE_COUNTERS + 1u, ~0u}) {
    EXPECT_EQ(commit_with([&](Request& r) { r.counters = wrong; }), PEAL_STATUS_NO_RESOURCES);
  }
  EXPECT_EQ(commit_with([](Request& r) { r.key ^= 1u << 16; }), PEAL_STATUS_BAD_KEY);
  EXPECT_EQ(commit_with([&](Request& r) { r.key = unreadable.key; }), PEAL_STATUS_BAD_ACCESS);
  EXPECT_EQ(commit_with([](Request& r) { r.count = 4; }), PEAL_STATUS_BAD_BOUNDS);
  EXPECT_EQ(commit_with([](Request& r) { r.offset = 1; }), PEAL_STATUS_BAD_BOUNDS);
  EXPECT_EQ(commit_with([](Request& r) { r.offset = ~uint64_t{0}; }), PEAL_STATUS_BAD_BOUNDS);
  EXPECT_EQ(commit_with([](Request&) {}), PEAL_STATUS_OK);
  EXPECT_EQ(commit_with([](Request&) {}), PEAL_STATUS_BUSY) << "the name is taken";
}

TEST_F(QueuePool, ASessionHasAPointerAndBeginsInTheProgram) {
  using Request = peal_commit_program;
  const auto session = [](uint32_t counters, uint32_t scheduled) {
    return [=](Request& r) {
      r.mode = PEAL_PROGRAM_MODE_SESSION;
      r.counters = counters;
      r.scheduled = scheduled;
    };
  };
  EXPECT_EQ(commit_with(session(0, 0)), PEAL_STATUS_BAD_BOUNDS);
  EXPECT_EQ(commit_with(session(1, 4)), PEAL_STATUS_BAD_BOUNDS);
  EXPECT_EQ(commit_with(session(1, 3)), PEAL_STATUS_OK);
}

TEST_F(QueuePool, AnothersProgramIsNobodysBusiness) {
  commit(program);
  const ContextId other = bench.open_context();
  EXPECT_EQ(card_free_program(bench.card(), other, program.handle), PEAL_STATUS_BAD_KEY);
  EXPECT_EQ(commit_as(other, request_of(program), &program.handle), PEAL_STATUS_BAD_GROUP);
}

TEST_F(QueuePool, ItsMemoryIsHeldAsLongAsItIsThere) {
  commit(program);
  RegionId region = 0;
  EXPECT_EQ(card_unregister_memory(bench.card(), bench.context(), program.memory.key, &region),
            PEAL_STATUS_BUSY);
  EXPECT_EQ(free_program(program), PEAL_STATUS_OK);
  EXPECT_EQ(free_program(program), PEAL_STATUS_BAD_KEY);
  EXPECT_EQ(card_unregister_memory(bench.card(), bench.context(), program.memory.key, &region),
            PEAL_STATUS_OK);
}

TEST_F(QueuePool, OneThatRunsIsBusy) {
  program.sources = {3};
  program.descriptors[0].threshold = 1;
  commit(program);
  post(program, 0);
  EXPECT_EQ(free_program(program), PEAL_STATUS_BUSY) << "reading its sources";
  settle();
  EXPECT_EQ(free_program(program), PEAL_STATUS_BUSY) << "waiting";
  notice(3, 0, 1, 0);
  EXPECT_EQ(log(), "completes 100 OK\n");
  EXPECT_EQ(free_program(program), PEAL_STATUS_OK);
}

TEST_F(QueuePool, ThereAreSoMany) {
  std::vector<WrittenProgram> programs(CONFIG_QUEUES + 1, program);
  for (uint16_t i = 0; i <= CONFIG_QUEUES; i++) programs[i].name = i;
  for (uint32_t i = 0; i < CONFIG_QUEUES; i++) commit(programs[i]);
  EXPECT_EQ(try_commit(programs.back()), PEAL_STATUS_NO_RESOURCES);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_QUEUE), 1u);
  EXPECT_EQ(free_program(programs.front()), PEAL_STATUS_OK);
  commit(programs.back());
  EXPECT_NE(programs.back().handle, programs.front().handle);
  EXPECT_EQ(free_program(programs.front()), PEAL_STATUS_BAD_KEY) << "an earlier one of its place";
}

TEST_F(QueuePool, OthersOfTheSameBucketAreFoundWhenOneHasGone) {
  std::vector<WrittenProgram> programs(3);
  for (uint32_t i = 0; i < programs.size(); ++i) {
    programs[i].name = static_cast<uint16_t>(7 + i * CONFIG_QUEUES);
    programs[i].sources = {2};
    programs[i].wait(0, 1);
    commit(programs[i].end());
    start(programs[i], 0);
  }
  notice(2, 0, 1, 0, programs[1].name);
  EXPECT_EQ(log(), "completes 100 OK\n");
  EXPECT_EQ(free_program(programs[1]), PEAL_STATUS_OK);
  EXPECT_EQ(notice_changes(2, 0, 1, 0, programs[1].name), "+1 notices_refused");
  notice(2, 0, 1, 0, programs[0].name);
  notice(2, 0, 1, 0, programs[2].name);
  EXPECT_EQ(log(), "completes 100 OK\ncompletes 100 OK\n");
}

TEST_F(QueuePool, AHandleThatIsNoneIsRefused) {
  commit(program);
  for (const uint32_t wrong :
       {0u, program.handle + CONFIG_QUEUES, program.handle ^ 1u << 16, ~0u}) {
    EXPECT_EQ(card_free_program(bench.card(), bench.context(), wrong), PEAL_STATUS_BAD_KEY);
  }
}

}  // namespace
}  // namespace peal::test
