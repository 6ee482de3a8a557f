// SPDX-License-Identifier: BSD-2-Clause
// Gates: who may open them, for which iteration, and what becomes of what comes too early, too late
// or from somebody else.
#include "firmware/queue/gates.h"

#include "tests/unit/firmware/queue/queue_fixture.h"

namespace peal::test {
namespace {

class Gates : public QueueTest {};

// Signals rank 2 once rank 3 has told counter 0 `threshold` times.
WrittenProgram waiting_for(uint32_t source, uint64_t threshold) {
  WrittenProgram program;
  program.sources = {source};
  program.wait(0, threshold);
  program.signal(2, 0);
  program.end();
  return program;
}

// Relays to rank 2 what comes from rank 0, in session mode, descriptor by descriptor.
WrittenProgram relay(uint32_t segments, uint32_t scheduled = 0) {
  WrittenProgram program;
  program.mode = PEAL_PROGRAM_MODE_SESSION;
  program.scheduled = scheduled;
  program.sources = {0};
  for (uint32_t i = 0; i < segments; i++) program.signal(2, 0);
  program.end();
  return program;
}

TEST_F(Gates, AWaitHoldsUntilItsCounterHasReachedTheThreshold) {
  WrittenProgram program = waiting_for(3, 3);
  commit(program);
  start(program, 0);
  notice(3, 0, 2, 0);
  EXPECT_EQ(log(), "");
  notice(3, 0, 1, 0);
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 0\n");
  over(0);
}

TEST_F(Gates, EndsOfOwnTasksCount) {
  WrittenProgram program;
  program.sources = {kOwn};
  program.put(2, 8, data.key, 0);
  program.put(3, 8, data.key, 0);
  program.wait(0, 1);
  program.signal(0, 0);
  commit(program.end());
  start(program, 0);
  EXPECT_EQ(log(), "put 0..8 to 2:99+0\nput 0..8 to 3:99+0\n");
  over(1);
  EXPECT_EQ(log(), "signal to 0 tells 7.0 +1 of 0\n");
  over(0);
  over(2);
  EXPECT_EQ(log(), "completes 100 OK\n");
}

TEST_F(Gates, ALocalSignalTellsAnotherProgramOfTheMember) {
  WrittenProgram waits = waiting_for(kOwn, 1);
  waits.name = 8;
  commit(waits);
  WrittenProgram tells;
  tells.signal(kOwn, 0, 1, 8);
  commit(tells.end());
  start(waits, 0);
  EXPECT_EQ(log(), "");
  start(tells, 0);
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 0\ncompletes 100 OK\n");
  over(0);
}

TEST_F(Gates, WhatIsToldOfALaterIterationOpensThatOneAlone) {
  WrittenProgram program = waiting_for(3, 1);
  commit(program);
  start(program, 0, 0);
  notice(3, 0, 1, 1);
  post(program, 0);
  start(program, 1);
  EXPECT_EQ(log(), "completes 100 OK\n");
  notice(3, 0, 1, 0);
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 0\n");
  over(0);
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 1\ncompletes 100 OK\n");
  over(1);
}

TEST_F(Gates, CountersBeginAnewInEachIteration) {
  WrittenProgram program = waiting_for(3, 1);
  commit(program);
  for (uint64_t i = 0; i < 2 * CONFIG_QUEUE_STARTS; i++) {
    start(program, i);
    EXPECT_EQ(log(), "") << i;
    notice(3, 0, 1, i);
    over(i);
    EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of " + std::to_string(i) + "\ncompletes " +
                         std::to_string(100 + i) + " OK\n");
  }
}

TEST_F(Gates, WhatComesTooLateChangesNothing) {
  WrittenProgram program = waiting_for(3, 1);
  commit(program);
  start(program, 0);
  notice(3, 0, 1, 0);
  over(0);
  EXPECT_EQ(notice_changes(3, 0, 1, 0), "+1 notices_stale");
  log();
  start(program, 1);
  EXPECT_EQ(log(), "");
}

TEST_F(Gates, OnlyTheNamedSourceTells) {
  WrittenProgram program = waiting_for(3, 1);
  commit(program);
  start(program, 0);
  EXPECT_EQ(notice_changes(2, 0, 1, 0), "+1 notices_refused");
  EXPECT_EQ(notice_changes(kOwn, 0, 1, 0), "+1 notices_refused");
  EXPECT_EQ(notice_changes(2, 0, 1, 1000), "+1 notices_refused") << "nor does it end anything";
  EXPECT_EQ(log(), "");
}

TEST_F(Gates, AnyRankTellsWhereTheSourceIsAny) {
  WrittenProgram program = waiting_for(PEAL_ANY_RANK, 2);
  commit(program);
  start(program, 0);
  notice(2, 0, 1, 0);
  notice(0, 0, 1, 0);
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 0\n");
  over(0);
}

TEST_F(Gates, ThereAreNoOtherCountersAndQueues) {
  WrittenProgram program = waiting_for(3, 1);
  commit(program);
  EXPECT_EQ(notice_changes(3, 0, 1, 0), "+1 notices_refused") << "nothing is known of its sources";
  start(program, 0, 0);
  EXPECT_EQ(notice_changes(3, 1, 1, 0), "+1 notices_refused");
  EXPECT_EQ(notice_changes(3, 0xffff, 1, 0), "+1 notices_refused");
  EXPECT_EQ(notice_changes(3, 0, 1, 0, 6), "+1 notices_refused");
  EXPECT_EQ(notice_changes(3, 0, 1, 0, PEAL_NO_QUEUE), "+1 notices_refused");
  ASSERT_EQ(free_program(program), PEAL_STATUS_OK);
  EXPECT_EQ(notice_changes(3, 0, 1, 0), "+1 notices_refused");
  log();
}

TEST_F(Gates, WhoIsTooFarAheadEndsTheStartAndIsNamed) {
  WrittenProgram program = waiting_for(3, 1);
  commit(program);
  start(program, 0);
  notice(3, 0, 1, CONFIG_QUEUE_STARTS - 1);
  EXPECT_EQ(log(), "");
  notice(3, 0, 1, CONFIG_QUEUE_STARTS);
  EXPECT_EQ(log(), "completes 100 BAD_PROGRAM at 0 ahead rank 3\n");
}

TEST_F(Gates, WhatIsWrongBeforeAStartEndsTheNextOne) {
  WrittenProgram program = waiting_for(3, 1);
  commit(program);
  start(program, 0, 0);
  notice(3, 0, 1, ~uint64_t{0});
  log();
  start(program, 0);
  EXPECT_EQ(log(), "completes 100 BAD_PROGRAM at 0 ahead rank 3\n");
  start(program, 1);
  notice(3, 0, 1, 1);
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 1\n");
  over(0);
}

TEST_F(Gates, ACounterDoesNotWrap) {
  WrittenProgram program = waiting_for(3, uint64_t{1} << 33);
  commit(program);
  start(program, 0);
  notice(3, 0, 0xffffffffu, 0);
  EXPECT_EQ(log(), "");
  notice(3, 0, 1, 0);
  EXPECT_EQ(log(), "completes 100 BAD_PROGRAM at 0 overflow rank 3\n");
}

// It is that iteration which fails, whether it has begun or not.
TEST_F(Gates, TooMuchOfALaterIterationLeavesThisOneAlone) {
  WrittenProgram program = waiting_for(3, 1);
  commit(program);
  start(program, 0);
  notice(3, 0, 0xffffffffu, 1);
  notice(3, 0, 1, 1);
  EXPECT_EQ(log(), "");
  notice(3, 0, 1, 0);
  over(0);
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 0\ncompletes 100 OK\n");
  start(program, 1);
  EXPECT_EQ(log(), "completes 101 BAD_PROGRAM at 0 overflow elsewhere, rank 1\n");
  notice(3, 0, 0xffffffffu, 2);
  post(program, 2, 0);
  notice(3, 0, 1, 2);
  EXPECT_EQ(log(), "completes 102 OK\n") << "a look is none of its iterations";
  start(program, 2);
  EXPECT_EQ(log(), "completes 102 BAD_PROGRAM at 0 overflow elsewhere, rank 1\n");
}

TEST_F(Gates, NothingIsIssuedBehindTheSchedulingPointer) {
  WrittenProgram program = relay(3);
  commit(program);
  start(program, 0);
  EXPECT_EQ(log(), "");
  notice(0, 0, 1, 0);
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 0\n");
  notice(0, 0, 2, 0);
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 0\nsignal to 2 tells 7.0 +1 of 0\n");
  over(0);
  over(1);
  EXPECT_EQ(log(), "");
  over(2);
  EXPECT_EQ(log(), "completes 100 OK\n");
}

TEST_F(Gates, ASessionMayBeginWithSomeScheduled) {
  WrittenProgram program = relay(3, 2);
  commit(program);
  start(program, 0);
  EXPECT_EQ(network.tickets.size(), 2u);
  over(0);
  over(1);
  notice(0, 0, 1, 0);
  over(2);
  log();
  start(program, 1);
  EXPECT_EQ(network.tickets.size(), 5u) << "and each iteration does";
  log();
  notice(0, 0, 1, 1);
  over(3);
  over(4);
  over(5);
}

TEST_F(Gates, ASessionsIterationsHavePointersOfTheirOwn) {
  WrittenProgram program = relay(1);
  commit(program);
  start(program, 0, 0);
  post(program, 0);
  start(program, 1);
  log();
  notice(0, 0, 1, 1);
  EXPECT_EQ(log(), "");
  notice(0, 0, 1, 0);
  over(0);
  EXPECT_EQ(log(),
            "signal to 2 tells 7.0 +1 of 0\nsignal to 2 tells 7.0 +1 of 1\ncompletes 100 OK\n");
  over(1);
}

TEST_F(Gates, TheSchedulingPointerStaysInTheProgram) {
  WrittenProgram program = relay(3, 1);
  commit(program);
  start(program, 0);
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 0\n");
  notice(0, 0, 5, 0);  // 1 + 5 of 5
  EXPECT_EQ(log(), "");
  over(0);
  EXPECT_EQ(log(), "completes 100 BAD_PROGRAM at 0 overflow rank 0\n");
}

}  // namespace
}  // namespace peal::test
