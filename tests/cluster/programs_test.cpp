// SPDX-License-Identifier: BSD-2-Clause
// Programs in virtual time: the pipelined broadcast of the Tofu2 paper and the pairwise all-to-all
// of the CORE-Direct paper, as the library writes them, on many cards, over bad wires and with late
// hosts; and that a card does them by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "emulator/common/random.h"
#include "hostlib/program_collectives.h"
#include "tests/cluster/spoils_a_payload.h"
#include "tools/peal-sim/program_hosts.h"

namespace peal::sim {
namespace {

ClusterOptions cards(uint32_t count, uint64_t seed = 1) {
  ClusterOptions options;
  options.cards = count;
  options.seed = seed;
  return options;
}

ProgramHosts::Make broadcast(uint32_t ranks, uint32_t root, size_t bytes, size_t segment) {
  return [=](const ProgramHosts::Place& place) {
    return host::chain_broadcast(place.rank, ranks, root, place.receive, bytes, segment,
                                 place.receives);
  };
}

ProgramHosts::Make alltoall(uint32_t ranks, size_t block, uint32_t window) {
  return [=](const ProgramHosts::Place& place) {
    return host::pairwise_alltoall(place.rank, ranks, place.send, block, window, place.receives);
  };
}

uint8_t byte_of(uint64_t salt, size_t i) {
  return static_cast<uint8_t>((i + salt) * 2654435761u >> 24);
}

void fill(uint8_t* to, size_t bytes, uint64_t salt) {
  for (size_t i = 0; i < bytes; i++) to[i] = byte_of(salt, i);
}

TEST(ProgramsInTime, TheChainBroadcastReachesEverybody) {
  constexpr size_t kBytes = 200'001;
  for (const uint32_t ranks : {2u, 4u, 12u, 32u}) {
    ProgramHosts hosts(cards(ranks), kBytes, broadcast(ranks, 1, kBytes, 16384));
    for (uint64_t start = 0; start < 3; start++) {
      fill(hosts.receive(1), kBytes, start);
      hosts.start_all();
      hosts.run();
      EXPECT_EQ(hosts.problems(), "");
      for (uint32_t rank = 0; rank < ranks; rank++) {
        EXPECT_EQ(std::memcmp(hosts.receive(rank), hosts.receive(1), kBytes), 0) << rank;
      }
    }
    EXPECT_EQ(hosts.leaks(), "");
  }
}

TEST(ProgramsInTime, AllToAllByPairsAtAllWindows) {
  constexpr size_t kBlock = 9000;
  for (const uint32_t ranks : {2u, 7u, 16u}) {
    for (const uint32_t window : {1u, 6u}) {
      const size_t bytes = ranks * kBlock;
      ProgramHosts hosts(cards(ranks), bytes, alltoall(ranks, kBlock, window));
      // The second time other bytes, so that what moved the first time alone is seen.
      for (const uint64_t passes : {1u, 2u}) {
        const auto salt = [passes](uint32_t from, uint32_t to) {
          return passes * 1'000'000 + from * 1000 + to;
        };
        for (uint32_t rank = 0; rank < ranks; rank++) {
          std::memset(hosts.receive(rank), 0, bytes);
          for (uint32_t to = 0; to < ranks; to++) {
            fill(hosts.send(rank) + to * kBlock, kBlock, salt(rank, to));
          }
        }
        hosts.start_all(passes);
        hosts.run();
        EXPECT_EQ(hosts.problems(), "");
        std::vector<uint8_t> expected(kBlock);
        for (uint32_t rank = 0; rank < ranks; rank++) {
          for (uint32_t from = 0; from < ranks; from++) {
            fill(expected.data(), kBlock, salt(from, rank));
            EXPECT_EQ(std::memcmp(hosts.receive(rank) + from * kBlock, expected.data(), kBlock), 0)
                << from << " to " << rank << " of " << ranks << ", " << passes << " at once";
          }
        }
      }
      EXPECT_EQ(hosts.leaks(), "");
    }
  }
}

TEST(ProgramsInTime, SurviveLossDuplicatesAndReordering) {
  constexpr size_t kBytes = 100'000;
  for (uint64_t seed = 1; seed <= 6; seed++) {
    ClusterOptions options = cards(8, seed);
    options.faults.loss = 0.05;
    options.faults.duplicate = 0.05;
    options.faults.reorder = 0.05;
    ProgramHosts hosts(options, kBytes, broadcast(8, 3, kBytes, 8192));
    fill(hosts.receive(3), kBytes, seed);
    hosts.start_all(4);
    hosts.run();
    EXPECT_EQ(hosts.problems(), "") << seed;
    for (uint32_t rank = 0; rank < 8; rank++) {
      EXPECT_EQ(std::memcmp(hosts.receive(rank), hosts.receive(3), kBytes), 0) << rank;
    }
  }
}

TEST(ProgramsInTime, LateHostsDelayTheirOwnPartAlone) {
  constexpr size_t kBytes = 50'000;
  constexpr TimeNs kLate = 50'000'000;
  ProgramHosts hosts(cards(8), kBytes, broadcast(8, 0, kBytes, 8192));
  fill(hosts.receive(0), kBytes, 1);
  for (uint32_t rank = 0; rank < 8; rank++) hosts.start(rank, 1, rank == 5 ? kLate : 0);
  while (hosts.cluster().now() < kLate / 2 && hosts.cluster().step()) {
  }
  const std::vector<uint8_t> untouched(kBytes, 0);
  EXPECT_EQ(std::memcmp(hosts.receive(4), hosts.receive(0), kBytes), 0);
  EXPECT_EQ(std::memcmp(hosts.receive(5), untouched.data(), kBytes), 0) << "it has not started";
  hosts.run();
  EXPECT_EQ(hosts.problems(), "");
  EXPECT_EQ(std::memcmp(hosts.receive(7), hosts.receive(0), kBytes), 0);
}

// A rank's start fails, because its memory is gone. Nobody waits for ever: who is not past it hears
// whose start it was, and why; whoever has a result has the right one; and when the memory is there
// again the next start is everybody's.
TEST(ProgramsInTime, AStartThatFailsOnOneRankFailsAndTheNextDoesNot) {
  constexpr size_t kBlock = 3000;
  uint64_t told = 0;
  uint64_t thrown_away = 0;
  for (uint64_t seed = 1; seed <= 24; seed++) {
    emulator::Random random(seed);
    const auto ranks = static_cast<uint32_t>(2 + random.below(seed % 4 == 0 ? 30 : 8));
    const auto failing = static_cast<uint32_t>(random.below(ranks));
    ClusterOptions options = cards(ranks, seed);
    if (seed % 3 != 0) {
      options.faults.loss = 0.05;
      options.faults.duplicate = 0.05;
      options.faults.reorder = 0.05;
    }
    ProgramHosts hosts(options, ranks * kBlock, alltoall(ranks, kBlock, 1 + ranks / 2));
    for (uint64_t i = 0; i < 5; i++) {
      for (uint32_t rank = 0; rank < ranks; rank++) {
        for (uint32_t to = 0; to < ranks; to++) {
          fill(hosts.send(rank) + to * kBlock, kBlock, i * 1'000'000 + rank * 1000 + to);
        }
      }
      const bool fails = i == 1 || i == 2;
      if (i == 1) hosts.lose_send(failing);
      if (i == 3) hosts.regain_send(failing);
      for (uint32_t rank = 0; rank < ranks; rank++) {
        hosts.start(rank, 1, random.below(4) == 0 ? 1 + random.below(2'000'000) : 0);
      }
      hosts.run();
      for (uint32_t rank = 0; rank < ranks; rank++) {
        const auto failures = hosts.take_failures(rank);
        EXPECT_LE(failures.size(), fails ? 1u : 0u) << "rank " << rank << ", seed " << seed;
        EXPECT_TRUE(rank != failing || failures.size() == (fails ? 1u : 0u)) << seed;
        for (const peal_completion& entry : failures) {
          const bool elsewhere = (entry.tag & PEAL_PROGRAM_ELSEWHERE) != 0;
          EXPECT_EQ(elsewhere, rank != failing);
          EXPECT_EQ(entry.status, PEAL_STATUS_BAD_PROGRAM);
          EXPECT_EQ(entry.tag & 0x7f, uint64_t{PEAL_PROGRAM_REASON_KEY});
          EXPECT_EQ(entry.failed_rank, elsewhere ? failing : PEAL_NO_RANK);
        }
        if (!failures.empty()) continue;
        std::vector<uint8_t> expected(kBlock);
        for (uint32_t from = 0; from < ranks; from++) {
          fill(expected.data(), kBlock, i * 1'000'000 + from * 1000 + rank);
          EXPECT_EQ(std::memcmp(hosts.receive(rank) + from * kBlock, expected.data(), kBlock), 0)
              << from << " to " << rank << ", start " << i << ", seed " << seed;
        }
      }
      EXPECT_EQ(hosts.problems(), "") << seed;
      if (HasFailure()) return;
    }
    told += hosts.cluster().counter(PEAL_COUNTER_STARTS_TOLD);
    thrown_away += hosts.cluster().counter(PEAL_COUNTER_THROWN_AWAY);
    EXPECT_EQ(hosts.leaks(), "") << seed;
  }
  EXPECT_GT(told, 24u);
  EXPECT_GT(thrown_away, 0u);
}

// Memory of a start that has failed is the user's again when that has been said, whatever others
// still put there: the rank's own goes in the middle of a start.
TEST(ProgramsInTime, NothingIsWrittenBehindAStartThatFailed) {
  constexpr size_t kBlock = 20'000;
  constexpr size_t kBytes = 6 * kBlock;
  constexpr uint32_t kRanks = 6;
  uint32_t failed = 0;
  for (uint64_t seed = 1; seed <= 30; seed++) {
    emulator::Random random(seed);
    ClusterOptions options = cards(kRanks, seed);
    options.faults.loss = 0.05;
    options.faults.reorder = 0.1;
    ProgramHosts hosts(options, kBytes, alltoall(kRanks, kBlock, 1));
    hosts.on_completion_of = [&](uint32_t rank, const peal_completion& entry) {
      if (entry.status != PEAL_STATUS_OK) std::memset(hosts.receive(rank), 0xd1, kBytes);
    };
    hosts.start_all();
    const TimeNs goes = hosts.cluster().now() + random.below(400'000);
    while (hosts.cluster().now() < goes && hosts.cluster().step()) {
    }
    while (!hosts.lose_send(2) && hosts.cluster().step()) {  // while it is being read it stays
    }
    hosts.run();
    (void)hosts.leaks();
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      if (hosts.take_failures(rank).empty()) continue;
      failed++;
      const uint8_t* memory = hosts.receive(rank);
      EXPECT_EQ(std::count(memory, memory + kBytes, uint8_t{0xd1}), ptrdiff_t{kBytes})
          << "rank " << rank << ", seed " << seed;
    }
  }
  EXPECT_GT(failed, 60u);
}

// A small all-to-all, whose two programs are started in turn, each rank one start after the other,
// as soon as it likes. Nobody says that its collective buffers are ready; so who fails may not go
// on before all have begun what it has failed.
class StartsInTurn {
 public:
  StartsInTurn(uint32_t ranks, uint64_t seed, uint32_t failing, bool loses, bool gathers)
      : ranks_(ranks),
        failing_(failing),
        gathers_(gathers),
        random_(seed),
        hosts_(options(ranks, seed, loses), {.bytes = 3 * side(ranks)},
               [ranks, gathers](const ProgramHosts::Place& place) {
                 return both(gathers ? host::collected_allgather : host::collected_alltoall, ranks,
                             place);
               }) {
    hosts_.on_completion_of = [this](uint32_t rank, const peal_completion& entry) {
      over(rank, entry);
    };
  }
  void run() {
    for (uint32_t rank = 0; rank < ranks_; rank++) begin(rank);
    hosts_.run();
    for (uint32_t rank = 0; rank < ranks_; rank++) {
      EXPECT_EQ(begun_[rank], kStarts) << "rank " << rank;
      (void)hosts_.take_failures(rank);
    }
    EXPECT_EQ(hosts_.problems(), "");
    EXPECT_EQ(hosts_.leaks(), "");
  }
  uint32_t good = 0;
  uint32_t told = 0;

 private:
  static constexpr uint64_t kStarts = 12;
  static constexpr size_t kBlock = 64;
  static size_t side(uint32_t ranks) { return ranks * kBlock; }

  static ClusterOptions options(uint32_t ranks, uint64_t seed, bool loses) {
    ClusterOptions made = cards(ranks, seed);
    if (!loses) return made;
    made.faults.loss = 0.05;
    made.faults.duplicate = 0.03;
    made.faults.reorder = 0.1;
    return made;
  }
  using Collect = host::Program (*)(const host::Collecting&);
  static host::Programs both(Collect collect, uint32_t ranks, const ProgramHosts::Place& place) {
    host::Programs programs;
    auto* receive = static_cast<uint8_t*>(place.receive);
    for (uint32_t turn = 0; turn < 2; turn++) {
      host::Collecting own;
      own.rank = place.rank;
      own.ranks = ranks;
      own.send = static_cast<const uint8_t*>(place.send);
      own.block_bytes = kBlock;
      own.own = place.receives[place.rank];
      own.collective = receive + (1 + turn) * side(ranks);
      own.collectives = place.receives;
      for (auto& remote : own.collectives) remote.offset += (1 + turn) * side(ranks);
      programs.push_back(std::make_unique<host::Program>(collect(own)));
    }
    return programs;
  }
  // Of an allgather one block is for all.
  [[nodiscard]] uint64_t pattern(uint64_t start, uint32_t from, uint32_t to) const {
    return start * 1'000'000 + from * 1000 + (gathers_ ? 0 : to);
  }
  // Two one after the other: both programs have been fetched again with the key that is new.
  static bool fails(uint64_t start) { return start % 5 == 3 || start % 5 == 4; }

  void begin(uint32_t rank) {
    const uint64_t start = begun_[rank]++;
    if (rank == failing_ && fails(start) && !fails(start - 1)) hosts_.lose_send(rank);
    if (rank == failing_ && !fails(start) && start > 0 && fails(start - 1)) {
      hosts_.regain_send(rank);
    }
    for (uint32_t to = 0; to < (gathers_ ? 1 : ranks_); to++) {
      fill(hosts_.send(rank) + to * kBlock, kBlock, pattern(start, rank, to));
    }
    const uint64_t late = random_.below(3) == 0 ? random_.below(400'000) : 0;
    hosts_.start_one(rank, start % 2, 1 + late);
  }
  void over(uint32_t rank, const peal_completion& entry) {
    const uint64_t start = begun_[rank] - 1;
    if (entry.status == PEAL_STATUS_OK) {
      good++;
      std::vector<uint8_t> expected(kBlock);
      for (uint32_t from = 0; from < ranks_; from++) {
        fill(expected.data(), kBlock, pattern(start, from, rank));
        EXPECT_EQ(std::memcmp(hosts_.receive(rank) + from * kBlock, expected.data(), kBlock), 0)
            << from << " to " << rank << ", start " << start;
      }
    } else {
      EXPECT_TRUE(fails(start)) << "rank " << rank << ", start " << start;
      told += (entry.tag & PEAL_PROGRAM_ELSEWHERE) != 0 ? 1 : 0;
    }
    if (begun_[rank] < kStarts) begin(rank);
  }

  uint32_t ranks_;
  uint32_t failing_;
  bool gathers_;
  emulator::Random random_;
  std::map<uint32_t, uint64_t> begun_;
  ProgramHosts hosts_;
};

TEST(ProgramsInTime, ProgramsInTurnSurviveStartsThatFail) {
  uint32_t good = 0;
  uint32_t told = 0;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    const auto ranks = static_cast<uint32_t>(2 + seed % 9);
    StartsInTurn starts(ranks, seed, static_cast<uint32_t>(seed % ranks), seed % 2 == 0,
                        seed % 3 == 0);
    starts.run();
    if (::testing::Test::HasFailure()) FAIL() << "seed " << seed;
    good += starts.good;
    told += starts.told;
  }
  EXPECT_GT(told, 40u * 4);
  EXPECT_GT(good, 40u * 8 * 2);
}

// The same seed gives the same run.
TEST(ProgramsInTime, AreDeterministic) {
  const auto hash = [] {
    ClusterOptions options = cards(6, 9);
    options.faults.loss = 0.02;
    ProgramHosts hosts(options, 6 * 4000, alltoall(6, 4000, 3));
    hosts.start_all(2);
    hosts.run();
    return hosts.cluster().trace_hash();
  };
  EXPECT_EQ(hash(), hash());
}

// A start of ten iterations takes no more entries than one, and less time than ten starts that each
// wait for their hosts.
TEST(ProgramsInTime, IterationsNeedNoHost) {
  constexpr size_t kBytes = 20'000;
  ProgramHosts once(cards(4), kBytes, broadcast(4, 0, kBytes, 4096));
  TimeNs single = 0;
  for (int i = 0; i < 10; i++) {
    once.start_all();
    single += once.run();
  }
  ProgramHosts often(cards(4), kBytes, broadcast(4, 0, kBytes, 4096));
  const uint64_t before = often.cluster().counter(PEAL_COUNTER_STARTS);
  often.start_all(10);
  const TimeNs together = often.run();
  EXPECT_EQ(often.cluster().counter(PEAL_COUNTER_STARTS) - before, 4u);
  EXPECT_EQ(often.problems(), "");
  EXPECT_LT(together, single);
}

// What a card writes to a ring is a start's end once, and whoever else's it is, a problem.
TEST(ProgramsInTime, ACompletionOfNothingIsAProblem) {
  constexpr size_t kBytes = 1000;
  const auto problems_of = [](uint64_t cookie, bool of_a_rank) {
    ProgramHosts hosts(cards(2), kBytes, broadcast(2, 0, kBytes, kBytes));
    uint32_t context = 0;  // rank 0's
    if (!of_a_rank) {
      EXPECT_EQ(hosts.cluster().open_context(0, &context), PEAL_STATUS_OK);
    }
    hosts.start_all();
    peal_submission of_no_group{};  // ends at once
    of_no_group.cookie = cookie;
    EXPECT_TRUE(hosts.cluster().submit(0, context, of_no_group));
    hosts.run();
    return hosts.problems();
  };
  EXPECT_EQ(problems_of(77, true), "rank 0: a completion of nothing, or a second one\n");
  // (The one that looked at the program, and is over.)
  EXPECT_EQ(problems_of(0, true), "rank 0: a completion of nothing, or a second one\n");
  EXPECT_EQ(problems_of(77, false), "card 0: a completion for context 1, which is no rank's\n");
}

// The start's cookie, and nothing else of it.
TEST(ProgramsInTime, ACompletionThatDiffersFromItsStartIsAProblem) {
  constexpr size_t kBytes = 1000;
  ProgramHosts hosts(cards(2), kBytes, broadcast(2, 0, kBytes, kBytes));
  peal_submission of_no_group{};
  of_no_group.cookie = 1;  // that of the start below, which it comes before
  EXPECT_TRUE(hosts.cluster().submit(0, 0, of_no_group));
  hosts.start_all();
  hosts.run();
  EXPECT_NE(hosts.problems().find("rank 0: a completion differs from its start\n"),
            std::string::npos)
      << hosts.problems();
}

TEST(ProgramsInTime, ThatNeverEndAreStuckAndNothingElse) {
  constexpr size_t kBytes = 1000;
  for (const bool whole : {true, false}) {
    ClusterOptions options = cards(2);
    options.timeouts.dead_ns = 1000 * kSecond;
    options.faults.loss = whole ? 0 : 1;
    ProgramHosts hosts(options, kBytes, broadcast(2, 0, kBytes, kBytes));
    hosts.start_all();
    hosts.run();
    EXPECT_EQ(hosts.only_stuck(), !whole) << hosts.problems();
    EXPECT_EQ(hosts.problems().empty(), whole);
  }
}

// What the cluster sees by itself is not lost where nobody else looks.
TEST(ProgramsInTime, AViolationIsAProblem) {
  constexpr size_t kBytes = 1000;
  ProgramHosts hosts(cards(2), kBytes, broadcast(2, 0, kBytes, kBytes));
  SpoilsAPayload spoiler;
  ProgramHosts spoilt(cards(2), kBytes, broadcast(2, 0, kBytes, kBytes), &spoiler);
  for (ProgramHosts* each : {&hosts, &spoilt}) {
    each->start_all();
    each->run();
    (void)each->leaks();
  }
  EXPECT_EQ(hosts.problems(), "");
  EXPECT_NE(spoilt.problems().find("a payload was written after it was sent"), std::string::npos)
      << spoilt.problems();
}

TimeNs chain_time(const CostModel& costs, uint32_t ranks, size_t bytes, size_t segment) {
  ClusterOptions options = cards(ranks);
  options.costs = costs;
  ProgramHosts hosts(options, bytes, broadcast(ranks, 0, bytes, segment));
  hosts.start_all();
  return hosts.run();
}

constexpr size_t kChainBytes = 1 << 20;
constexpr size_t kChainSegment = 32768;

// From one card's memory to the next one's: read, sent, written, and what each packet costs.
TimeNs hop_time(const CostModel& costs, size_t bytes) {
  const uint64_t byte_ps = 2 * costs.dma_byte_gap_ps + costs.byte_gap_ps;
  const TimeNs latencies = 2 * costs.dma_latency_ns + costs.wire_latency_ns;
  const TimeNs events = 2 * (costs.packet_ns + costs.send_ns + costs.dma_event_ns);
  return bytes * byte_ps / 1000 + latencies + events;
}

// Segments go down the chain behind each other: each further card costs a segment, not a message.
TEST(ProgramsInTime, TheChainIsPipelined) {
  const CostModel costs;
  const TimeNs three = chain_time(costs, 3, kChainBytes, kChainSegment);
  const TimeNs twelve = chain_time(costs, 12, kChainBytes, kChainSegment);
  const TimeNs hop = (twelve - three) / 9;
  EXPECT_LT(hop, hop_time(costs, kChainSegment));
  EXPECT_GT(hop, kChainSegment * costs.byte_gap_ps / 1000) << "it is stored and then forwarded";
  EXPECT_GT(chain_time(costs, 12, kChainBytes, kChainBytes),
            8 * chain_time(costs, 2, kChainBytes, kChainBytes))
      << "in one segment nothing is";
}

// What limits a chain of three or more is the DMA engine of a card in the middle, which writes
// every byte and reads it: where both go at once, it is the link again, and the third card costs
// little more than a segment.
TEST(ProgramsInTime, TheChainIsAsFastAsAMiddleCardsMemory) {
  CostModel costs;
  const auto more_than_two = [&] {
    const TimeNs two = chain_time(costs, 2, kChainBytes, kChainSegment);
    const TimeNs three = chain_time(costs, 3, kChainBytes, kChainSegment);
    EXPECT_GT(three, two);
    return three - two;
  };
  const TimeNs hop = hop_time(costs, kChainSegment);
  const TimeNs memory = kChainBytes * (2 * costs.dma_byte_gap_ps - costs.byte_gap_ps) / 1000;
  const TimeNs one_way = more_than_two();
  EXPECT_GT(one_way, memory / 2);
  EXPECT_LT(one_way, memory + hop);
  costs.dma_duplex = 1;
  EXPECT_LT(more_than_two(), 2 * hop);
}

}  // namespace
}  // namespace peal::sim
