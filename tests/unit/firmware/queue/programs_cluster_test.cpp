// SPDX-License-Identifier: BSD-2-Clause
// Whole programs on a few real cards, over point-to-point: collectives that the library writes,
// with loss, late ranks, several starts outstanding, and a death.
#include "tests/unit/firmware/queue/programs_cluster.h"

namespace peal::test {
namespace {

constexpr uint64_t kIterations = 3;

constexpr size_t kSegment = 2 * CONFIG_MTU_BYTES + 100;

Programs::Make broadcast_from(uint32_t root, uint32_t ranks, size_t bytes) {
  return [=](const Programs::Place& place) {
    return host::chain_broadcast(place.rank, ranks, root, place.receive, bytes, kSegment,
                                 place.receives);
  };
}

// The root's buffer of that iteration.
void fill_root(Programs& programs, uint32_t root, uint64_t iteration) {
  auto& buffer = programs.receive(root);
  buffer.write(pattern_block(iteration, root, 0, buffer.size()));
}

class ChainBroadcastProgram : public ::testing::TestWithParam<uint32_t> {};

TEST_P(ChainBroadcastProgram, StartAfterStartReachesEverybody) {
  const uint32_t ranks = GetParam();
  const uint32_t root = ranks / 2;
  Programs programs(ranks, 5 * kSegment + 7, broadcast_from(root, ranks, 5 * kSegment + 7));
  for (uint64_t i = 0; i < kIterations; i++) {
    for (uint32_t rank = 0; rank < ranks; rank++) programs.clear(rank);
    fill_root(programs, root, i);
    programs.start_all(i);
    programs.expect_good(i + 1);
    for (uint32_t rank = 0; rank < ranks; rank++) {
      EXPECT_TRUE(programs.receive(rank) == programs.receive(root)) << rank;
    }
  }
}

TEST_P(ChainBroadcastProgram, SurvivesABadWire) {
  const uint32_t ranks = GetParam();
  for (uint64_t seed = 1; seed <= 4; seed++) {
    Random random(seed);
    Programs programs(ranks, 3 * kSegment, broadcast_from(0, ranks, 3 * kSegment));
    programs.cluster.fate = bad_wire(random);
    fill_root(programs, 0, seed);
    for (uint64_t i = 0; i < CONFIG_QUEUE_STARTS; i++) programs.start_all(i);
    programs.expect_good(CONFIG_QUEUE_STARTS);
    for (uint32_t rank = 0; rank < ranks; rank++) {
      EXPECT_TRUE(programs.receive(rank) == programs.receive(0)) << rank << ", seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ChainBroadcastProgram, ::testing::Values(1, 2, 3, 5, 8));

TEST(ChainBroadcastPrograms, NothingIsPutWhereTheHostHasNotStarted) {
  Programs programs(4, 3 * kSegment, broadcast_from(0, 4, 3 * kSegment));
  fill_root(programs, 0, 7);
  for (const uint32_t rank : {0u, 1u, 3u}) programs.start(rank, 0);
  EXPECT_FALSE(programs.cluster.run_until_completions(2, 50'000'000));
  const auto& late = programs.receive(2);
  EXPECT_EQ(std::count(late.begin(), late.end(), uint8_t{0xee}),
            static_cast<ptrdiff_t>(late.size()));
  EXPECT_TRUE(programs.receive(1) == programs.receive(0)) << "those before it are served";
  programs.start(2, 0);
  programs.expect_good(1);
  EXPECT_TRUE(programs.receive(3) == programs.receive(0));
}

TEST(ChainBroadcastPrograms, OneStartOfSeveralIterationsNeedsNoHostBetween) {
  Programs programs(4, 2 * kSegment, broadcast_from(1, 4, 2 * kSegment));
  fill_root(programs, 1, 7);
  const uint64_t before = programs.cluster.total(PEAL_COUNTER_STARTS);
  programs.start_all(0, 10);
  programs.expect_good(1);
  EXPECT_EQ(programs.cluster.total(PEAL_COUNTER_STARTS) - before, 4u);
  // Ten ready signals and ten times two puts cross each of the three edges.
  EXPECT_EQ(programs.cluster.total(PEAL_COUNTER_NOTICES), 10u * 3 * (1 + 2));
  EXPECT_TRUE(programs.receive(3) == programs.receive(1));
}

TEST(ChainBroadcastPrograms, ADeathEndsEverybodysStarts) {
  Programs programs(4, 3 * kSegment, broadcast_from(0, 4, 3 * kSegment));
  for (const uint32_t rank : {0u, 1u, 3u}) programs.start(rank, 0);
  for (const uint32_t rank : {0u, 1u, 3u}) programs.start(rank, 1);
  programs.cluster.settle();
  programs.cluster.silence(2);
  ASSERT_TRUE(programs.cluster.run_until_completions(3, 60'000'000'000));
  for (const uint32_t rank : {0u, 1u, 3u}) {
    const auto& ended = programs.cluster.completions(rank);
    ASSERT_EQ(ended.size(), 3u);
    // Ranks 0 and 1 may have done what they had to.
    EXPECT_EQ(status_text(ended.back().status), "PEER_DEAD") << rank;
    EXPECT_EQ(ended.back().failed_rank, 2u) << rank;
  }
}

// The start whose bytes a rank's card cannot read fails on that rank, and with it everybody's who
// is not past it; the next one is right.
class FailedStart : public ::testing::TestWithParam<std::tuple<uint32_t, uint32_t>> {};

TEST_P(FailedStart, IsEverybodysAndTheNextIsRight) {
  const auto [ranks, failing] = GetParam();
  size_t failed = 0;
  for (uint64_t seed = 1; seed <= 6; seed++) {
    Random random(seed);
    Programs programs(ranks, 3 * kSegment, broadcast_from(0, ranks, 3 * kSegment));
    ASSERT_TRUE(programs.looked_at);
    if (seed % 2 == 0) programs.cluster.fate = bad_wire(random);
    for (uint64_t i = 0; i < 4; i++) {
      for (uint32_t rank = 0; rank < ranks; rank++) programs.clear(rank);
      fill_root(programs, 0, seed * 10 + i);
      // (A program that fits stays on the card: all its DMA is of what it puts, or is given.)
      if (i % 2 == 0) programs.cluster.bench(failing).port.fault_dmas = {random.below(3), 1};
      programs.start_all(i);
      ASSERT_TRUE(programs.cluster.run_until_completions(i + 2)) << "somebody waits, " << i;
      programs.cluster.bench(failing).port.fault_dmas = {};
      for (uint32_t rank = 0; rank < ranks; rank++) {
        const Completion& ended = *programs.end_of(rank, Programs::cookie_of(i));
        if (ended.status == PEAL_STATUS_OK) {
          EXPECT_TRUE(programs.receive(rank) == programs.receive(0)) << rank << ", " << i;
          continue;
        }
        failed++;
        EXPECT_EQ(i % 2, 0u) << "a start that nobody failed";
        EXPECT_EQ(status_text(ended.status), "DMA_FAULT");
        const bool elsewhere = (ended.tag & PEAL_PROGRAM_ELSEWHERE) != 0;
        EXPECT_TRUE(!elsewhere || ended.failed_rank < ranks);
      }
    }
    EXPECT_EQ(programs.cluster.problems(), "");
  }
  EXPECT_GT(failed, 6 * ranks / 2);
}

INSTANTIATE_TEST_SUITE_P(Ranks, FailedStart,
                         ::testing::Values(std::tuple{2u, 0u}, std::tuple{5u, 2u},
                                           std::tuple{8u, 1u}, std::tuple{8u, 7u}));

TEST(FailedStarts, ALateHostHearsOfItWhenItStarts) {
  Programs programs(4, 3 * kSegment, broadcast_from(0, 4, 3 * kSegment));
  fill_root(programs, 0, 1);
  programs.cluster.bench(1).port.fault_dmas = {0, 1};
  for (const uint32_t rank : {0u, 1u, 2u}) programs.start(rank, 0);
  const auto others = [&] {
    return programs.cluster.completions(0).size() == 2 &&
           programs.cluster.completions(1).size() == 2 &&
           programs.cluster.completions(2).size() == 2;
  };
  ASSERT_TRUE(programs.cluster.run_until(others, 10'000'000'000));
  programs.start(3, 0);
  ASSERT_TRUE(programs.cluster.run_until_completions(2));
  const Completion& late = programs.cluster.completions(3).back();
  EXPECT_EQ(status_text(late.status), "DMA_FAULT");
  programs.start_all(1);
  ASSERT_TRUE(programs.cluster.run_until_completions(3));
  for (uint32_t rank = 0; rank < 4; rank++) {
    EXPECT_EQ(status_text(programs.cluster.completions(rank).back().status), "OK") << rank;
    EXPECT_TRUE(programs.receive(rank) == programs.receive(0)) << rank;
  }
}

// A put that tells nobody is spoken for by what is told behind it, be that a put or a signal:
// whichever card cannot reach the memory, nobody is told that all of it is there.
class SpokenFor : public ::testing::TestWithParam<std::tuple<uint32_t, bool, bool, size_t>> {};

TEST_P(SpokenFor, NobodyIsToldOfAPutWithAHole) {
  const auto [failing, posted, signals, bytes] = GetParam();
  const auto make = [=, posted = posted, signals = signals,
                     bytes = bytes](const Programs::Place& place) {
    Program program({.rank = place.rank, .ranks = 2, .posted = posted});
    const uint16_t told = program.add_counter(0);
    const Program::Notice all = {.counter = told};
    if (place.rank == 0) {
      program.put(1, place.send, bytes, place.receives[1], nullptr);
      if (signals) {
        program.signal(1, all);
      } else {
        const Program::Remote second = {place.receives[1].key, bytes};
        program.put(1, static_cast<uint8_t*>(place.send) + bytes, bytes, second, &all);
      }
    } else {
      program.wait(told, 1);
    }
    return program;
  };
  const auto whole = static_cast<ptrdiff_t>(signals ? bytes : 2 * bytes);
  uint32_t failed = 0;
  for (uint32_t seed = 1; seed <= 6; seed++) {
    Random random(seed);
    Programs programs(2, 2 * bytes, make);
    ASSERT_TRUE(programs.looked_at);
    programs.keep_posted();
    if (seed > 2) programs.cluster.fate = bad_wire(random);
    for (uint64_t i = 0; i < 4; i++) {
      programs.clear(1);
      programs.send(0).write(pattern_block(seed * 10 + i, 0, 0, 2 * bytes));
      if (i % 2 == 0) programs.cluster.bench(failing).port.fault_dmas = {seed % 2, 1};
      programs.start_all(i);
      ASSERT_TRUE(programs.cluster.run_until_completions(i + 2)) << "seed " << seed << ", " << i;
      programs.cluster.bench(failing).port.fault_dmas = {};
      const uint32_t ended = programs.cluster.completions(1).back().status;
      if (ended != PEAL_STATUS_OK) {
        EXPECT_EQ(status_text(ended), "DMA_FAULT");
        EXPECT_EQ(i % 2, 0u);
        ++failed;
        continue;
      }
      EXPECT_TRUE(std::equal(programs.receive(1).begin(), programs.receive(1).begin() + whole,
                             programs.send(0).begin()))
          << "seed " << seed << ", " << i;
    }
    EXPECT_EQ(programs.problems(), "");
  }
  EXPECT_GE(failed, 6u);
}

INSTANTIATE_TEST_SUITE_P(
    Puts, SpokenFor,
    ::testing::Combine(::testing::Values(0u, 1u), ::testing::Bool(), ::testing::Bool(),
                       ::testing::Values(size_t{64}, size_t{3 * CONFIG_MTU_BYTES})));

// Nor of one that never leaves its card, because no memory reaches as far as its place.
TEST(SpokenForByNobody, APutWithoutAPlaceIsNotIssued) {
  const auto make = [](const Programs::Place& place) {
    Program program({.rank = place.rank, .ranks = 2});
    const uint16_t told = program.add_counter(0);
    const Program::Notice all = {.counter = told};
    if (place.rank == 0) {
      const Program::Remote around = {place.receives[1].key, ~uint64_t{0} - 62};
      program.put(1, place.send, 64, around, nullptr);
      program.signal(1, all);
    } else {
      program.wait(told, 1);
    }
    return program;
  };
  Programs programs(2, 64, make);
  programs.start_all(0);
  ASSERT_TRUE(programs.cluster.run_until_completions(2));
  for (uint32_t rank = 0; rank < 2; rank++) {
    const Completion& ended = programs.cluster.completions(rank).back();
    EXPECT_EQ(status_text(ended.status), "BAD_PROGRAM") << rank;
    EXPECT_EQ(ended.tag & ~uint64_t{PEAL_PROGRAM_ELSEWHERE}, PEAL_PROGRAM_REASON_BOUNDS) << rank;
  }
  EXPECT_EQ(programs.problems(), "");
}

// What is told in the next iteration is no truer: a posted put may be refused when both ranks are
// there. (Rank 1 shows what it was told of before there is more.)
TEST(SpokenForLater, NobodyIsToldOfAPutWithAHole) {
  constexpr size_t kBytes = 64;
  const auto make = [](const Programs::Place& place) {
    Program program({.rank = place.rank, .ranks = 2, .posted = true});
    const uint16_t told = program.add_counter(1 - place.rank);
    const Program::Notice shown = {.counter = told};
    if (place.rank == 0) {
      program.signal(1, {.counter = told});
      program.wait(told, 1);
      program.put(1, place.send, kBytes, place.receives[1], nullptr);
    } else {
      program.wait(told, 1);
      program.put(0, place.receive, kBytes, place.receives[0], &shown);
    }
    return program;
  };
  uint32_t failed = 0;
  for (uint32_t seed = 1; seed <= 8; seed++) {
    Random random(seed);
    Programs programs(2, kBytes, make);
    ASSERT_TRUE(programs.looked_at);
    programs.keep_posted();
    if (seed > 2) programs.cluster.fate = bad_wire(random);
    bool well_before = false;
    std::vector<uint8_t> before;
    for (uint64_t i = 0; i < 8; i++) {
      const auto bytes = pattern_block(seed * 10 + i, 0, 0, kBytes);
      programs.send(0).write(bytes);
      if (i % 4 == 1) {
        programs.rest();  // the put before is there
        programs.cluster.bench(1).port.fault_dmas = {1, 1};
      }
      programs.start_all(i);
      ASSERT_TRUE(programs.cluster.run_until_completions(i + 2)) << "seed " << seed << ", " << i;
      bool well = true;
      for (uint32_t rank = 0; rank < 2; rank++) {
        const uint32_t ended = programs.cluster.completions(rank).back().status;
        if (ended == PEAL_STATUS_OK) continue;
        well = false;
        failed++;
        EXPECT_EQ(status_text(ended), "DMA_FAULT");
      }
      if (well && well_before) {
        EXPECT_TRUE(programs.receive(0) == before) << "seed " << seed << ", " << i;
      }
      well_before = well;
      before = bytes;
    }
    EXPECT_EQ(programs.problems(), "");
  }
  EXPECT_GE(failed, 8u);
}

// A program that another one has told, on its own card, is told of that one's puts.
class SpokenForBeside : public ::testing::TestWithParam<bool> {};

TEST_P(SpokenForBeside, NobodyIsToldOfAPutWithAHole) {
  const bool posted = GetParam();
  constexpr size_t kBytes = 64;
  Program named({.ranks = 2});
  named.set_name(Programs::kSecondName);
  const auto make = [&](const Programs::Place& place) {
    Program program({.rank = place.rank, .ranks = 2, .posted = posted});
    if (place.rank == 0) {
      program.put(1, place.send, kBytes, place.receives[1], nullptr);
      program.signal(0, {.program = &named, .counter = 0});
    }
    return program;
  };
  const auto make_second = [](const Programs::Place& place) {
    Program program({.rank = place.rank, .ranks = 2});
    const uint16_t told = program.add_counter(0);
    program.wait(told, 1);
    if (place.rank == 0) program.signal(1, {.counter = told});
    return program;
  };
  uint32_t failed = 0;
  for (uint32_t seed = 1; seed <= 8; seed++) {
    Random random(seed);
    Programs programs(2, kBytes, make, make_second);
    ASSERT_TRUE(programs.looked_at);
    programs.keep_posted();
    if (seed > 2) programs.cluster.fate = bad_wire(random);
    for (uint64_t i = 0; i < 6; i++) {
      programs.rest();  // nothing of another iteration comes late, to the same place
      programs.clear(1);
      programs.send(0).write(pattern_block(seed * 10 + i, 0, 0, kBytes));
      if (i % 3 == 1) programs.cluster.bench(1).port.fault_dmas = {0, 1};
      for (uint32_t rank = 0; rank < 2; rank++) programs.start_second(rank, i);
      programs.start_all(i);
      ASSERT_TRUE(programs.cluster.run_until_completions(2 * i + 4)) << seed << ", " << i;
      programs.cluster.bench(1).port.fault_dmas = {};
      const Completion& first = *programs.end_of(1, Programs::cookie_of(i));
      const Completion& second = *programs.end_of(1, Programs::cookie_of_second(i));
      if (second.status == PEAL_STATUS_OK) {
        EXPECT_TRUE(first.status != PEAL_STATUS_OK || programs.receive(1) == programs.send(0))
            << "seed " << seed << ", " << i;
        continue;
      }
      EXPECT_EQ(status_text(second.status), "DMA_FAULT");
      // (Who has posted is past it, so that the next one fails as well.)
      EXPECT_TRUE(i % 3 == 1 || (posted && i % 3 == 2)) << i;
      failed++;
    }
    EXPECT_EQ(programs.problems(), "");
  }
  EXPECT_GE(failed, 8u);
}

INSTANTIATE_TEST_SUITE_P(Posted, SpokenForBeside, ::testing::Bool());

// A rank that has copied to itself tells another one, when it is told that all is there.
TEST(SpokenForByItself, NobodyIsToldOfACopyWithAHole) {
  constexpr size_t kBytes = 3 * size_t{p2p::kChunkBytes};
  const auto make = [](const Programs::Place& place) {
    Program program({.rank = place.rank, .ranks = 2});
    const uint16_t told = program.add_counter(1);
    const Program::Notice all = {.counter = told};
    if (place.rank == 1) {
      program.put(1, place.send, kBytes, place.receives[1], nullptr);
      program.put(1, place.send, 0, place.receives[1], &all);
      program.wait(told, 1);
      program.signal(0, all);
    } else {
      program.wait(told, 1);
    }
    return program;
  };
  uint32_t failed = 0;
  for (uint32_t fault = 0; fault < 6; fault++) {  // of the copy's reads and writes
    Programs programs(2, kBytes, make);
    ASSERT_TRUE(programs.looked_at);
    for (uint64_t i = 0; i < 4; i++) {
      programs.clear(1);
      programs.send(1).write(pattern_block(fault * 10 + i, 0, 0, kBytes));
      if (i % 2 == 1) programs.cluster.bench(1).port.fault_dmas = {fault, 1};
      programs.start_all(i);
      ASSERT_TRUE(programs.cluster.run_until_completions(i + 2)) << fault << ", " << i;
      programs.cluster.bench(1).port.fault_dmas = {};
      const uint32_t ended = programs.cluster.completions(0).back().status;
      EXPECT_EQ(status_text(ended), i % 2 == 1 ? "DMA_FAULT" : "OK") << fault << ", " << i;
      if (ended == PEAL_STATUS_OK) {
        EXPECT_TRUE(programs.receive(1) == programs.send(1)) << fault << ", " << i;
      } else {
        failed++;
      }
    }
    EXPECT_EQ(programs.problems(), "");
  }
  EXPECT_EQ(failed, 12u);
}

class PairwiseAlltoallProgram
    : public ::testing::TestWithParam<std::tuple<uint32_t, uint32_t, size_t>> {};

TEST_P(PairwiseAlltoallProgram, EveryBlockReachesItsPlace) {
  const auto [ranks, window, block] = GetParam();
  const auto make = [ranks = ranks, window = window, block = block](const Programs::Place& place) {
    return host::pairwise_alltoall(place.rank, ranks, place.send, block, window, place.receives);
  };
  Random random(ranks * 100 + window);
  Programs programs(ranks, ranks * block, make);
  ASSERT_TRUE(programs.looked_at);
  for (uint64_t i = 0; i < kIterations; i++) {
    if (i > 0) programs.cluster.fate = bad_wire(random);
    for (uint32_t rank = 0; rank < ranks; rank++) {
      programs.clear(rank);
      for (uint32_t to = 0; to < ranks; to++) {
        const auto bytes = pattern_between(i, rank, to, 0, block);
        std::copy(bytes.begin(), bytes.end(),
                  programs.send(rank).begin() + static_cast<ptrdiff_t>(to * block));
      }
    }
    programs.start_all(i);
    programs.expect_good(i + 1);
    for (uint32_t rank = 0; rank < ranks; rank++) {
      std::vector<uint8_t> expected;
      for (uint32_t from = 0; from < ranks; from++) {
        const auto bytes = pattern_between(i, from, rank, 0, block);
        expected.insert(expected.end(), bytes.begin(), bytes.end());
      }
      EXPECT_TRUE(programs.receive(rank) == expected) << rank << ", iteration " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PairwiseAlltoallProgram,
                         ::testing::Values(std::tuple{2u, 1u, size_t{64}},
                                           std::tuple{3u, 2u, size_t{3000}},
                                           std::tuple{8u, 1u, size_t{700}},
                                           std::tuple{8u, 6u, size_t{20000}}));

// Rank 0 waits for a counter that another rank tells; in session mode that moves its pointer on.
// How rank 0 waits for a word.
enum class By : uint8_t { kWait, kPointer, kGate };

class AwaitedRank : public ::testing::TestWithParam<std::tuple<uint32_t, By>> {
 protected:
  static constexpr uint32_t kRanks = 8;
  static constexpr uint64_t kLong = 60'000'000'000;

  static Program program_of(uint32_t rank, uint32_t awaited, By by) {
    Program program(
        {.rank = rank,
         .ranks = kRanks,
         .mode = by == By::kPointer ? PEAL_PROGRAM_MODE_SESSION : PEAL_PROGRAM_MODE_TASKS});
    const uint16_t counter = program.add_counter(rank == 0 ? awaited : rank);
    const uint16_t own = program.add_counter(rank);
    if (rank == awaited) program.signal(0, {.counter = counter});
    if (rank == 0 && by == By::kWait) program.wait(counter, 1);
    if (rank == 0 && by == By::kGate) {
      program.put(0, nullptr, 0, {}, nullptr);
      program.gate(counter, 1);
    }
    program.signal(rank, {.counter = own});
    program.wait(own, 1);
    if (by == By::kPointer) program.schedule(rank == 0 ? 1 : program.count());
    return program;
  }

  Programs programs{kRanks, 64, [](const Programs::Place& place) {
                      const auto [awaited, by] = GetParam();
                      return program_of(place.rank, awaited, by);
                    }};
};

TEST_P(AwaitedRank, IsMissedWhereItsCardFallsSilent) {
  const uint32_t awaited = std::get<0>(GetParam());
  ASSERT_TRUE(programs.looked_at);
  programs.start(0, 0);
  programs.cluster.settle();
  programs.cluster.silence(awaited);
  const auto over = [&] { return programs.cluster.completions(0).size() == 2; };
  ASSERT_TRUE(programs.cluster.run_until(over, kLong));
  const Completion& ended = programs.cluster.completions(0).back();
  EXPECT_EQ(status_text(ended.status), "PEER_DEAD");
  EXPECT_EQ(ended.failed_rank, awaited);
}

// Its card answers, so it is late and not dead.
TEST_P(AwaitedRank, IsWaitedForWhereItsHostIsLate) {
  const uint32_t awaited = std::get<0>(GetParam());
  ASSERT_TRUE(programs.looked_at);
  programs.start(0, 0);
  const auto over = [&] { return programs.cluster.completions(0).size() == 2; };
  ASSERT_FALSE(programs.cluster.run_until(over, kLong));
  EXPECT_GT(programs.cluster.bench(0).counter(PEAL_COUNTER_SENT_LIVENESS), 0u);
  EXPECT_EQ(programs.cluster.total(PEAL_COUNTER_PEERS_DEAD), 0u);
  programs.start(awaited, 0);
  ASSERT_TRUE(programs.cluster.run_until(over, kLong));
  EXPECT_EQ(status_text(programs.cluster.completions(0).back().status), "OK");
  // Nobody is looked at when nothing is awaited any more.
  programs.cluster.settle();
  const uint64_t looks = programs.cluster.total(PEAL_COUNTER_SENT_LIVENESS);
  ASSERT_FALSE(programs.cluster.run_until([] { return false; }, kLong));
  EXPECT_EQ(programs.cluster.total(PEAL_COUNTER_SENT_LIVENESS), looks);
}

// 1 is a peer of rank 0's among eight, 3 is none.
INSTANTIATE_TEST_SUITE_P(Ranks, AwaitedRank,
                         ::testing::Combine(::testing::Values(1u, 3u),
                                            ::testing::Values(By::kWait, By::kPointer, By::kGate)));

}  // namespace
}  // namespace peal::test
