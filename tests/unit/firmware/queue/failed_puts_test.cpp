// SPDX-License-Identifier: BSD-2-Clause
// Puts that fail behind their program: refused when they were over, skipped by who sent them, or
// copies to the own rank. Whose start that is, and who is told.
#include "tests/unit/firmware/queue/failed_fixture.h"

namespace peal::test {
namespace {

// A put that was over, of program 7 and that iteration, is refused by rank 3.
class FailedPosted : public Failed {
 protected:
  bool refuse(uint64_t iteration, bool together = false) {
    p2p::MissingPut put = missing(iteration, together);
    const bool noted = queue::fail_posted(bench.card(), put);
    late = put.late;
    return noted;
  }
  bool late = false;
};

TEST_F(FailedPosted, EndsTheStartThatRuns) {
  listener();
  start(program, 0);
  EXPECT_TRUE(refuse(0));
  turn();
  EXPECT_EQ(log(), "completes 100 BAD_KEY at 6 rank 3\n");
  EXPECT_FALSE(late) << "its host knows";
}

TEST_F(FailedPosted, IsToldOfAStartThatIsOver) {
  program.mode |= PEAL_PROGRAM_TOGETHER;
  run_second();
  bench.take_log();
  EXPECT_TRUE(refuse(0, true));
  turn();
  EXPECT_EQ(log(), "") << "the next one goes on";
  EXPECT_TRUE(late);
  const queue::FailedIterations& failed = bench.card().queues.failed[0];
  EXPECT_EQ(failed.from, 0u);
  EXPECT_EQ(failed.to, 1u);
  EXPECT_TRUE(failed.together);
  EXPECT_EQ(failed.why.status, PEAL_STATUS_BAD_KEY);
  EXPECT_EQ(failed.why.index, 6u);
  EXPECT_EQ(failed.why.rank, kOwn) << "whose start it was";
  EXPECT_GE(bench.counter(PEAL_COUNTER_SENT_FAILURE), 3u);
  notice(3, 0, 1, 1);
  EXPECT_EQ(log(), "completes 101 OK\n");
}

TEST_F(FailedPosted, IsToldByAProgramThatIsGone) {
  EXPECT_TRUE(refuse(5));
  EXPECT_EQ(bench.card().queues.failed[0].from, 5u);
}

// Whoever waits for those that it tells waits for it.
TEST_F(FailedPosted, IsToldOfProgramsThatItTells) {
  for (const uint16_t told : {20, 21}) program.signal(2, 0, 1, told);
  commit(program.end());
  start(program, 0);
  for (size_t i = 0; i < 2; ++i) over(i);
  EXPECT_TRUE(refuse(0));
  const auto& failed = bench.card().queues.failed;
  ASSERT_EQ(bench.card().queues.failed_top, 3u);
  const uint16_t names[] = {kName, 20, 21};
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(failed[i].name, names[i]);
    EXPECT_EQ(failed[i].from, 0u);
    EXPECT_EQ(failed[i].to, 1u);
  }
}

// Its user knows of no put that is under way.
TEST_F(FailedPosted, IsToldOfProgramsThatOneToldThatWasFreed) {
  for (const uint16_t told : {20, 21}) program.signal(2, 0, 1, told);
  commit(program.end());
  start(program, 0);
  for (size_t i = 0; i < 2; ++i) over(i);
  ASSERT_EQ(card_free_program(bench.card(), bench.context(), program.handle), PEAL_STATUS_OK);
  EXPECT_TRUE(refuse(0));
  EXPECT_EQ(bench.card().queues.failed_top, 3u);
}

// It is told of as one that was over only if it was well.
TEST_F(FailedPosted, IsNotLateWhereTheStartFailed) {
  run_second();
  queue::Queue& own = bench.card().queues.queues[0];
  own.failed_before = 1;
  EXPECT_TRUE(refuse(0));
  EXPECT_FALSE(late);
}

TEST_F(FailedPosted, IsNobodysWhereTheGroupIsOver) {
  Member& own = *find_member(bench.card(), member.handle());
  own.phase = MemberPhase::kDying;
  EXPECT_TRUE(refuse(0));
  own.phase = MemberPhase::kActive;
  EXPECT_EQ(bench.card().queues.failed_top, 0u);
}

// A put of program 7 to its own rank has failed.
class FailedUncopied : public Failed {
 protected:
  bool fail(uint64_t iteration) {
    p2p::MissingPut put = missing(iteration);
    put.rank = kOwn;
    return queue::fail_uncopied(bench.card(), put);
  }
};

// It is known, and told to all, before anything else is.
TEST_F(FailedUncopied, EndsTheStartThatRuns) {
  program.signal(2, 0, 1, 20);
  listener();
  start(program, 0);
  over(0);
  log();
  EXPECT_TRUE(fail(0));
  const auto& failed = bench.card().queues.failed;
  ASSERT_EQ(bench.card().queues.failed_top, 2u) << "and whom it tells";
  EXPECT_EQ(failed[0].name, kName);
  EXPECT_EQ(failed[1].name, 20);
  EXPECT_GE(bench.counter(PEAL_COUNTER_SENT_FAILURE), 6u);
  turn();
  EXPECT_EQ(log(), "completes 100 BAD_KEY at 6 rank 1\n");
  EXPECT_EQ(bench.card().queues.failed_top, 2u) << "once";
}

// Of a start of several iterations it may be one before: whom that one told waits in vain, too.
TEST_F(FailedUncopied, EndsAnEarlierIterationOfTheSameStart) {
  program.signal(2, 0, 1, 20);
  listener();
  start(program, 0, 3);
  over(0);
  notice(3, 0, 1, 0);
  over(1);
  EXPECT_TRUE(fail(0));
  const auto& failed = bench.card().queues.failed;
  uint32_t first = 0;
  for (uint32_t i = 0; i < bench.card().queues.failed_top; ++i) {
    if (failed[i].from == 0) first++;
    EXPECT_TRUE(failed[i].name == kName || failed[i].name == 20);
  }
  EXPECT_EQ(first, 2u) << "its own, and of the one that it tells";
}

TEST_F(FailedUncopied, IsNobodysWhereTheGroupIsOver) {
  listener();
  start(program, 0);
  Member& own = *find_member(bench.card(), member.handle());
  own.membership.poisoned = true;
  EXPECT_TRUE(fail(0));
  own.membership.poisoned = false;
  EXPECT_EQ(bench.card().queues.failed_top, 0u);
}

// Rank 3 skips a put of program 7, of an iteration that was over there.
class FailedSkipped : public Failed {
 protected:
  bool skip(uint64_t iteration, bool late = true) {
    p2p::MissingPut put = missing(iteration);
    put.late = late;
    put.told[0] = told;
    const bool noted = queue::fail_skipped(bench.card(), put);
    turn();
    return noted;
  }
  uint16_t told = 0;  // by that program there
};

// Behind it the next one may be told that it is there.
TEST_F(FailedSkipped, EndsTheStartBehindOneThatWasWell) {
  run_second();
  EXPECT_TRUE(skip(0));
  EXPECT_EQ(log(), "completes 101 BAD_KEY at 6 elsewhere, rank 3\n");
  start(program, 2);
  notice(3, 0, 1, 2);
  EXPECT_EQ(log(), "completes 102 OK\n") << "it is told of a put of start 1";
}

TEST_F(FailedSkipped, EndsItBeforeItBegins) {
  listener();
  start(program, 0);
  notice(3, 0, 1, 0);
  log();
  EXPECT_TRUE(skip(0));
  start(program, 1);
  EXPECT_EQ(log(), "completes 101 BAD_KEY at 6 elsewhere, rank 3\n");
}

TEST_F(FailedSkipped, EndsTheStartThatItIsOf) {
  listener();
  start(program, 0);
  start(program, 1);
  EXPECT_TRUE(skip(0));
  notice(3, 0, 1, 1);
  EXPECT_EQ(log(), "completes 100 BAD_KEY at 6 elsewhere, rank 3\ncompletes 101 OK\n");
}

TEST_F(FailedSkipped, EndsNoneBehindOneThatFailed) {
  listener();
  start(program, 0);
  hear(0, news(0, 1));
  start(program, 1);
  EXPECT_TRUE(skip(0));
  notice(3, 0, 1, 1);
  EXPECT_EQ(log(), "completes 100 BAD_PROGRAM at 5 key elsewhere, rank 3\ncompletes 101 OK\n");
}

// A look at the program is no iteration that failed.
TEST_F(FailedSkipped, EndsTheNextOneBehindALookThatFailed) {
  program.put(2, 8, data.key);
  listener();
  start(program, 0);
  over(0);
  notice(3, 0, 1, 0);
  EXPECT_EQ(card_unregister_memory(bench.card(), bench.context(), data.key, &data.region),
            PEAL_STATUS_OK);
  start(program, 1, 0);
  log();
  EXPECT_TRUE(skip(0));
  start(program, 1);
  EXPECT_EQ(log(), "completes 101 BAD_KEY at 6 elsewhere, rank 3\n");
}

TEST_F(FailedSkipped, EndsNoneWhoseHostKnows) {
  run_second();
  EXPECT_TRUE(skip(0, false));
  EXPECT_EQ(log(), "");
}

// What the next one was told of puts that were put then.
TEST_F(FailedSkipped, EndsNoneThatIsFartherOn) {
  run_second();
  notice(3, 0, 1, 1);
  start(program, 2);
  EXPECT_TRUE(skip(0));
  EXPECT_EQ(log(), "completes 101 OK\n");
}

TEST_F(FailedSkipped, EndsWhomThatProgramTells) {
  program.name = 8;
  listener();
  start(program, 0);
  told = 9;
  EXPECT_TRUE(skip(0));
  EXPECT_EQ(log(), "completes 100 BAD_KEY at 6 elsewhere, rank 3\n");
  EXPECT_EQ(bench.card().queues.failed_top, 2u);
}

}  // namespace
}  // namespace peal::test
