// SPDX-License-Identifier: BSD-2-Clause
// Puts that have gates: what is before a closed one is held, and nothing else.
#include "firmware/queue/held.h"

#include "tests/unit/firmware/queue/queue_fixture.h"

namespace peal::test {
namespace {

class Held : public QueueTest {
 protected:
  static void gate(peal_descriptor& put, uint16_t counter, uint64_t threshold = 1) {
    put.gate = counter;
    put.threshold = threshold;
  }
  // A put of `bytes`, which tell it from others, to rank 2.
  void put_behind(WrittenProgram& program, uint64_t bytes, uint16_t counter,
                  uint64_t threshold = 1) const {
    gate(program.put(2, bytes, data.key), counter, threshold);
  }
  static std::string put_text(uint64_t bytes, uint32_t rank = 2) {
    return "put 0.." + std::to_string(bytes) + " to " + std::to_string(rank) + ":99+0\n";
  }
};

TEST_F(Held, AClosedGateHoldsBackItsOwnPut) {
  WrittenProgram program;
  program.sources = {2};
  put_behind(program, 8, 0, 2);
  program.put(3, 16, data.key);
  commit(program.end());
  for (uint64_t i = 0; i < 3; i++) {  // each time anew
    start(program, i);
    EXPECT_EQ(log(), put_text(16, 3));
    notice(2, 0, 1, i);
    over(2 * i);
    EXPECT_EQ(log(), "") << "it is not over without the other";
    notice(2, 0, 1, i);
    EXPECT_EQ(log(), put_text(8));
    over(2 * i + 1);
    EXPECT_EQ(log(), "completes " + std::to_string(100 + i) + " OK\n");
  }
}

TEST_F(Held, AnOpenOneHoldsBackNothing) {
  WrittenProgram program;
  program.sources = {2, 2};
  program.wait(0, 1);
  put_behind(program, 8, 1);
  program.put(3, 16, data.key);
  commit(program.end());
  start(program, 0);
  notice(2, 1, 1, 0);
  EXPECT_EQ(log(), "");
  notice(2, 0, 1, 0);
  EXPECT_EQ(log(), put_text(8) + put_text(16, 3));
}

TEST_F(Held, ANoticeOfTheNextIterationOpensNothing) {
  WrittenProgram program;
  program.sources = {2};
  put_behind(program, 8, 0);
  commit(program.end());
  post(program, 0);
  start(program, 1);
  notice(2, 0, 1, 1);
  EXPECT_EQ(log(), "");
  notice(2, 0, 1, 0);
  EXPECT_EQ(log(), put_text(8));
  over(0);
  EXPECT_EQ(log(), put_text(8) + "completes 100 OK\n") << "the next gate was open before";
  over(1);
  EXPECT_EQ(log(), "completes 101 OK\n");
}

TEST_F(Held, EachHasItsOwnGate) {
  WrittenProgram program;
  program.sources = {0, 2, 3};
  for (uint16_t counter = 0; counter < 3; counter++) put_behind(program, 8 + counter, counter);
  commit(program.end());
  start(program, 0);
  EXPECT_EQ(log(), "");
  notice(3, 2, 1, 0);
  EXPECT_EQ(log(), put_text(10));
  notice(0, 0, 1, 0);
  EXPECT_EQ(log(), put_text(8));
  notice(2, 1, 1, 0);
  EXPECT_EQ(log(), put_text(9));
}

TEST_F(Held, ThoseOfOneGateGoInTheirOrder) {
  WrittenProgram program;
  program.sources = {3};
  put_behind(program, 8, 0);
  put_behind(program, 16, 0, 2);
  put_behind(program, 24, 0);
  commit(program.end());
  start(program, 0);
  notice(3, 0, 1, 0);
  EXPECT_EQ(log(), put_text(8) + put_text(24));
  notice(3, 0, 1, 0);
  EXPECT_EQ(log(), put_text(16));
}

// What is waited for in order goes on beside them, and the other way round.
TEST_F(Held, WaitsGoOnBesideThem) {
  WrittenProgram program;
  program.sources = {2, 3, kOwn};
  put_behind(program, 8, 0);
  program.wait(1, 1);
  program.put(3, 16, data.key, 2);
  program.wait(2, 1);
  program.put(3, 24, data.key);
  commit(program.end());
  start(program, 0);
  EXPECT_EQ(log(), "");
  notice(3, 1, 1, 0);
  EXPECT_EQ(log(), put_text(16, 3));
  notice(2, 0, 1, 0);
  EXPECT_EQ(log(), put_text(8));
  over(0);
  EXPECT_EQ(log(), put_text(24, 3));
  over(1);
  over(2);
  EXPECT_EQ(log(), "completes 100 OK\n");
}

TEST_F(Held, AnOwnDescriptorMayOpenAGate) {
  network.signals_at_once = true;
  WrittenProgram program;
  program.sources = {3, kOwn};
  program.put(3, 16, data.key, 1);
  program.signal(2, 5).done = 1;
  put_behind(program, 8, 1, 2);
  program.wait(0, 1);
  commit(program.end());
  start(program, 0);
  log();
  over(0);
  EXPECT_EQ(log(), put_text(8));
}

// A signal that is over at once, while a put is held that it opens.
TEST_F(Held, ASignalThatIsOverAtOnceOpensAGate) {
  network.signals_at_once = true;
  WrittenProgram program;
  program.sources = {3, kOwn};
  put_behind(program, 8, 1);  // (a card that could not hold it would never come to the signal)
  program.signal(2, 5).done = 1;
  program.wait(0, 1);
  commit(program.end());
  start(program, 0);
  EXPECT_EQ(log(), "signal to 2 tells 7.5 +1 of 0 at once\n" + put_text(8));
}

// A receive lasts until its sender comes to it, and might have the last task until then.
TEST_F(Held, MessagesStayBehindThem) {
  for (const uint8_t opcode : {PEAL_PROGRAM_SEND, PEAL_PROGRAM_RECEIVE}) {
    WrittenProgram program;
    program.name = opcode;
    program.sources = {2};
    put_behind(program, 8, 0);
    program.put(3, 16, data.key);
    program.message(opcode, 3, 5, 24, data.key);
    commit(program.end());
    start(program, 0);
    EXPECT_EQ(log(), put_text(16, 3));
    over(network.tickets.size() - 1);
    EXPECT_EQ(log(), "");
    notice(2, 0, 1, 0, opcode);
    EXPECT_EQ(log(), put_text(8) + (opcode == PEAL_PROGRAM_SEND ? "send 0..24 to 3 tag 5\n"
                                                                : "receive 0..24 from 3 tag 5\n"));
  }
}

TEST_F(Held, OneMoreThanThereArePlacesHoldsBackWhatFollows) {
  WrittenProgram program;
  program.sources = {2, 3};
  for (uint32_t i = 0; i < queue::kHeld; i++) put_behind(program, 8 + i, 0);
  put_behind(program, 500, 1);
  program.put(3, 600, data.key);
  commit(program.end());
  start(program, 0);
  EXPECT_EQ(log(), "");
  notice(3, 1, 1, 0);
  EXPECT_EQ(log(), put_text(500) + put_text(600, 3));
  notice(2, 0, 1, 0);
  EXPECT_EQ(network.tickets.size(), size_t{CONFIG_QUEUE_TASKS}) << "as many as tasks";
  EXPECT_EQ(log().substr(0, put_text(8).size()), put_text(8));
  for (size_t i = 0; i < queue::kHeld + 2; i++) over(i);
  EXPECT_EQ(network.tickets.size(), size_t{queue::kHeld} + 2);
  EXPECT_NE(log().find("completes 100 OK\n"), std::string::npos);
}

// The program is longer than the cache: a held put's place is not given to another descriptor.
TEST_F(Held, ItStaysInTheCache) {
  WrittenProgram program;
  program.sources = {2, kOwn};
  put_behind(program, 8, 0);
  for (uint32_t i = 0; i < 3 * CONFIG_QUEUE_DESCRIPTORS; i++) program.signal(kOwn, 1);
  put_behind(program, 16, 0);
  program.put(3, 24, data.key);
  commit(program.end());
  start(program, 0);
  EXPECT_EQ(log(), "") << "what follows does not fit beside it";
  notice(2, 0, 1, 0);
  EXPECT_EQ(log(), put_text(8) + put_text(16) + put_text(24, 3));
  for (size_t i = 0; i < 3; i++) over(i);
  EXPECT_EQ(log(), "completes 100 OK\n");
}

TEST_F(Held, OneForWhichThereIsNoRecordIsAskedForAgain) {
  WrittenProgram program;
  program.sources = {2};
  put_behind(program, 8, 0);
  put_behind(program, 16, 0);
  commit(program.end());
  start(program, 0);
  network.refuse.count = 2;
  notice(2, 0, 1, 0);
  EXPECT_EQ(log(), "");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_TASK), 1u);
  bench.advance_to_deadline();
  EXPECT_EQ(log(), "");
  bench.advance_to_deadline();
  EXPECT_EQ(log(), put_text(8) + put_text(16));
}

TEST_F(Held, AKeyThatIsGoneMeanwhileFailsItByItsIndex) {
  const Memory other = bench.add_memory("other", 64);
  RegionId region = 0;
  WrittenProgram program;
  program.sources = {2, 3};
  put_behind(program, 8, 1);
  gate(program.put(2, 16, other.key), 0);
  commit(program.end());
  start(program, 0, 0);
  log();
  start(program, 0);
  ASSERT_EQ(card_unregister_memory(bench.card(), bench.context(), other.key, &region),
            PEAL_STATUS_OK);
  notice(2, 0, 1, 0);
  EXPECT_EQ(log(), "completes 100 BAD_PROGRAM at 1 key\n");
}

// What a start that fails has held is not the next one's.
TEST_F(Held, AStartThatFailsForgetsThem) {
  WrittenProgram program;
  program.sources = {2};
  put_behind(program, 8, 0);
  program.put(3, 16, data.key);
  commit(program.end());
  start(program, 0);
  over(0, PEAL_STATUS_BAD_KEY);
  EXPECT_EQ(log(), put_text(16, 3) + "completes 100 BAD_KEY at 1 rank 3\n");
  notice(2, 0, 1, 0);
  start(program, 1);
  EXPECT_EQ(log(), put_text(16, 3));
  over(1);
  notice(2, 0, 1, 1);
  EXPECT_EQ(log(), put_text(8));
  over(2);
  EXPECT_EQ(log(), "completes 101 OK\n");
}

TEST_F(Held, NoneIsHeldBehindTheSchedulingPointer) {
  WrittenProgram program;
  program.mode = PEAL_PROGRAM_MODE_SESSION;
  program.sources = {3, 2};
  put_behind(program, 8, 1);
  program.put(3, 16, data.key);
  commit(program.end());
  start(program, 0);
  notice(2, 1, 1, 0);
  EXPECT_EQ(log(), "");
  notice(3, 0, 1, 0);
  EXPECT_EQ(log(), put_text(8));
  notice(3, 0, 1, 0);
  EXPECT_EQ(log(), put_text(16, 3));
  // The pointer is waited for by itself.
  const peal_program_shape shape = {kOwn, 4, 4, 2, program.mode, program.sources.data()};
  program.descriptors[0].gate = 0;
  EXPECT_EQ(peal_check_descriptor(&shape, 0, program.descriptors.data()),
            PEAL_PROGRAM_REASON_COUNTER);
}

// A put like the one before it, but for its gate, is looked at by itself.
TEST_F(Held, APutBehindAnotherHasAGateOfItsOwn) {
  WrittenProgram program;
  program.sources = {2};
  program.put(2, 8, data.key);
  put_behind(program, 16, 0);
  program.put(2, 24, data.key);
  commit(program.end());
  start(program, 0);
  EXPECT_EQ(log(), put_text(8) + put_text(24));
  notice(2, 0, 1, 0);
  EXPECT_EQ(log(), put_text(16));
}

}  // namespace
}  // namespace peal::test
