// SPDX-License-Identifier: BSD-2-Clause
// What is found in a program before a card has it.
#include "hostlib/program_check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "hostlib/program_collectives.h"

namespace peal::host {
namespace {

class Checked : public ::testing::Test {
 protected:
  // With a gate, so that nothing is said of that.
  Checked() : program({.rank = 1, .ranks = 4}), own(program.add_counter(1)) {
    program.signal(3, {.counter = 0});
  }
  std::string found() { return text_of(check_program(program)); }
  static void* memory() { return reinterpret_cast<void*>(0x1000); }
  Program program;
  uint16_t own;
};

TEST_F(Checked, AGoodOneHasNothing) {
  const uint16_t ready = program.add_counter(2);
  program.wait(ready, 1);
  program.put(2, memory(), 64, {.key = 1, .offset = 0}, nullptr, own);
  program.wait(own, 1);
  EXPECT_EQ(found(), "");
}

TEST_F(Checked, WhatACardRefusesIsWrong) {
  program.put(4, memory(), 64, {.key = 1, .offset = 0}, nullptr);
  program.wait(7, 1);
  program.signal(2, {.counter = 0, .steps = 0});
  program.send(2, 0, memory(), uint64_t{1} << 32);
  EXPECT_EQ(found(),
            "descriptor 1: wrong: no such rank, or the card cannot reach it\n"
            "descriptor 2: wrong: no such counter, or not one of that kind\n"
            "descriptor 3: wrong: no steps, or more than a program has descriptors\n"
            "descriptor 4: wrong: a length that this card cannot do\n");
}

TEST_F(Checked, SourcesAreRanks) {
  program.add_counter(4);
  EXPECT_EQ(found(), "descriptor 0: wrong: counter 1 is told by rank 4: there is no such rank\n");
}

TEST_F(Checked, OneThatTellsACounterThatIsNotItsOwn) {
  program.add_counter(2);
  program.signal(1, {.counter = 1});
  EXPECT_EQ(found(), "descriptor 1: wrong: tells counter 1 of its own, which is not its to tell\n");
}

TEST_F(Checked, OneThatWaitsForWhatOnlyComesBehindIt) {
  program.put(1, memory(), 8, {.key = 1, .offset = 0}, nullptr, own);
  program.signal(1, {.counter = own, .steps = 2});
  program.wait(own, 3);
  program.wait(own, 4);
  program.signal(1, {.counter = own});
  EXPECT_EQ(found(),
            "descriptor 4: waits for 4 in counter 0, which has 3 by then: for ever, unless another "
            "program of this rank tells it\n");
}

TEST_F(Checked, AGateOpensByWhatIsBeforeIt) {
  program.signal(1, {.counter = own});
  program.put(1, memory(), 8, {.key = 1, .offset = 0}, nullptr, own);
  program.gate(own, 1);
  program.put(1, memory(), 8, {.key = 1, .offset = 0}, nullptr);
  program.gate(own, 3);
  program.signal(1, {.counter = own});
  EXPECT_EQ(found(),
            "descriptor 3: waits for 3 in counter 0, which has 2 by then: for ever, unless another "
            "program of this rank tells it\n");
}

TEST_F(Checked, AGateIsAWordForItsOwnPut) {
  const uint16_t ready = program.add_counter(2);
  program.put(2, memory(), 8, {.key = 1, .offset = 0}, nullptr);
  program.gate(ready, 1);
  EXPECT_EQ(found(), "");
  program.put(2, memory(), 8, {.key = 1, .offset = 8}, nullptr);
  EXPECT_EQ(found(),
            "descriptor 2: puts into memory of rank 2, of which it has not heard in this iteration "
            "that it is ready\n");
}

TEST_F(Checked, AGateIsOfACounter) {
  program.put(1, memory(), 8, {.key = 1, .offset = 0}, nullptr);
  program.gate(7, 1);
  EXPECT_EQ(found(), "descriptor 1: wrong: no such counter, or not one of that kind\n");
}

TEST_F(Checked, OneThatPutsWithoutAWordThatItsOwnerIsReady) {
  program.put(2, memory(), 8, {.key = 1, .offset = 0}, nullptr);
  program.put(2, memory(), 8, {.key = 1, .offset = 8}, nullptr);
  EXPECT_EQ(found(),
            "descriptor 1: puts into memory of rank 2, of which it has not heard in this iteration "
            "that it is ready\n");
}

TEST_F(Checked, OneThatNothingSlowsDown) {
  Program quick({.rank = 0, .ranks = 1});
  quick.wait(quick.add_counter(0), 0);
  EXPECT_EQ(text_of(check_program(quick)),
            "descriptor 1: nothing in it takes as long as a message: it cannot be started for "
            "several iterations\n");
}

TEST_F(Checked, ASessionNeedsItsPointer) {
  Program session({.rank = 0, .ranks = 2, .mode = PEAL_PROGRAM_MODE_SESSION, .scheduled = 9});
  session.signal(1, {.counter = 0});
  EXPECT_EQ(text_of(check_program(session)),
            "descriptor 0: wrong: session mode without a counter for its pointer\n"
            "descriptor 0: wrong: 9 descriptors are scheduled at the beginning\n");
}

TEST_F(Checked, APutOfASessionThatHasNoPointer) {
  Program session({.rank = 0, .ranks = 2, .mode = PEAL_PROGRAM_MODE_SESSION});
  session.put(1, memory(), 8, {.key = 1, .offset = 0}, nullptr);
  EXPECT_EQ(text_of(check_program(session)),
            "descriptor 0: wrong: session mode without a counter for its pointer\n"
            "descriptor 0: puts into memory of rank 1, of which it has not heard in this iteration "
            "that it is ready\n");
}

TEST_F(Checked, OneThatIsTooLong) {
  for (uint32_t i = 0; i < PEAL_PROGRAM_DESCRIPTORS_MAX - 2; i++) program.wait(own, 0);
  EXPECT_EQ(found(),
            "descriptor 0: wrong: 8193 descriptors with COMPLETE and JUMP, at most 8192\n");
}

TEST_F(Checked, CollectivesAreGood) {
  const std::vector<Program::Remote> buffers(7, {.key = 1, .offset = 0});
  for (uint32_t ranks = 2; ranks <= 7; ranks++) {
    for (uint32_t rank = 0; rank < ranks; rank++) {
      EXPECT_EQ(text_of(check_program(
                    chain_broadcast(rank, ranks, ranks - 1, memory(), 100, 7, buffers))),
                "")
          << rank << " of " << ranks;
      EXPECT_EQ(text_of(check_program(pairwise_alltoall(rank, ranks, memory(), 8, 2, buffers))), "")
          << rank << " of " << ranks;
    }
  }
}

}  // namespace
}  // namespace peal::host
