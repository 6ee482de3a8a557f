// SPDX-License-Identifier: BSD-2-Clause
// A start that fails is told: to whom, how often, what it ends on the card that hears it, and what
// it leaves alone. Rank 1 of 4: 2, 0 and 3 are its peers.
#include "firmware/queue/failed.h"

#include <cstring>

#include "tests/unit/firmware/queue/failed_fixture.h"

namespace peal::test {
namespace {

TEST_F(Failed, IsToldToAllPeersUntilTheyKnow) {
  failing();
  post(program, 0);
  bench.take_log();
  settle();
  const std::string sent = bench.take_wire_log();
  over(0);
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 0\ncompletes 100 BAD_PROGRAM at 1 key\n");
  for (const char* peer : {"1>2", "1>0", "1>3"}) {
    EXPECT_NE(
        sent.find(std::string("send ") + peer + " FAILURE program=7 from=0 to=1 rank=1 hops=2"),
        std::string::npos)
        << sent;
  }
  peal_failed told = news(0, 1, kOwn);
  answer(2, told);
  answer(0, told);
  EXPECT_EQ(sent_within(wait() + 10), "send 1>3 FAILURE program=7 from=0 to=1 rank=1 hops=2\n");
  told.to = 9;  // somebody who knows more
  answer(3, told);
  EXPECT_EQ(sent_within(default_timeouts().nack_max_ns), "");
}

TEST_F(Failed, NewsEndTheStartAndGoOn) {
  listener();
  start(program, 0);
  EXPECT_EQ(hear(0, news(0, 1)),
            "send 1>2 FAILURE program=7 from=0 to=1 rank=3 hops=1\n"
            "send 1>3 FAILURE program=7 from=0 to=1 rank=3 hops=1\n"
            "send 1>0 KNOWN program=7 from=0 to=1 rank=3 hops=2\n"
            "complete ctx0 cookie=100 BAD_PROGRAM rank=3\n");
  EXPECT_EQ(log(), "completes 100 BAD_PROGRAM at 5 key elsewhere, rank 3\n");
  EXPECT_EQ(network.given_up, 1u);
  // Heard again it is known; whoever says it knows it, too.
  EXPECT_EQ(hear(2, news(0, 1)), "send 1>2 KNOWN program=7 from=0 to=1 rank=3 hops=2\n");
  EXPECT_EQ(sent_within(wait() + 10), "send 1>3 FAILURE program=7 from=0 to=1 rank=3 hops=1\n");
}

TEST_F(Failed, TheNextStartRuns) {
  listener();
  start(program, 0);
  hear(0, news(0, 1));
  start(program, 1);
  EXPECT_EQ(log(), "completes 100 BAD_PROGRAM at 5 key elsewhere, rank 3\n");
  EXPECT_EQ(notice_changes(3, 0, 1, 0), "+1 notices_stale");
  EXPECT_EQ(log(), "") << "what was told to the one that failed is not for this one";
  notice(3, 0, 1, 1);
  EXPECT_EQ(log(), "completes 101 OK\n");
}

TEST_F(Failed, WhatIsToldOfTheNextStartBeforeTheNewsIsKept) {
  listener();
  start(program, 0);
  notice(3, 0, 1, 1);
  hear(0, news(0, 1));
  log();
  start(program, 1);
  EXPECT_EQ(log(), "completes 101 OK\n");
}

TEST_F(Failed, AStartThatIsNotPostedYetFailsWhenItIs) {
  listener();
  notice(3, 0, 1, 0);  // all that it needs, and yet nobody else carries it out
  hear(0, news(0, 1));
  EXPECT_EQ(log(), "");
  start(program, 0);
  EXPECT_EQ(log(), "completes 100 BAD_PROGRAM at 5 key elsewhere, rank 3\n");
}

TEST_F(Failed, ALookAtTheProgramFailsForItselfAlone) {
  listener();
  hear(0, news(0, 1));
  bench.take_log();
  start(program, 0, 0);
  EXPECT_EQ(log(), "completes 100 OK\n");
}

TEST_F(Failed, IterationsBeforeItAreCarriedOut) {
  listener();
  start(program, 0, 4);
  hear(0, news(2, 3));
  notice(3, 0, 1, 0);
  EXPECT_EQ(log(), "");
  bench.take_log();
  notice(3, 0, 1, 1);
  // The rest of its start fails with it, which others may not know.
  EXPECT_NE(bench.take_wire_log().find("FAILURE program=7 from=2 to=4 rank=3"), std::string::npos);
  EXPECT_EQ(log(), "completes 100 BAD_PROGRAM at 5 key elsewhere, rank 3\n");
  EXPECT_EQ(notice_changes(3, 0, 1, 3), "+1 notices_stale");
  start(program, 4);
  notice(3, 0, 1, 4);
  EXPECT_EQ(log(), "completes 104 OK\n");
}

TEST_F(Failed, WhoHasDoneItAlreadyOnlyPassesItOn) {
  run_second();
  EXPECT_NE(hear(0, news(0, 1)).find("1>2 FAILURE"), std::string::npos);
  EXPECT_EQ(log(), "");
  notice(3, 0, 1, 1);
  EXPECT_EQ(log(), "completes 101 OK\n");
}

TEST_F(Failed, WhoHasNoSuchProgramPassesItOn) {
  EXPECT_NE(hear(0, news(0, 1)).find("1>2 FAILURE"), std::string::npos);
  EXPECT_EQ(hear(3, news(0, 1)), "send 1>3 KNOWN program=7 from=0 to=1 rank=3 hops=2\n");
}

TEST_F(Failed, ItGoesNoFartherThanItsHops) {
  listener();
  peal_failed last = news(0, 1);
  last.hops = 0;
  EXPECT_EQ(hear(0, last), "send 1>0 KNOWN program=7 from=0 to=1 rank=3 hops=0\n");
  EXPECT_EQ(sent_within(wait() + 10), "");
}

TEST_F(Failed, TwoThatFailAtOnceNameThemselves) {
  failing();
  post(program, 0);
  bench.finish_all_dma();  // it is about to run
  hear(0, news(0, 1));
  over(0);
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 0\ncompletes 100 BAD_PROGRAM at 1 key\n");
}

// A rank whose starts fail one after the other takes one place, and the last one counts.
TEST_F(Failed, StartAfterStartIsOnePlace) {
  listener();
  for (uint64_t i = 0; i < 2 * queue::kFailures; i++) {
    peal_failed body = news(i, i + 1);
    hear(0, body);
    body.to = i + 2;
    answer(0, body);
  }
  EXPECT_EQ(bench.card().queues.failed_top, 1u);
  start(program, 0, 2 * queue::kFailures + 1);
  EXPECT_EQ(log(), "completes 100 BAD_PROGRAM at 5 key elsewhere, rank 3\n");
}

// What has no place is not answered, so it comes again; what all know makes room for it.
TEST_F(Failed, WhatHasNoPlaceIsToldAgain) {
  listener();
  uint64_t from = 0;
  for (; from < 2 * queue::kFailedOfMember; from += 2) {
    EXPECT_NE(hear(0, news(from, from + 1)).find("KNOWN"), std::string::npos);
  }
  EXPECT_EQ(hear(0, news(from, from + 1)), "");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_FAILURE), 1u);
  for (const uint32_t peer : {2u, 3u}) answer(peer, news(0, 1));
  EXPECT_EQ(hear(0, news(from, from + 1)), "") << "its own program has not come so far";
  start(program, 0);
  EXPECT_NE(hear(0, news(from, from + 1)).find("KNOWN"), std::string::npos);
}

// However many of a client's programs fail, others' have places.
TEST_F(Failed, AClientHasNotAllPlaces) {
  failing();
  take_places(queue::kFailedOfContext, member);
  start(program, 0);
  over(0);
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 0\n");
  EXPECT_GT(bench.counter(PEAL_COUNTER_NO_FAILURE), 0u);
  give_places();
  bench.advance(wait());
  EXPECT_EQ(log(), "completes 100 BAD_PROGRAM at 1 key\n");
}

TEST_F(Failed, AnotherClientsPlacesAreNotOnes) {
  failing();
  const ContextId other = bench.open_context();
  take_places(queue::kFailedOfContext, bench.join_in(other, 4, 2, kGroupId + 1));
  start(program, 0);
  over(0);
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 0\ncompletes 100 BAD_PROGRAM at 1 key\n");
}

TEST_F(Failed, FieldsThatCannotBeAreRefused) {
  using Spoil = void (*)(peal_failed&);
  listener();
  start(program, 0);
  for (const Spoil spoil : {
           Spoil{[](auto& body) { body.to = body.from; }},
           Spoil{[](auto& body) { body.rank = 4; }},
           Spoil{[](auto& body) { body.program = PEAL_NO_QUEUE; }},
           Spoil{[](auto& body) { body.status = PEAL_STATUS_OK; }},
           Spoil{[](auto& body) { body.status = PEAL_STATUS_COUNT; }},
           Spoil{[](auto& body) { body.reason = PEAL_PROGRAM_REASON_COUNT; }},
           Spoil{[](auto& body) { body.hops = kFirstHops + 1; }},
       }) {
    peal_failed body = news(0, 1);
    spoil(body);
    EXPECT_EQ(change(wire().failed(0, body)), "+1 drop_origin");
  }
  settle();
  EXPECT_EQ(log(), "");
  EXPECT_EQ(change(wire().failed(0, news(0, 1), PEAL_PACKET_KNOWN)), "+1 duplicate");
}

// Its memory is the user's again when nothing is written there any more.
TEST_F(Failed, WhatIsBeingWrittenIsWaitedFor) {
  listener();
  network.lands = true;
  start(program, 0);
  bench.deliver(wire().failed(0, news(0, 1)));
  for (int i = 0; i < 5; i++) bench.advance(100'000);
  EXPECT_EQ(log(), "");
  network.lands = false;
  bench.advance(100'000);
  EXPECT_EQ(log(), "completes 100 BAD_PROGRAM at 5 key elsewhere, rank 3\n");
}

// Where the group is over nobody knows what is written there: all that is under way is waited for.
TEST_F(Failed, WhatIsBeingWrittenIsWaitedForWhereTheGroupIsOver) {
  begin_with_a_write();
  bench.deliver(wire().death(0, 3));
  EXPECT_EQ(end_of_write(), "completes 100 PEER_DEAD at 0 rank 3\n");
}

// The same where its host has given the group up.
TEST_F(Failed, WhatIsBeingWrittenIsWaitedForWhereTheGroupIsGivenUp) {
  begin_with_a_write();
  EXPECT_EQ(card_abandon_group(bench.card(), bench.context(), member.handle(), bench.now),
            PEAL_STATUS_OK);
  EXPECT_EQ(end_of_write().substr(0, 14), "completes 100 ");
}

// Whoever waits for a program that this one tells waits for this one.
TEST_F(Failed, ProgramsThatItTellsFailWithIt) {
  WrittenProgram other;
  other.name = 8;
  other.sources = {3};
  other.wait(0, 1);
  commit(other.end());
  program.signal(2, 0, 1, 8);
  failing();
  start(other, 0);
  bench.take_log();
  post(program, 0);
  settle();
  EXPECT_NE(bench.take_wire_log().find("1>3 FAILURE program=8 from=0 to=1 rank=1"),
            std::string::npos);
  over(0);
  over(1);
  EXPECT_NE(log().find("completes 100 BAD_PROGRAM at 2 key elsewhere, rank 1\n"),
            std::string::npos);
}

// What a program tells of an iteration that has failed was thrown away, or never sent: whoever it
// tells cannot go on by it.
TEST_F(Failed, WhoIsToldByOneThatFailedFailsWithIt) {
  run_beside_failed();
  notice(3, 0, 1, 0, 8, kName + 1);
  EXPECT_EQ(log(), "completes 100 BAD_PROGRAM at 5 key elsewhere, rank 3\n");
  // The next one, before it begins.
  notice(3, 0, 1, 1, 8, kName + 1);
  start(program, 1);
  EXPECT_EQ(log(), "completes 101 BAD_PROGRAM at 5 key elsewhere, rank 3\n");
  notice(3, 0, 1, 2, 8, kName + 1);
  start(program, 2);
  EXPECT_EQ(log(), "completes 102 OK\n") << "that one has not failed";
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NOTICES_STALE), 2u);
}

// It is not told again: where there is no place for the news the program remembers it by itself.
TEST_F(Failed, WhoIsToldByOneThatFailedFailsWithItWithoutAPlace) {
  run_beside_failed(3);
  for (const uint32_t peer : {2u, 3u}) answer(peer, news(0, 3));
  take_places(queue::kFailedOfContext, member);
  notice(3, 0, 1, 2, 8, kName + 1);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_FAILURE), 1u);
  EXPECT_EQ(log(), "");
  for (uint64_t i = 0; i < 2; i++) {
    if (i > 0) start(program, i);
    notice(3, 0, 1, i, 8);
    EXPECT_EQ(log(), "completes " + std::to_string(100 + i) + " OK\n") << "this one has not failed";
    notice(3, 0, 1, i, 8, kName + 1);  // of one that is over here: not remembered
  }
  start(program, 2);
  EXPECT_EQ(log(), "") << "it has failed, and cannot tell";
  give_places();
  bench.advance(wait());
  EXPECT_EQ(log(), "completes 102 BAD_PROGRAM at 5 key elsewhere, rank 3\n");
  notice(3, 0, 1, 3, 8);
  start(program, 3);
  EXPECT_EQ(log(), "completes 103 OK\n");
}

// The last number of all has none behind it, and is no iteration's.
TEST_F(Failed, NoIterationHasTheLastNumber) {
  run_beside_failed();
  notice(3, 0, 1, ~uint64_t{0}, 8, kName + 1);
  EXPECT_EQ(log(), "completes 100 BAD_PROGRAM at 0 ahead rank 3\n");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NOTICES_STALE), 0u);
}

TEST_F(Failed, WhoMayNotTellIsNoReasonToFail) {
  run_beside_failed();
  notice(2, 0, 1, 0, 8, kName + 1);
  EXPECT_EQ(log(), "");
}

TEST_F(Failed, OtherProgramsNoticesCount) {
  run_beside_failed();
  notice(3, 0, 1, 0, 8, kName + 2);
  EXPECT_EQ(log(), "completes 100 OK\n");
  start(program, 1);
  notice(3, 0, 1, 1, 8);
  EXPECT_EQ(log(), "completes 101 OK\n") << "of none";
}

// What was told too early is not told again: that iteration cannot be carried out, either.
TEST_F(Failed, AnIterationThatWasToldTooEarlyFailsToo) {
  listener();
  start(program, 0);
  notice(3, 0, 1, CONFIG_QUEUE_STARTS);
  EXPECT_EQ(log(), "completes 100 BAD_PROGRAM at 0 ahead rank 3\n");
  for (uint64_t i = 1; i < CONFIG_QUEUE_STARTS; i++) {
    start(program, i);
    notice(3, 0, 1, i);
    EXPECT_EQ(log(), "completes " + std::to_string(100 + i) + " OK\n");
  }
  start(program, CONFIG_QUEUE_STARTS);
  EXPECT_EQ(log(), "completes " + std::to_string(100 + CONFIG_QUEUE_STARTS) +
                       " BAD_PROGRAM at 0 ahead elsewhere, rank 1\n");
}

TEST_F(Failed, ANameThatIsGivenAgainHasNotFailed) {
  listener();
  start(program, 0);
  hear(0, news(0, 5));
  log();
  ASSERT_EQ(free_program(program), PEAL_STATUS_OK);
  program.memory = {};
  commit(program);
  start(program, 0);
  notice(3, 0, 1, 0);
  EXPECT_EQ(log(), "completes 100 OK\n");
}

// A program whose starts fail together: a dissemination among four, whose rounds come from ranks 0
// and 3.
class FailedTogether : public Failed {
 protected:
  FailedTogether() { program.mode |= PEAL_PROGRAM_TOGETHER; }

  // It has begun, and heard of so many rounds.
  static peal_failed begun(uint8_t rounds, uint64_t from = 0) {
    peal_failed body = news(from, from + 1);
    body.begun = static_cast<uint8_t>(PEAL_FAILED_TOGETHER | (rounds + 1));
    return body;
  }
  static peal_failed not_begun(uint64_t from = 0) {
    peal_failed body = news(from, from + 1);
    body.begun = PEAL_FAILED_TOGETHER;
    return body;
  }
};

TEST_F(FailedTogether, ItIsOverWhenAllHaveBegun) {
  listener();
  start(program, 0);
  hear(0, not_begun());
  hear(3, not_begun());
  EXPECT_EQ(log(), "");
  hear(3, begun(1));
  EXPECT_EQ(log(), "") << "its second round says nothing of the first";
  hear(2, begun(2));
  EXPECT_EQ(log(), "") << "nor does a rank ahead";
  hear(0, begun(0));
  EXPECT_EQ(log(), "completes 100 BAD_PROGRAM at 5 key elsewhere, rank 3\n");
}

TEST_F(FailedTogether, HowFarItIsIsToldWhereItIsAwaited) {
  listener();
  bench.take_log();
  hear(0, not_begun());
  for (const uint32_t peer : {0u, 2u, 3u}) answer(peer, not_begun());
  EXPECT_EQ(sent_within(default_timeouts().nack_max_ns), "");
  // To rank 2 in round 0, when it begins.
  bench.take_log();
  start(program, 0);
  EXPECT_NE(bench.take_wire_log().find("send 1>2 FAILURE program=7 from=0 to=1 rank=3"),
            std::string::npos);
  answer(2, not_begun());
  EXPECT_NE(sent_within(wait() + 10).find("1>2 FAILURE"), std::string::npos) << "it knows less";
  answer(2, begun(0));
  EXPECT_EQ(sent_within(default_timeouts().nack_max_ns), "");
  // To rank 3 in round 1, when rank 0 has.
  EXPECT_NE(hear(0, begun(0)).find("send 1>3 FAILURE program=7 from=0 to=1 rank=3"),
            std::string::npos);
}

TEST_F(FailedTogether, WhoHasDoneItHasBegun) {
  listener();
  start(program, 0);
  notice(3, 0, 1, 0);
  EXPECT_EQ(log(), "completes 100 OK\n");
  bench.take_log();
  hear(0, not_begun());
  bench.port.take_sent();
  bench.advance(wait() + 10);
  bool told = false;
  for (const Frame& frame : bench.port.take_sent()) {
    peal_failed body;
    std::memcpy(&body, frame.payload.data(), sizeof(body));
    told = told ||
           (frame.header.type == PEAL_PACKET_FAILURE && body.begun == (PEAL_FAILED_TOGETHER | 1));
  }
  EXPECT_TRUE(told);
}

TEST_F(FailedTogether, HowFarCannotBeFartherThanTheRounds) {
  listener();
  EXPECT_EQ(change(wire().failed(0, begun(3))), "+1 drop_origin");
  peal_failed odd = news(0, 1);
  odd.begun = 1;
  EXPECT_EQ(change(wire().failed(0, odd)), "+1 drop_origin");
}

// Who is awaited is watched: a card that dies meanwhile ends it.
TEST_F(FailedTogether, WhoHasNotBegunIsWatched) {
  listener();
  start(program, 0);
  hear(0, begun(0));
  for (const uint32_t peer : {0u, 2u, 3u}) answer(peer, begun(1));
  bench.deliver(wire().alive(0));
  bench.deliver(wire().alive(2));
  bench.deliver(wire().alive(3));
  EXPECT_NE(sent_within(default_timeouts().dead_ns / 2).find("send 1>3 PROBE"), std::string::npos);
  bench.deliver(wire().death(0, 3));
  settle();
  EXPECT_EQ(log(), "completes 100 BAD_PROGRAM at 5 key elsewhere, rank 3\n");
}

TEST_F(Failed, ADeadGroupHasNothingToTell) {
  listener();
  start(program, 0);
  bench.deliver(wire().death(0, 3));
  bench.take_log();
  settle();
  EXPECT_EQ(bench.take_wire_log().find("FAILURE"), std::string::npos);
  EXPECT_EQ(log(), "completes 100 PEER_DEAD at 0 rank 3\n");
}

}  // namespace
}  // namespace peal::test
