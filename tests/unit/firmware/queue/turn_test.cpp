// SPDX-License-Identifier: BSD-2-Clause
// Turns: what a program does in which order, how a start ends, and that nobody starves.
#include "firmware/queue/turn.h"

#include <algorithm>

#include "tests/unit/firmware/queue/queue_fixture.h"

namespace peal::test {
namespace {

class QueueTurn : public QueueTest {};

TEST_F(QueueTurn, TasksGoOutInOrderAndTheStartIsOverWithTheLast) {
  WrittenProgram program;
  program.put(2, 100, data.key).offset = 8;
  program.message(PEAL_PROGRAM_SEND, 3, 5, 16, data.key);
  program.message(PEAL_PROGRAM_RECEIVE, 0, 6, 32, data.key);
  program.signal(0, 3, 2);
  commit(program.end());
  start(program, 0);
  EXPECT_EQ(log(),
            "put 8..108 to 2:99+0\nsend 0..16 to 3 tag 5\nreceive 0..32 from 0 tag 6\n"
            "signal to 0 tells 7.3 +2 of 0\n");
  over(3);
  over(1);
  over(0);
  EXPECT_EQ(log(), "");
  over(2);
  EXPECT_EQ(log(), "completes 100 OK\n");
}

TEST_F(QueueTurn, StartsRunOneAfterTheOther) {
  WrittenProgram program;
  program.signal(2, 0);
  commit(program.end());
  post(program, 0);
  start(program, 1);
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 0\n");
  over(0);
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 1\ncompletes 100 OK\n");
  over(1);
  EXPECT_EQ(log(), "completes 101 OK\n");
}

TEST_F(QueueTurn, OneStartMayBeSeveralIterations) {
  WrittenProgram program;
  program.signal(2, 0);
  commit(program.end());
  start(program, 0, 3);
  over(0);
  over(1);
  EXPECT_EQ(log(),
            "signal to 2 tells 7.0 +1 of 0\nsignal to 2 tells 7.0 +1 of 1\n"
            "signal to 2 tells 7.0 +1 of 2\n");
  over(2);
  EXPECT_EQ(log(), "completes 100 OK\n");
  start(program, 3);
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 3\n");
  over(3);
}

TEST_F(QueueTurn, SoManyTasksAreUnderWayAtOnce) {
  WrittenProgram program;
  for (uint32_t i = 0; i < CONFIG_QUEUE_TASKS + 2; i++) program.signal(2, 0);
  commit(program.end());
  start(program, 0);
  EXPECT_EQ(network.tickets.size(), CONFIG_QUEUE_TASKS);
  over(1);
  EXPECT_EQ(network.tickets.size(), CONFIG_QUEUE_TASKS + 1);
  for (size_t i = 0; i < CONFIG_QUEUE_TASKS + 2; i++) {
    if (i != 1) over(i);
  }
  log();
  EXPECT_EQ(network.tickets.size(), CONFIG_QUEUE_TASKS + 2);
}

TEST_F(QueueTurn, ASignalMayBeOverAtOnce) {
  network.signals_at_once = true;
  WrittenProgram program;
  program.sources = {kOwn};
  program.signal(2, 3).done = 0;
  program.wait(0, 1);
  program.put(3, 8, data.key);
  commit(program.end());
  for (uint32_t i = 0; i < 2 * CONFIG_QUEUE_TASKS; i++) {
    start(program, i);
    EXPECT_EQ(log(), "signal to 2 tells 7.3 +1 of " + std::to_string(i) +
                         " at once\nput 0..8 to 3:99+0\n");
    over(i);
    EXPECT_EQ(log(), "completes " + std::to_string(100 + i) + " OK\n") << "it has no task";
  }
}

TEST_F(QueueTurn, ASignalThatIsOverMovesTheSchedulingPointerOn) {
  network.signals_at_once = true;
  WrittenProgram program;
  program.mode = PEAL_PROGRAM_MODE_SESSION;
  program.scheduled = 1;
  program.sources = {kOwn};
  program.signal(2, 3).done = 0;
  program.put(3, 8, data.key);
  commit(program.end());
  start(program, 0);
  EXPECT_EQ(log(), "signal to 2 tells 7.3 +1 of 0 at once\nput 0..8 to 3:99+0\n");
  over(0);
}

TEST_F(QueueTurn, ATaskForWhichThereIsNoRecordIsAskedForAgain) {
  WrittenProgram program;
  program.signal(2, 0);
  commit(program.end());
  network.refuse.count = 2;
  start(program, 0);
  EXPECT_EQ(log(), "");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_TASK), 1u);
  bench.advance_to_deadline();
  EXPECT_EQ(log(), "");
  bench.advance_to_deadline();
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 0\n");
  over(0);
  EXPECT_EQ(log(), "completes 100 OK\n");
}

TEST_F(QueueTurn, ATaskThatFailsEndsTheStartAtItsDescriptorOnceTheOthersAreOver) {
  WrittenProgram program;
  program.sources = {kOwn};
  program.signal(2, 0);
  program.put(3, 8, data.key, 0);
  program.wait(0, 1);
  program.signal(2, 0);
  commit(program.end());
  start(program, 0);
  log();
  over(1, PEAL_STATUS_BAD_KEY);
  EXPECT_EQ(log(), "");
  over(0);
  EXPECT_EQ(log(), "completes 100 BAD_KEY at 1 rank 3\n");
  start(program, 1);
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 1\nput 0..8 to 3:99+0\n");
  over(3);
  over(2);
  over(4);
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 1\ncompletes 101 OK\n");
}

// What is told to a program that waits for something else is not forgotten.
TEST_F(QueueTurn, WhatComesBeforeItIsWaitedForCounts) {
  WrittenProgram program;
  program.sources = {2, 3, kOwn};
  program.put(2, 8, data.key, 2);
  program.wait(0, 2);
  program.wait(2, 1);
  program.wait(1, 1);
  commit(program.end());
  start(program, 0);
  EXPECT_EQ(log(), "put 0..8 to 2:99+0\n");
  notice(3, 1, 1, 0);
  over(0);
  notice(2, 0, 1, 0);
  EXPECT_EQ(log(), "");
  notice(2, 0, 1, 0);
  EXPECT_EQ(log(), "completes 100 OK\n");
}

TEST_F(QueueTurn, WhatBeginsAgainWithoutHavingWaitedIsRefused) {
  WrittenProgram program;
  program.sources = {kOwn};
  program.signal(kOwn, 0);
  program.wait(0, 1);
  commit(program.end());
  start(program, 0);
  EXPECT_EQ(log(), "completes 100 OK\n");
  start(program, 1, 2);
  EXPECT_EQ(log(), "completes 101 BAD_PROGRAM at 3 cycle\n");
  start(program, 3);
  EXPECT_EQ(log(), "completes 103 OK\n");
}

TEST_F(QueueTurn, ProgramsHaveAQuotaEachInTurn) {
  WrittenProgram first;
  first.sources = {kOwn};
  for (uint32_t i = 0; i < 3 * CONFIG_QUEUE_QUOTA; i++) first.signal(kOwn, 0);
  commit(first.end());
  WrittenProgram second;
  second.name = 8;
  second.signal(3, 0);
  commit(second.end());
  // Both are in the cache: from here on nothing waits for memory.
  start(first, 0, 0);
  start(second, 0, 0);
  log();
  post(first, 0);
  const uint64_t before = bench.counter(PEAL_COUNTER_DESCRIPTORS);
  post(second, 0);
  const uint64_t between = bench.counter(PEAL_COUNTER_DESCRIPTORS) - before;
  EXPECT_LE(between, CONFIG_QUEUE_QUOTA + 1u);
  EXPECT_EQ(log(), "signal to 3 tells 7.0 +1 of 0\n") << "and the first is not over";
  settle();
  over(0);
  log();
}

TEST_F(QueueTurn, AProgramThatGoesOnLeavesATurnToTheRunner) {
  WrittenProgram program;
  program.sources = {kOwn};
  // It fits the cache: what is read comes in turns of its own.
  constexpr uint32_t kSignals =
      std::min<uint32_t>(2 * CONFIG_QUEUE_QUOTA, CONFIG_QUEUE_DESCRIPTORS - 2);
  static_assert(kSignals > CONFIG_QUEUE_QUOTA);
  for (uint32_t i = 0; i < kSignals; i++) program.signal(kOwn, 0);
  commit(program.end());
  start(program, 0, 0);
  log();
  const uint64_t before = bench.counter(PEAL_COUNTER_DESCRIPTORS);
  post(program, 0);
  bench.finish_all_dma();
  EXPECT_LE(bench.counter(PEAL_COUNTER_DESCRIPTORS) - before, CONFIG_QUEUE_QUOTA);
  EXPECT_EQ(log(), "");
  settle();
  EXPECT_EQ(log(), "completes 100 OK\n");
}

TEST_F(QueueTurn, WhatIsCommittedInADeadGroupEnds) {
  bench.deliver(WireMaker(member).death(0, 2));
  settle();
  WrittenProgram program;
  program.sources = {2};
  program.wait(0, 1);
  commit(program.end());
  start(program, 0);
  settle();
  EXPECT_EQ(log(), "completes 100 PEER_DEAD at 0 rank 2\n");
}

TEST_F(QueueTurn, ADeathEndsWhatRunsAndWhatWaits) {
  WrittenProgram program;
  program.sources = {2};
  program.signal(3, 0);
  program.wait(0, 1);
  commit(program.end());
  post(program, 0);
  start(program, 1);
  log();
  bench.deliver(WireMaker(member).death(0, 2));
  settle();
  EXPECT_EQ(log(), "");
  over(0, PEAL_STATUS_PEER_DEAD, 2);
  EXPECT_EQ(log(), "completes 100 PEER_DEAD at 0 rank 2\ncompletes 101 PEER_DEAD at 0 rank 2\n");
  start(program, 2);
  EXPECT_EQ(log(), "completes 102 PEER_DEAD at 0 rank 2\n");
  EXPECT_EQ(free_program(program), PEAL_STATUS_OK);
}

TEST_F(QueueTurn, AGroupThatIsGivenUpTakesItsProgramsWithIt) {
  WrittenProgram program;
  program.sources = {2};
  program.wait(0, 1);
  commit(program.end());
  start(program, 0);
  EXPECT_EQ(card_abandon_group(bench.card(), bench.context(), member.handle(), bench.now),
            PEAL_STATUS_OK);
  settle();
  EXPECT_EQ(log(), "completes 100 PEER_DEAD at 0 rank 1\n");
  EXPECT_EQ(free_program(program), PEAL_STATUS_BAD_KEY);
  RegionId region = 0;
  EXPECT_EQ(card_unregister_memory(bench.card(), bench.context(), program.memory.key, &region),
            PEAL_STATUS_OK);
}

TEST_F(QueueTurn, AClosedContextIsQuietWhenItsTasksAreOver) {
  WrittenProgram program;
  program.signal(2, 0);
  commit(program.end());
  start(program, 0);
  post(program, 1);
  log();
  card_close_context(bench.card(), bench.context(), bench.now);
  over(0, PEAL_STATUS_PEER_DEAD, kOwn);
  EXPECT_EQ(log(), "");
  EXPECT_TRUE(card_context_quiet(bench.card(), bench.context()));
  EXPECT_EQ(card_outstanding(bench.card(), bench.context()), 0u);
}

}  // namespace
}  // namespace peal::test
