// SPDX-License-Identifier: BSD-2-Clause
// From host memory to the cache: every descriptor is looked at when it comes, whenever that is.
#include "firmware/queue/fetch.h"

#include <functional>

#include "tests/unit/firmware/queue/queue_fixture.h"

namespace peal::test {
namespace {

constexpr uint32_t kLong = 3 * CONFIG_QUEUE_DESCRIPTORS;

class Fetch : public QueueTest {
 protected:
  // A program with one descriptor that `spoil` makes bad; how a look at it ends.
  std::string end_of(const std::function<void(WrittenProgram&)>& make) {
    WrittenProgram program;
    program.sources = {kOwn, 3};
    make(program);
    commit(program);
    log();
    start(program, 0, 0);
    const std::string looked = log();
    start(program, 0);
    EXPECT_EQ(log(), looked) << "a start finds the same";
    EXPECT_EQ(free_program(program), PEAL_STATUS_OK);
    return looked;
  }
  void give_back(const Memory& memory) {
    RegionId region = 0;
    ASSERT_EQ(card_unregister_memory(bench.card(), bench.context(), memory.key, &region),
              PEAL_STATUS_OK);
  }
  std::string end_with(const std::function<void(peal_descriptor&)>& spoil, uint8_t opcode) {
    return end_of([&](WrittenProgram& program) {
      program.wait(0, 0);
      switch (opcode) {
        case PEAL_PROGRAM_PUT:
          program.put(2, 8, data.key);
          break;
        case PEAL_PROGRAM_SEND:
        case PEAL_PROGRAM_RECEIVE:
          program.message(opcode, 2, 1, 8, data.key);
          break;
        case PEAL_PROGRAM_WAIT:
          program.wait(1, 1);
          break;
        default:
          program.signal(2, 1);
      }
      peal_descriptor& bad = program.descriptors.back();
      spoil(bad);
      program.end();
    });
  }
};

std::string bad(const std::string& at) { return "completes 100 BAD_PROGRAM at " + at + "\n"; }

TEST_F(Fetch, OpcodesAreThese) {
  const auto is = [](uint8_t opcode) {
    return [opcode](peal_descriptor& descriptor) { descriptor.opcode = opcode; };
  };
  for (const uint8_t opcode : {0, 8, 9, 255}) {
    EXPECT_EQ(end_with(is(opcode), PEAL_PROGRAM_WAIT), bad("1 opcode")) << int{opcode};
  }
}

TEST_F(Fetch, CompleteAndJumpStandAtTheEndAndOnlyThere) {
  EXPECT_EQ(end_of([](WrittenProgram& program) { program.wait(0, 0), program.wait(0, 0); }),
            bad("0 order"));
  EXPECT_EQ(end_of([](WrittenProgram& program) {
              program.add(PEAL_PROGRAM_COMPLETE);
              program.wait(0, 0);
            }),
            bad("1 order"));
  EXPECT_EQ(end_of([](WrittenProgram& program) {
              program.add(PEAL_PROGRAM_JUMP);
              program.end();
            }),
            bad("0 order"));
  EXPECT_EQ(end_of([](WrittenProgram& program) {
              program.wait(0, 0);
              program.add(PEAL_PROGRAM_COMPLETE);
              program.end();
            }),
            bad("1 order"));
}

// Every field that an opcode does not use must be zero.
TEST_F(Fetch, UnusedFieldsAreZero) {
  using Spoil = std::function<void(peal_descriptor&)>;
  const std::pair<const char*, Spoil> fields[] = {
      {"reserved0", [](auto& d) { d.reserved0 = 1; }},
      {"reserved1", [](auto& d) { d.reserved1 = 1; }},
      {"gate", [](auto& d) { d.gate = 1; }},
      {"queue", [](auto& d) { d.queue = 1; }},
      {"counter", [](auto& d) { d.counter = 1; }},
      {"done", [](auto& d) { d.done = 1; }},
      {"rank", [](auto& d) { d.rank = 1; }},
      {"steps", [](auto& d) { d.steps = 1; }},
      {"tag", [](auto& d) { d.tag = 1; }},
      {"offset", [](auto& d) { d.offset = 1; }},
      {"remote_offset", [](auto& d) { d.remote_offset = 1; }},
      {"bytes", [](auto& d) { d.bytes = 1; }},
      {"key", [](auto& d) { d.key = 1; }},
      {"remote_key", [](auto& d) { d.remote_key = 1; }},
  };
  const std::pair<uint8_t, std::string> refuses[] = {
      {PEAL_PROGRAM_PUT, "gate counter steps "},
      {PEAL_PROGRAM_SEND, "gate queue counter steps remote_offset remote_key "},
      {PEAL_PROGRAM_RECEIVE, "gate queue counter steps remote_offset remote_key "},
      {PEAL_PROGRAM_WAIT, "gate queue done rank steps offset remote_offset bytes key remote_key "},
      {PEAL_PROGRAM_SIGNAL, "gate tag offset remote_offset bytes key remote_key "},
  };
  for (const auto& [opcode, expected] : refuses) {
    std::string refused;
    for (const auto& [name, spoil] : fields) {
      WrittenProgram program;
      program.sources = {kOwn, 3};
      switch (opcode) {
        case PEAL_PROGRAM_PUT:
          program.put(2, 8, data.key);
          break;
        case PEAL_PROGRAM_WAIT:
          program.wait(1, 1);
          break;
        case PEAL_PROGRAM_SIGNAL:
          program.signal(2, 1);
          break;
        default:
          program.message(opcode, 2, 1, 8, data.key);
      }
      spoil(program.descriptors[0]);
      program.end();
      const peal_program_shape shape = {kOwn, 4, 3, 2, program.mode, program.sources.data()};
      if (peal_check_descriptor(&shape, 0, program.descriptors.data()) ==
          PEAL_PROGRAM_REASON_FIELD) {
        refused += std::string(name) + " ";
      }
    }
    EXPECT_EQ(refused, "reserved0 reserved1 " + expected) << int{opcode};
  }
}

TEST_F(Fetch, CompleteAndJumpNameNothing) {
  for (const size_t place : {size_t{1}, size_t{2}}) {
    EXPECT_EQ(end_of([&](WrittenProgram& program) {
                program.wait(0, 0);
                program.end();
                program.descriptors[place].rank = 1;
              }),
              bad(std::to_string(place) + " field"));
  }
}

TEST_F(Fetch, RanksAreOfTheGroup) {
  for (const uint8_t opcode :
       {PEAL_PROGRAM_PUT, PEAL_PROGRAM_SEND, PEAL_PROGRAM_RECEIVE, PEAL_PROGRAM_SIGNAL}) {
    for (const uint32_t rank : {4u, PEAL_NO_RANK}) {
      EXPECT_EQ(end_with([&](auto& d) { d.rank = rank; }, opcode), bad("1 rank"));
    }
  }
}

TEST_F(Fetch, CountersAreOfTheProgramAndOfTheirKind) {
  EXPECT_EQ(end_with([](auto& d) { d.counter = 2; }, PEAL_PROGRAM_WAIT), bad("1 counter"));
  EXPECT_EQ(end_with([](auto& d) { d.counter = PEAL_PROGRAM_COUNTERS_MAX; }, PEAL_PROGRAM_SIGNAL),
            bad("1 counter"));
  EXPECT_EQ(end_with([](auto& d) { d.gate = 2, d.threshold = 1; }, PEAL_PROGRAM_PUT),
            bad("1 counter"));
  for (const uint8_t opcode :
       {PEAL_PROGRAM_PUT, PEAL_PROGRAM_SEND, PEAL_PROGRAM_RECEIVE, PEAL_PROGRAM_SIGNAL}) {
    for (const uint16_t done : {1, 2, 0xfffe}) {  // rank 3's, and none
      EXPECT_EQ(end_with([&](auto& d) { d.done = done; }, opcode), bad("1 counter")) << done;
    }
  }
  EXPECT_EQ(end_with([](auto& d) { d.rank = kOwn, d.done = 0; }, PEAL_PROGRAM_SIGNAL),
            bad("1 counter"));
}

TEST_F(Fetch, NobodyWaitsForTheSchedulingPointer) {
  EXPECT_EQ(end_of([](WrittenProgram& program) {
              program.mode = PEAL_PROGRAM_MODE_SESSION;
              program.scheduled = 3;
              program.wait(0, 0);
              program.end();
            }),
            bad("0 counter"));
}

TEST_F(Fetch, StepsAreSomeAndNotTooMany) {
  for (const uint32_t steps : {0u, PEAL_PROGRAM_DESCRIPTORS_MAX + 1u, ~0u}) {
    EXPECT_EQ(end_with([&](auto& d) { d.steps = steps; }, PEAL_PROGRAM_SIGNAL), bad("1 steps"));
    EXPECT_EQ(end_with([&](auto& d) { d.queue = 7, d.steps = steps; }, PEAL_PROGRAM_PUT),
              bad("1 steps"));
  }
  EXPECT_EQ(end_with([](auto& d) { d.queue = PEAL_NO_QUEUE; }, PEAL_PROGRAM_SIGNAL),
            bad("1 queue"));
}

TEST_F(Fetch, OwnMemoryIsChecked) {
  const Memory unreadable = bench.add_memory("unreadable", 64, PEAL_ACCESS_WRITE);
  const Memory unwritable = bench.add_memory("unwritable", 64, PEAL_ACCESS_READ);
  for (const uint8_t opcode : {PEAL_PROGRAM_PUT, PEAL_PROGRAM_SEND, PEAL_PROGRAM_RECEIVE}) {
    EXPECT_EQ(end_with([](auto& d) { d.key = 0x777; }, opcode), bad("1 key"));
    EXPECT_EQ(end_with([](auto& d) { d.offset = 4089; }, opcode), bad("1 bounds"));
    EXPECT_EQ(end_with([](auto& d) { d.offset = ~uint64_t{0}; }, opcode), bad("1 bounds"));
    EXPECT_EQ(end_with([](auto& d) { d.bytes = uint64_t{1} << 32; }, opcode), bad("1 length"));
    EXPECT_EQ(end_with([](auto& d) { d.bytes = 0; }, opcode), bad("1 field"));
    const bool writes = opcode == PEAL_PROGRAM_RECEIVE;
    EXPECT_EQ(end_with([&](auto& d) { d.key = writes ? unwritable.key : unreadable.key; }, opcode),
              bad("1 access"));
  }
}

// Where a put goes is its owner's to look at, but no memory reaches around the end of numbers.
TEST_F(Fetch, NoPutComesAround) {
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{8}}) {
    const auto around = [&](peal_descriptor& d) {
      d.bytes = bytes;
      d.remote_offset = ~uint64_t{0} - bytes + 1;
    };
    EXPECT_EQ(end_with(around, PEAL_PROGRAM_PUT), bad("1 bounds"));
  }
  WrittenProgram program;
  program.put(2, 8, data.key).remote_offset = ~uint64_t{0} - 8;
  commit(program.end());
  start(program, 0);
  EXPECT_EQ(log(), "put 0..8 to 2:99+18446744073709551607\n");
  over(0);
}

TEST_F(Fetch, ARankOutOfReachIsNamedWhenItIsNeeded) {
  network.unreachable = 2;
  WrittenProgram program;
  program.signal(3, 0);
  program.signal(2, 0);
  commit(program.end());
  start(program, 0);
  over(0);
  EXPECT_EQ(log(), "signal to 3 tells 7.0 +1 of 0\ncompletes 100 BAD_PROGRAM at 1 rank\n");
}

TEST_F(Fetch, SourcesAreRanks) {
  EXPECT_EQ(end_of([](WrittenProgram& program) {
              program.sources = {0, 4};
              program.wait(0, 0);
              program.end();
            }),
            bad("1 source"));
}

TEST_F(Fetch, AProgramLongerThanTheCacheIsReadInHalves) {
  WrittenProgram program;
  program.sources = {3};
  for (uint32_t i = 0; i < kLong; i++) program.wait(0, i);
  program.signal(2, 0);
  commit(program.end());
  const auto before = bench.counters();
  start(program, 0);
  notice(3, 0, kLong, 0);
  EXPECT_EQ(log(), "signal to 2 tells 7.0 +1 of 0\n");
  over(0);
  EXPECT_EQ(log(), "completes 100 OK\n");
  EXPECT_EQ(
      bench.counter(PEAL_COUNTER_DESCRIPTORS_FETCHED) - before[PEAL_COUNTER_DESCRIPTORS_FETCHED],
      kLong + 3);
  // The table of sources, the cache, and halves of it.
  EXPECT_LE(bench.counter(PEAL_COUNTER_DMA_OPERATIONS) - before[PEAL_COUNTER_DMA_OPERATIONS],
            2 + 2 * (kLong + 3) / CONFIG_QUEUE_DESCRIPTORS);
}

TEST_F(Fetch, OneThatFitsTheCacheStaysThere) {
  WrittenProgram program;
  program.signal(2, 0);
  commit(program.end());
  start(program, 0);
  over(0);
  const uint64_t reads = bench.counter(PEAL_COUNTER_DMA_OPERATIONS);
  start(program, 1);
  over(1);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DMA_OPERATIONS), reads);
  log();
}

TEST_F(Fetch, WhatTheHostWritesMeanwhileIsLookedAt) {
  WrittenProgram program;
  program.sources = {3};
  for (uint32_t i = 0; i < kLong; i++) program.wait(0, i + 1);
  commit(program.end());
  start(program, 0);
  program.descriptors[kLong - 1].opcode = 99;
  write(program);
  notice(3, 0, kLong, 0);
  EXPECT_EQ(log(), bad(std::to_string(kLong - 1) + " opcode"));
  program.descriptors[kLong - 1].opcode = PEAL_PROGRAM_WAIT;
  write(program);
  start(program, 1);
  notice(3, 0, kLong, 1);
  EXPECT_EQ(log(), "completes 101 OK\n");
}

TEST_F(Fetch, AKeyThatIsGoneIsFoundInACachedProgramToo) {
  const Memory memory = bench.add_memory("memory", 64);
  WrittenProgram program;
  program.put(2, 8, memory.key);
  commit(program.end());
  start(program, 0);
  over(0);
  log();
  give_back(memory);
  start(program, 1);
  EXPECT_EQ(log(), "completes 101 BAD_PROGRAM at 0 key\n");
}

// One key that has gone makes all of them be looked at again, not only the next one: also where a
// new key has the number of the one that is gone, and other memory.
TEST_F(Fetch, WhenAKeyIsGoneEveryKeyOfACachedProgramIsLookedAtAgain) {
  const Memory memory = bench.add_memory("memory", 64);
  WrittenProgram program;
  program.put(2, 8, data.key);
  program.put(2, 8, memory.key);
  program.put(2, 8, data.key);
  commit(program.end());
  start(program, 0);
  for (size_t i = 0; i < 3; i++) over(i);
  log();
  give_back(memory);
  const Memory next = bench.add_memory("next", 64);
  EXPECT_EQ(next.key & 0xffff, memory.key & 0xffff);
  start(program, 1);
  over(3);
  EXPECT_EQ(log(), "put 0..8 to 2:99+0\ncompletes 101 BAD_PROGRAM at 1 key\n");
}

// Between two descriptors of one start, too.
TEST_F(Fetch, AKeyThatGoesDuringAStartIsFoundWhereItIsNeeded) {
  const Memory memory = bench.add_memory("memory", 64);
  WrittenProgram program;
  program.sources = {3};
  program.put(2, 8, data.key);
  program.wait(0, 1);
  program.put(2, 8, data.key);
  program.put(2, 8, memory.key);
  commit(program.end());
  start(program, 0);
  notice(3, 0, 1, 0);
  for (size_t i = 0; i < 3; i++) over(i);
  start(program, 1);
  log();
  give_back(memory);
  notice(3, 0, 1, 1);
  over(3);
  over(4);
  EXPECT_EQ(log(), "put 0..8 to 2:99+0\ncompletes 101 BAD_PROGRAM at 3 key\n");
}

// The place in the cache was another descriptor's before, whose key was good.
TEST_F(Fetch, EveryKeyOfALongProgramIsLookedAt) {
  const uint32_t puts = 2 * queue::kDescriptors;
  WrittenProgram program;
  for (uint32_t i = 0; i + 1 < puts; ++i) program.put(2, 8, data.key);
  program.put(2, 8, 0x777);
  commit(program.end());
  start(program, 0);
  for (uint32_t i = 0; i + 1 < puts; ++i) over(i);
  log();
  EXPECT_EQ(network.tickets.size(), puts - 1);
  start(program, 1);
  for (uint32_t i = puts - 1; i < network.tickets.size(); ++i) over(i);
  const std::string text = log();
  EXPECT_EQ(text.substr(text.rfind("completes")),
            "completes 101 BAD_PROGRAM at " + std::to_string(puts - 1) + " key\n");
}

// A long program's descriptors are compared with the one that was found good last: what differs is
// looked at.
TEST_F(Fetch, HardlyTheSameIsNotTheSame) {
  const Memory less = bench.add_memory("less", 16);
  const Memory unwritable = bench.add_memory("unwritable", 64, PEAL_ACCESS_READ);
  const Memory unreadable = bench.add_memory("unreadable", 64, PEAL_ACCESS_WRITE);
  network.unreachable = 3;
  const uint32_t puts = 2 * queue::kDescriptors;
  const auto end_of_last = [&](const std::function<void(peal_descriptor&)>& spoil) {
    WrittenProgram program;
    for (uint32_t i = 0; i < puts; ++i) program.put(2, 8, data.key);
    spoil(program.descriptors.back());
    commit(program.end());
    log();
    const size_t first = network.tickets.size();
    start(program, 0);
    for (size_t i = first; i < network.tickets.size(); ++i) over(i);
    EXPECT_EQ(free_program(program), PEAL_STATUS_OK);
    const std::string text = log();
    return text.substr(text.rfind(" at ") + 1);
  };
  const auto last = "at " + std::to_string(puts - 1) + " ";
  EXPECT_EQ(end_of_last([](auto& d) { d.offset = 4089; }), last + "bounds\n");
  EXPECT_EQ(end_of_last([](auto& d) { d.offset = ~uint64_t{0}; }), last + "bounds\n");
  EXPECT_EQ(end_of_last([](auto& d) { d.bytes = 4097; }), last + "bounds\n");
  EXPECT_EQ(end_of_last([](auto& d) { d.remote_offset = ~uint64_t{0} - 7; }), last + "bounds\n");
  EXPECT_EQ(end_of_last([&](auto& d) { d.key = less.key, d.bytes = 17; }), last + "bounds\n");
  EXPECT_EQ(end_of_last([](auto& d) { d.key ^= 0x10000; }), last + "key\n");
  EXPECT_EQ(end_of_last([&](auto& d) { d.key = unreadable.key; }), last + "access\n");
  EXPECT_EQ(end_of_last([&](auto& d) {
              d = {};
              d.opcode = PEAL_PROGRAM_RECEIVE;
              d.done = PEAL_NO_COUNTER;
              d.rank = 2;
              d.key = unwritable.key;
              d.bytes = 8;
            }),
            last + "access\n");
  EXPECT_EQ(end_of_last([](auto& d) { d.rank = 3; }), last + "rank\n");
}

// What is fetched behind a key that has gone was not found good before.
TEST_F(Fetch, AKeyThatGoesWhileMoreIsFetchedIsFound) {
  const Memory memory = bench.add_memory("memory", 64);
  const uint32_t waits = 2 * queue::kDescriptors;
  WrittenProgram program;
  program.sources = {3};
  program.put(2, 8, memory.key);
  for (uint32_t i = 0; i < waits; ++i) program.wait(0, 1);
  program.put(2, 8, memory.key);
  commit(program.end());
  start(program, 0);
  over(0);
  log();
  give_back(memory);
  notice(3, 0, 1, 0);
  EXPECT_EQ(log(), "completes 100 BAD_PROGRAM at " + std::to_string(waits + 1) + " key\n");
}

// A run that fills the cache has overwritten what came before it: a held put kept all places.
TEST_F(Fetch, ARunThatFillsTheCacheGoesOnWithNothing) {
  constexpr uint32_t kCache = queue::kDescriptors;
  WrittenProgram program;
  program.sources = {3};
  program.put(2, 8, data.key).threshold = 1;
  for (uint32_t i = 1; i < kCache; ++i) program.put(2, 8, data.key);
  for (uint32_t i = 0; i < kCache; ++i) {
    peal_descriptor& bad = program.put(2, 8, data.key);
    bad.queue = 7;
    bad.counter = PEAL_PROGRAM_COUNTERS_MAX;
    bad.steps = 1;
  }
  commit(program.end());
  start(program, 0);
  for (uint32_t i = 0; i + 1 < kCache; ++i) over(i);
  log();
  notice(3, 0, 1, 0);
  over(kCache - 1);
  EXPECT_EQ(log(), "put 0..8 to 2:99+0\n" + bad(std::to_string(kCache) + " counter"));
}

// What goes on with a put is within that put's memory, whatever was looked at since.
TEST_F(Fetch, WhatGoesOnStaysWithinThatMemory) {
  constexpr uint32_t kRun = queue::kDescriptors / 2;
  const Memory less = bench.add_memory("less", 16);
  WrittenProgram program;
  for (uint32_t i = 0; i < kRun; ++i) program.put(2, 8, less.key);
  for (uint32_t i = 0; i < kRun; ++i) program.put(2, 8, data.key);
  for (uint32_t i = 0; i < kRun; ++i) program.put(2, 8, less.key);
  for (uint32_t i = 0; i < kRun; ++i) program.put(2, 8, less.key).offset = 64;
  commit(program.end());
  start(program, 0);
  for (uint32_t i = 0; i < 3 * kRun; ++i) over(i);
  const std::string text = log();
  EXPECT_EQ(text.substr(text.rfind('\n', text.size() - 2) + 1),
            bad(std::to_string(3 * kRun) + " bounds"));
}

TEST_F(Fetch, WhatWasWrongMayBeMended) {
  WrittenProgram program;
  program.put(2, 8, 0x777);
  commit(program.end());
  start(program, 0);
  EXPECT_EQ(log(), bad("0 key")) << "it was good when it was fetched";
  program.descriptors[0].key = data.key;
  write(program);
  start(program, 1);
  EXPECT_EQ(log(), "put 0..8 to 2:99+0\n");
  over(0);
}

TEST_F(Fetch, MemoryThatCannotBeReadEndsTheStart) {
  WrittenProgram program;
  program.sources = {3};
  program.wait(0, 0);
  commit(program.end());
  bench.port.fault_dmas.count = 1;
  start(program, 0);
  EXPECT_EQ(log(), "completes 100 DMA_FAULT at 0\n");
  bench.port.fault_dmas = {1, 1};
  start(program, 1);
  EXPECT_EQ(log(), "completes 101 DMA_FAULT at 0\n");
  start(program, 2);
  EXPECT_EQ(log(), "completes 102 OK\n");
}

TEST_F(Fetch, WithoutADmaRecordItIsAskedForAgain) {
  WrittenProgram program;
  program.sources = {3};
  program.wait(0, 0);
  commit(program.end());
  Card& card = bench.card();
  const uint32_t used = card.dma_in_use;
  card.dma_in_use = CONFIG_DMA_RECORDS;
  post(program, 0);
  EXPECT_EQ(bench.port.dma_count(), 0u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_DMA_RECORD), 1u);
  card.dma_in_use = used;
  bench.advance_to_deadline();
  settle();
  EXPECT_EQ(log(), "completes 100 OK\n");
}

}  // namespace
}  // namespace peal::test
