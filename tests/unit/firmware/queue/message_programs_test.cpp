// SPDX-License-Identifier: BSD-2-Clause
// Programs that send and receive: on a bad wire, behind starts that fail, and of which iteration.
#include "tests/unit/firmware/queue/programs_cluster.h"

namespace peal::test {
namespace {

// Each rank sends to the next and receives from the one before, by tag.
TEST(MessagePrograms, ARingOfSendsAndReceives) {
  constexpr uint32_t kRanks = 5;
  constexpr size_t kBytes = 3 * CONFIG_MTU_BYTES;
  const auto make = [](const Programs::Place& place) {
    Program program({.rank = place.rank, .ranks = kRanks});
    const uint16_t over = program.add_counter(place.rank);
    const uint32_t before = (place.rank + kRanks - 1) % kRanks;
    program.receive(before, 40 + before, place.receive, kBytes, over);
    program.send((place.rank + 1) % kRanks, 40 + place.rank, place.send, kBytes, over);
    program.wait(over, 2);
    return program;
  };
  Programs programs(kRanks, kBytes, make);
  Random random(5);
  programs.cluster.fate = bad_wire(random);
  for (uint32_t rank = 0; rank < kRanks; rank++) {
    programs.send(rank).write(pattern_block(1, rank, 0, kBytes));
  }
  for (uint64_t i = 0; i < CONFIG_QUEUE_STARTS; i++) programs.start_all(i);
  programs.expect_good(CONFIG_QUEUE_STARTS);
  for (uint32_t rank = 0; rank < kRanks; rank++) {
    EXPECT_TRUE(programs.receive(rank) == programs.send((rank + kRanks - 1) % kRanks)) << rank;
  }
}

// Whoever fails leaves others with halves of messages, which end; the next start has its own.
TEST(MessagePrograms, ARingThatFailsIsARingAgain) {
  constexpr uint32_t kRanks = 5;
  constexpr size_t kBytes = 3 * CONFIG_MTU_BYTES;
  const auto make = [](const Programs::Place& place) {
    Program program({.rank = place.rank, .ranks = kRanks});
    const uint16_t over = program.add_counter(place.rank);
    const uint32_t before = (place.rank + kRanks - 1) % kRanks;
    // Rank 2 receives nothing before its put to rank 0 is over.
    if (place.rank == 2) {
      program.put(0, place.send, 64, {.key = place.receives[0].key, .offset = 0}, nullptr, over);
      program.wait(over, 1);
    }
    const uint64_t first = place.rank == 2 ? 1 : 0;
    program.receive(before, 40, place.receive, kBytes, over);
    program.send((place.rank + 1) % kRanks, 40, place.send, place.rank == 1 ? 100 : kBytes, over);
    program.wait(over, first + 2);
    return program;
  };
  uint64_t thrown_away = 0;
  for (uint64_t seed = 1; seed <= 8; seed++) {
    Programs programs(kRanks, kBytes, make);
    Random random(seed);
    if (seed % 2 == 0) programs.cluster.fate = bad_wire(random);
    for (uint64_t i = 0; i < 4; i++) {
      for (uint32_t rank = 0; rank < kRanks; rank++) {
        programs.clear(rank);
        programs.send(rank).write(pattern_block(i, rank, 0, kBytes));
      }
      const bool fails = i % 2 == 0;
      if (fails) programs.cluster.bench(2).port.fault_dmas = {0, 1};
      programs.start_all(i);
      ASSERT_TRUE(programs.cluster.run_until_completions(i + 2)) << "seed " << seed << ", " << i;
      programs.cluster.bench(2).port.fault_dmas = {};
      for (uint32_t rank = 0; rank < kRanks; rank++) {
        const std::string ended = status_text(programs.cluster.completions(rank).back().status);
        if (!fails) {
          EXPECT_EQ(ended, "OK") << rank;
          const auto& sent = programs.send((rank + kRanks - 1) % kRanks);
          EXPECT_TRUE(std::equal(sent.begin() + 64, sent.begin() + 100,
                                 programs.receive(rank).begin() + 64))
              << rank << ", seed " << seed << ", " << i;
        } else if (rank == 2) {
          EXPECT_EQ(ended, "DMA_FAULT");
        }
      }
    }
    EXPECT_EQ(programs.cluster.problems(), "");
    thrown_away += programs.cluster.total(PEAL_COUNTER_THROWN_AWAY);
  }
  EXPECT_GT(thrown_away, 8u);
}

// A rank that has failed its start is in the next one before the other hears of it: what it sends
// there is not for the one that the other is in.
TEST(MessagePrograms, AReceiveTakesNothingOfAnotherIteration) {
  const auto make = [](const Programs::Place& place) {
    Program program({.rank = place.rank, .ranks = 2});
    const uint16_t over = program.add_counter(place.rank);
    if (place.rank == 0) {
      program.put(0, place.send, 64, {.key = place.receives[0].key, .offset = 64}, nullptr, over);
      program.wait(over, 1);
      program.send(1, 7, place.send, 64, over);
      program.wait(over, 2);
    } else {
      program.receive(0, 7, place.receive, 64, over);
      program.wait(over, 1);
    }
    return program;
  };
  Programs programs(2, 128, make);
  ASSERT_TRUE(programs.looked_at);
  programs.send(0).write(pattern_block(1, 0, 0, 128));
  // The news come behind the message.
  uint32_t lost = 0;
  bool announced = false;
  programs.cluster.fate = [&](const Frame& frame) {
    announced = announced || frame.header.type == PEAL_PACKET_ANNOUNCE;
    const bool loses = frame.header.type == PEAL_PACKET_FAILURE && !announced;
    if (loses) lost++;
    return loses ? 0u : 1u;
  };
  programs.cluster.bench(0).port.fault_dmas = {0, 1};
  for (uint64_t i = 0; i < 2; i++) programs.start_all(i);
  ASSERT_TRUE(programs.cluster.run_until_completions(3));
  EXPECT_GT(lost, 0u);
  for (uint32_t rank = 0; rank < 2; rank++) {
    const Completion* failed = programs.end_of(rank, Programs::cookie_of(0));
    const Completion* good = programs.end_of(rank, Programs::cookie_of(1));
    ASSERT_TRUE(failed != nullptr && good != nullptr) << rank;
    EXPECT_EQ(failed->status, unsigned{PEAL_STATUS_DMA_FAULT}) << rank;
    EXPECT_EQ(good->status, unsigned{PEAL_STATUS_OK}) << rank;
  }
  const auto& sent = programs.send(0);
  EXPECT_TRUE(std::equal(sent.begin(), sent.begin() + 64, programs.receive(1).begin()));
  EXPECT_EQ(programs.problems(), "");
}

// What another program sends is taken whichever iteration either is in.
TEST(MessagePrograms, AReceiveTakesWhatAnotherProgramSends) {
  const auto send_one = [](const Programs::Place& place) {
    Program program({.rank = place.rank, .ranks = 2});
    const uint16_t over = program.add_counter(place.rank);
    if (place.rank == 0) {
      program.send(1, 7, place.send, 64, over);
    } else {
      program.signal(place.rank, {.counter = over});
    }
    program.wait(over, 1);
    return program;
  };
  const auto receive_two = [](const Programs::Place& place) {
    Program program({.rank = place.rank, .ranks = 2});
    const uint16_t over = program.add_counter(place.rank);
    for (uint64_t i = 0; i < 2; i++) {
      if (place.rank == 1) {
        program.receive(0, 7, static_cast<uint8_t*>(place.receive) + 64 * i, 64, over);
      } else {
        program.signal(place.rank, {.counter = over});
      }
    }
    program.wait(over, 2);
    return program;
  };
  Programs programs(2, 128, send_one, receive_two);
  ASSERT_TRUE(programs.looked_at);
  programs.send(0).write(pattern_block(1, 0, 0, 128));
  for (uint32_t rank = 0; rank < 2; rank++) programs.start_second(rank, 0);
  for (uint64_t i = 0; i < 2; i++) programs.start_all(i);
  ASSERT_TRUE(programs.cluster.run_until_completions(5));
  expect_all(programs.cluster, 5, "OK");
  for (ptrdiff_t at = 0; at < 128; at += 64) {
    const auto& sent = programs.send(0);
    EXPECT_TRUE(std::equal(sent.begin(), sent.begin() + 64, programs.receive(1).begin() + at));
  }
}

// What the owner of a memory refuses ends the start, at the descriptor.
TEST(MessagePrograms, AWrongRemoteKeyIsToldByItsOwner) {
  const auto make = [](const Programs::Place& place) {
    Program program({.rank = place.rank, .ranks = 2});
    const uint16_t own = program.add_counter(place.rank);
    program.signal(place.rank, {.counter = own});
    if (place.rank == 0) {
      program.put(1, place.send, 8, {.key = place.receives[1].key ^ 0x10000, .offset = 0}, nullptr);
    }
    return program;
  };
  Programs programs(2, 64, make);
  ASSERT_TRUE(programs.looked_at);
  programs.start_all(0);
  ASSERT_TRUE(programs.cluster.run_until_completions(2));
  EXPECT_EQ(status_text(programs.cluster.completions(0).back().status), "BAD_KEY");
  EXPECT_EQ(programs.cluster.completions(0).back().failed_rank, 1u);
  EXPECT_EQ(status_text(programs.cluster.completions(1).back().status), "OK");
  EXPECT_EQ(programs.cluster.problems(), "");
}

}  // namespace
}  // namespace peal::test
