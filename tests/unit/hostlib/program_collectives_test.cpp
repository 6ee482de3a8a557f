// SPDX-License-Identifier: BSD-2-Clause
// Collectives as programs, carried out by a model in orders that seeds draw: what must come out
// does, start after start, and nobody runs further ahead than a card remembers.
#include "hostlib/program_collectives.h"

#include <gtest/gtest.h>

#include "hostlib/program_check.h"
#include "tests/support/program_model.h"

namespace peal::host {
namespace {

using test::ProgramModel;

constexpr uint64_t kSeeds = 40;

TEST(ChainBroadcast, TheRootsBytesReachEverybody) {
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    const auto ranks = static_cast<uint32_t>(1 + seed % 7);
    const auto root = static_cast<uint32_t>(seed / 7 % ranks);
    const size_t bytes = seed % 5 * 33;
    std::vector<std::vector<uint8_t>> buffers(ranks, std::vector<uint8_t>(bytes + 1, 0xee));
    for (size_t i = 0; i < bytes; i++) buffers[root][i] = static_cast<uint8_t>(i * 7 + seed);
    ProgramModel model(seed);
    std::vector<Program::Remote> remotes;
    for (auto& buffer : buffers) remotes.push_back(model.add_memory(buffer.data()));
    std::vector<Program> programs;
    for (uint32_t rank = 0; rank < ranks; rank++) {
      programs.push_back(
          chain_broadcast(rank, ranks, root, buffers[rank].data(), bytes, 16, remotes));
    }
    for (const Program& program : programs) model.add_program(program);
    EXPECT_TRUE(model.run(3)) << seed << ": " << model.text();
    for (const auto& buffer : buffers) EXPECT_EQ(buffer, buffers[root]) << seed;
    // The root alone waits for nothing but its neighbour.
    EXPECT_LE(model.farthest_ahead(), 1u);
  }
}

TEST(PairwiseAlltoall, EveryBlockReachesItsPlaceAtAllWindows) {
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    const auto ranks = static_cast<uint32_t>(1 + seed % 8);
    const auto window = static_cast<uint32_t>(1 + seed % 3);
    const size_t block = seed % 4 * 5;
    const auto block_of = [&](uint32_t from, uint32_t to) {
      return static_cast<uint8_t>(seed + from * 16 + to);
    };
    std::vector<std::vector<uint8_t>> sends(ranks);
    std::vector<std::vector<uint8_t>> receives(ranks, std::vector<uint8_t>(ranks * block, 0xee));
    ProgramModel model(seed);
    std::vector<Program::Remote> remotes;
    for (uint32_t rank = 0; rank < ranks; rank++) {
      for (uint32_t to = 0; to < ranks; to++) {
        sends[rank].insert(sends[rank].end(), block, block_of(rank, to));
      }
      remotes.push_back(model.add_memory(receives[rank].data()));
    }
    std::vector<Program> programs;
    for (uint32_t rank = 0; rank < ranks; rank++) {
      programs.push_back(
          pairwise_alltoall(rank, ranks, sends[rank].data(), block, window, remotes));
    }
    for (const Program& program : programs) model.add_program(program);
    EXPECT_TRUE(model.run(3)) << seed << ": " << model.text();
    for (uint32_t rank = 0; rank < ranks; rank++) {
      for (uint32_t from = 0; from < ranks; from++) {
        for (size_t i = 0; i < block; i++) {
          ASSERT_EQ(receives[rank][from * block + i], block_of(from, rank)) << seed;
        }
      }
    }
    EXPECT_LE(model.farthest_ahead(), 1u);
  }
}

// All blocks between the others are there, where cards hold the puts to the late one.
TEST(PairwiseAlltoall, WhoIsLateHoldsBackItsOwnBlocksAlone) {
  constexpr uint32_t kRanks = 6;
  for (uint32_t late = 0; late < kRanks; late++) {
    std::vector<std::vector<uint8_t>> sends;
    std::vector<std::vector<uint8_t>> receives(kRanks, std::vector<uint8_t>(kRanks, 0xee));
    ProgramModel model(1 + 4 * late);  // one is held at a time
    std::vector<Program::Remote> remotes;
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      sends.emplace_back(kRanks, static_cast<uint8_t>(rank));
      remotes.push_back(model.add_memory(receives[rank].data()));
    }
    std::vector<Program> programs;
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      programs.push_back(pairwise_alltoall(rank, kRanks, sends[rank].data(), 1, kRanks, remotes));
    }
    for (const Program& program : programs) model.add_program(program);
    model.hold(late);
    EXPECT_FALSE(model.run(1));
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      for (uint32_t from = 0; from < kRanks; from++) {
        const bool there = rank != late && from != late;
        EXPECT_EQ(receives[rank][from], there ? from : 0xee)
            << late << ": " << rank << ", " << from;
      }
    }
    model.let_go(late);
    EXPECT_TRUE(model.run(1)) << model.text();
  }
}

TEST(PairwiseAlltoall, AsManyPutsAsTheWindowAreUnderWay) {
  const std::vector<Program::Remote> remotes(8);
  const Program program = pairwise_alltoall(0, 8, reinterpret_cast<void*>(0x1000), 8, 3, remotes);
  const uint16_t sent = 8;  // behind arrivals and seven others
  uint64_t over = 0;
  uint64_t under_way = 0;
  uint64_t most = 0;
  for (const Program::Step& step : program.steps()) {
    if (step.descriptor.opcode == PEAL_PROGRAM_WAIT && step.descriptor.counter == sent) {
      over = step.descriptor.threshold;
    }
    if (step.descriptor.opcode != PEAL_PROGRAM_PUT || step.descriptor.done != sent) continue;
    under_way++;
    most = std::max(most, under_way - over);
  }
  EXPECT_EQ(under_way, 7u);
  EXPECT_EQ(most, 3u);
}

// --- those of persistent requests: all numbers of ranks, in orders that seeds draw ---

constexpr uint32_t kRanksMost = 20;
constexpr uint64_t kOrders = 6;

uint8_t byte_of(uint64_t seed, uint32_t from, uint32_t to, size_t i) {
  return static_cast<uint8_t>(seed * 31 + from * 57 + to * 101 + i * 7 + 1);
}

// All ranks' programs, once, from memory that nobody has written yet; then twice more, to see how
// far anybody runs ahead.
void expect_runs(ProgramModel& model, const std::vector<Program>& programs,
                 const std::string& what) {
  for (const Program& program : programs) {
    EXPECT_EQ(text_of(check_program(program)).find("wrong"), std::string::npos)
        << what << ": " << text_of(check_program(program));
    model.add_program(program);
  }
  EXPECT_TRUE(model.run(1)) << what << ": " << model.text();
}
void expect_stays_near(ProgramModel& model, const std::string& what) {
  EXPECT_TRUE(model.run(3)) << what << ": " << model.text();
  EXPECT_LE(model.farthest_ahead(), 1u) << what;
}

std::string name_of(uint32_t ranks, uint64_t seed, uint64_t more = 0) {
  return std::to_string(ranks) + " ranks, seed " + std::to_string(seed) + ", " +
         std::to_string(more);
}

TEST(BinomialBroadcast, TheRootsBytesReachEverybody) {
  for (uint32_t ranks = 1; ranks <= kRanksMost; ranks++) {
    for (uint32_t root = 0; root < ranks; root++) {
      const size_t bytes = (ranks + root) % 4 == 0 ? 0 : 13 * root + 1;
      const std::string what = name_of(ranks, root, bytes);
      std::vector<std::vector<uint8_t>> buffers(ranks, std::vector<uint8_t>(bytes + 1, 0xee));
      for (size_t i = 0; i < bytes; i++) buffers[root][i] = byte_of(ranks, root, 0, i);
      ProgramModel model(ranks * 100 + root);
      std::vector<Program::Remote> remotes;
      for (auto& buffer : buffers) remotes.push_back(model.add_memory(buffer.data()));
      std::vector<Program> programs;
      for (uint32_t rank = 0; rank < ranks; rank++) {
        programs.push_back(
            binomial_broadcast(rank, ranks, root, buffers[rank].data(), bytes, remotes));
        EXPECT_EQ(text_of(check_program(programs.back())).find("puts into"), std::string::npos);
      }
      expect_runs(model, programs, what);
      for (const auto& buffer : buffers) EXPECT_EQ(buffer, buffers[root]) << what;
      expect_stays_near(model, what);
    }
  }
}

// Rank 4 is the root's first child, and 5, 6 and 7 are behind it.
TEST(BinomialBroadcast, ALateChildHoldsBackItsOwnSubtreeAlone) {
  constexpr uint32_t kRanks = 8;
  std::vector<std::vector<uint8_t>> buffers(kRanks, std::vector<uint8_t>(1, 0xee));
  buffers[0][0] = 7;
  ProgramModel model(1);
  std::vector<Program::Remote> remotes;
  for (auto& buffer : buffers) remotes.push_back(model.add_memory(buffer.data()));
  std::vector<Program> programs;
  for (uint32_t rank = 0; rank < kRanks; rank++) {
    programs.push_back(binomial_broadcast(rank, kRanks, 0, buffers[rank].data(), 1, remotes));
  }
  for (const Program& program : programs) model.add_program(program);
  model.hold(4);
  EXPECT_FALSE(model.run(1));
  for (uint32_t rank = 0; rank < kRanks; rank++) {
    EXPECT_EQ(model.passed(rank), rank >= 1 && rank <= 3 ? 1u : 0u) << rank;
  }
  model.let_go(4);
  EXPECT_TRUE(model.run(1)) << model.text();
  for (const auto& buffer : buffers) EXPECT_EQ(buffer[0], 7);
}

TEST(DisseminationBarrier, NobodyLeavesBeforeAllHaveEntered) {
  for (uint32_t ranks = 1; ranks <= kRanksMost; ranks++) {
    for (uint32_t late = 0; late < ranks; late++) {
      ProgramModel model(ranks * 100 + late);
      std::vector<Program> programs;
      for (uint32_t rank = 0; rank < ranks; rank++) {
        programs.push_back(dissemination_barrier(rank, ranks));
      }
      for (const Program& program : programs) model.add_program(program);
      model.hold(late);
      EXPECT_FALSE(model.run(1));
      for (uint32_t rank = 0; rank < ranks; rank++) EXPECT_EQ(model.passed(rank), 0u) << rank;
      model.let_go(late);
      expect_stays_near(model, name_of(ranks, late));
    }
  }
}

// An allgather of all ranks, with what each of them has.
class Gatherings {
 public:
  Gatherings(uint32_t ranks, size_t block, uint64_t copied, uint64_t seed, bool in_place)
      : block_(block), seed_(seed), model(seed) {
    for (uint32_t rank = 0; rank < ranks; rank++) {
      sends_.emplace_back(block + 1);
      receives.emplace_back(ranks * block + 1, 0xee);
      collectives_.emplace_back(collective_bytes(ranks, block, copied) + 1, 0xdd);
      uint8_t* own = in_place ? receives[rank].data() + rank * block : sends_[rank].data();
      for (size_t i = 0; i < block; i++) own[i] = byte_of(seed, rank, 0, i);
    }
    Gathering all;
    all.ranks = ranks;
    all.block_bytes = block;
    all.copied_bytes = copied;
    for (auto& receive : receives) all.receives.push_back(model.add_memory(receive.data()));
    for (auto& each : collectives_) all.collectives.push_back(model.add_memory(each.data()));
    for (uint32_t rank = 0; rank < ranks; rank++) {
      gatherings.push_back(all);
      Gathering& own = gatherings.back();
      own.rank = rank;
      own.receive = receives[rank].data();
      own.send = in_place ? own.receive + rank * block : sends_[rank].data();
      own.own = all.receives[rank];
      own.collective = collectives_[rank].data();
    }
  }
  void expect_gathered(const std::string& what) {
    for (const auto& receive : receives) {
      for (uint32_t from = 0; from < receives.size(); from++) {
        for (size_t i = 0; i < block_; i++) {
          ASSERT_EQ(receive[from * block_ + i], byte_of(seed_, from, 0, i)) << what;
        }
      }
      ASSERT_EQ(receive.back(), 0xee) << what;
    }
  }

 private:
  size_t block_;
  uint64_t seed_;
  std::vector<std::vector<uint8_t>> sends_;
  std::vector<std::vector<uint8_t>> collectives_;

 public:
  ProgramModel model;
  std::vector<std::vector<uint8_t>> receives;
  std::vector<Gathering> gatherings;
};

TEST(DoublingAllgather, EveryBlockReachesEverybodyAtEveryThreshold) {
  uint32_t copied_some = 0;
  for (uint32_t ranks = 1; ranks <= kRanksMost; ranks++) {
    // No copies, the first exchanges alone, all of them; and no bytes.
    for (const uint64_t copied : {0u, 5u, 17u, 40u, 1000u}) {
      for (uint64_t seed = 0; seed < kOrders; seed++) {
        const size_t block = seed == 5 ? 0 : 5;
        const std::string what = name_of(ranks, seed, copied);
        Gatherings all(ranks, block, copied, seed, seed % 2 == 1);
        std::vector<Program> programs;
        for (const Gathering& each : all.gatherings) programs.push_back(doubling_allgather(each));
        expect_runs(all.model, programs, what);
        all.expect_gathered(what);
        expect_stays_near(all.model, what);
        copied_some += collective_bytes(ranks, block, copied) > 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(copied_some, 300u);
}

TEST(DoublingAllgather, ExchangesOfUpToTheThresholdAreCopied) {
  EXPECT_EQ(collective_bytes(8, 100, 0), 0u);
  EXPECT_EQ(collective_bytes(8, 100, 99), 0u);
  EXPECT_EQ(collective_bytes(8, 100, 100), 200u);
  EXPECT_EQ(collective_bytes(8, 100, 399), 400u);
  EXPECT_EQ(collective_bytes(8, 100, 400), 800u);
  EXPECT_EQ(collective_bytes(6, 100, 400), 600u);
  EXPECT_EQ(collective_bytes(1, 100, 400), 0u);
  EXPECT_EQ(collective_bytes(8, 0, 400), 0u);
}

TEST(RingAllgather, EveryBlockReachesEverybody) {
  for (uint32_t ranks = 1; ranks <= kRanksMost; ranks++) {
    for (uint64_t seed = 0; seed < kOrders; seed++) {
      const std::string what = name_of(ranks, seed);
      Gatherings all(ranks, seed == 5 ? 0 : 7, 0, seed, seed % 2 == 1);
      std::vector<Program> programs;
      for (const Gathering& each : all.gatherings) programs.push_back(ring_allgather(each));
      expect_runs(all.model, programs, what);
      all.expect_gathered(what);
      expect_stays_near(all.model, what);
    }
  }
}

TEST(PairwiseExchange, BlocksOfAllLengthsReachTheirPlaces) {
  for (uint32_t ranks = 1; ranks <= kRanksMost; ranks++) {
    for (uint64_t seed = 0; seed < kOrders; seed++) {
      const std::string what = name_of(ranks, seed);
      const auto bytes_of = [&](uint32_t from, uint32_t to) {
        return size_t{(seed + from * 3 + to * 5) % 4 * 6};
      };
      const size_t stride = 20;
      std::vector<std::vector<uint8_t>> sends(ranks), receives(ranks);
      ProgramModel model(seed);
      std::vector<Program::Remote> remotes;
      for (uint32_t rank = 0; rank < ranks; rank++) {
        sends[rank].assign(ranks * stride, 0);
        receives[rank].assign(ranks * stride, 0xee);
        for (uint32_t to = 0; to < ranks; to++) {
          for (size_t i = 0; i < stride; i++) {
            sends[rank][to * stride + i] = byte_of(seed, rank, to, i);
          }
        }
        remotes.push_back(model.add_memory(receives[rank].data()));
      }
      std::vector<Program> programs;
      for (uint32_t rank = 0; rank < ranks; rank++) {
        std::vector<PairBlock> blocks;
        for (uint32_t to = 0; to < ranks; to++) {
          blocks.push_back({sends[rank].data() + to * stride,
                            bytes_of(rank, to),
                            {.key = remotes[to].key, .offset = rank * stride}});
        }
        programs.push_back(pairwise_exchange(rank, blocks, 1 + seed % 3));
      }
      expect_runs(model, programs, what);
      for (uint32_t rank = 0; rank < ranks; rank++) {
        for (uint32_t from = 0; from < ranks; from++) {
          for (size_t i = 0; i < stride; i++) {
            ASSERT_EQ(receives[rank][from * stride + i],
                      i < bytes_of(from, rank) ? byte_of(seed, from, rank, i) : 0xee)
                << what;
          }
        }
      }
      expect_stays_near(model, what);
    }
  }
}

// In place: what others' blocks overwrite has been copied before anybody is told.
TEST(PairwiseExchange, WhatIsOverwrittenWasCopiedBefore) {
  for (uint32_t ranks = 2; ranks <= kRanksMost; ranks++) {
    for (uint64_t seed = 0; seed < kOrders; seed++) {
      const std::string what = name_of(ranks, seed);
      const size_t block = 5;
      std::vector<std::vector<uint8_t>> memory(ranks), kept(ranks);
      ProgramModel model(seed);
      std::vector<Program::Remote> remotes, copies;
      for (uint32_t rank = 0; rank < ranks; rank++) {
        for (uint32_t to = 0; to < ranks; to++) {
          for (size_t i = 0; i < block; i++) memory[rank].push_back(byte_of(seed, rank, to, i));
        }
        kept[rank].assign(ranks * block, 0xdd);
        remotes.push_back(model.add_memory(memory[rank].data()));
        copies.push_back(model.add_memory(kept[rank].data()));
      }
      std::vector<Program> programs;
      for (uint32_t rank = 0; rank < ranks; rank++) {
        std::vector<PairBlock> blocks(ranks);
        for (uint32_t to = 0; to < ranks; to++) {
          if (to == rank) continue;
          blocks[to] = {kept[rank].data() + to * block,
                        block,
                        {.key = remotes[to].key, .offset = rank * block}};
        }
        programs.push_back(pairwise_exchange(rank, blocks, 3,
                                             {{memory[rank].data(), ranks * block, copies[rank]}}));
      }
      expect_runs(model, programs, what);
      for (uint32_t rank = 0; rank < ranks; rank++) {
        for (uint32_t from = 0; from < ranks; from++) {
          for (size_t i = 0; i < block; i++) {
            ASSERT_EQ(memory[rank][from * block + i], byte_of(seed, from, rank, i)) << what;
          }
        }
      }
    }
  }
}

// --- programs that are started in turn, with buffers that nobody says are ready ---

// What a rank sends in one start, and what it has received at its end.
class InTurn {
 public:
  static constexpr uint64_t kStarts = 6;
  static constexpr size_t kBlock = 5;

  using Collect = Program (*)(const Collecting&);

  // Of all-to-alls, a block for each rank; else the same one for all.
  InTurn(uint32_t ranks, uint64_t seed, bool for_each)
      : ranks_(ranks), seed_(seed), in_place_(seed % 2 == 1), for_each_(for_each), model_(seed) {
    for (uint32_t rank = 0; rank < ranks; rank++) {
      receives_.emplace_back(ranks * kBlock, 0xee);
      sends_.emplace_back(ranks * kBlock, 0);
      for (auto& turn : collectives_) turn.emplace_back(ranks * kBlock, 0xdd);
    }
    for (auto& receive : receives_) owns_.push_back(model_.add_memory(receive.data()));
    for (uint32_t turn = 0; turn < 2; turn++) {
      for (auto& each : collectives_[turn])
        remotes_[turn].push_back(model_.add_memory(each.data()));
    }
    for (uint32_t rank = 0; rank < ranks; rank++) write(rank, 0);
  }
  void expect_right(Collect collect, const std::string& what) {
    std::vector<Program> programs;
    for (uint32_t turn = 0; turn < 2; turn++) {
      for (uint32_t rank = 0; rank < ranks_; rank++) {
        programs.push_back(collect({.rank = rank,
                                    .ranks = ranks_,
                                    .send = send(rank),
                                    .in_place = in_place_,
                                    .block_bytes = kBlock,
                                    .own = owns_[rank],
                                    .collective = collectives_[turn][rank].data(),
                                    .collectives = remotes_[turn]}));
        const std::string text = text_of(check_program(programs.back()));
        EXPECT_EQ(text.find("wrong"), std::string::npos) << text;
      }
    }
    for (const Program& program : programs) model_.add_program(program);
    for (uint32_t rank = 0; rank < ranks_; rank++) {
      model_.start_in_turn(rank, [this, rank, &what](uint64_t start) {
        for (uint32_t from = 0; from < ranks_; from++) {
          for (size_t i = 0; i < kBlock; i++) {
            ASSERT_EQ(receives_[rank][from * kBlock + i], byte(start, from, rank, i))
                << what << ", start " << start << ", of " << from << " at " << rank;
          }
        }
        write(rank, start + 1);
      });
    }
    EXPECT_TRUE(model_.run(kStarts / 2)) << what << ": " << model_.text();
    EXPECT_LE(model_.farthest_ahead(), 1u) << what;
  }

 private:
  uint8_t* send(uint32_t rank) { return in_place_ ? receives_[rank].data() : sends_[rank].data(); }
  [[nodiscard]] uint8_t byte(uint64_t start, uint32_t from, uint32_t to, size_t i) const {
    return byte_of(seed_ + start * 5, from, for_each_ ? to : 0, i);
  }
  void write(uint32_t rank, uint64_t start) {
    // One for all is the own block, in place as well.
    const uint32_t first = in_place_ && !for_each_ ? rank : 0;
    const uint32_t count = for_each_ ? ranks_ : 1;
    for (uint32_t block = first; block < first + count; block++) {
      for (size_t i = 0; i < kBlock; i++) {
        send(rank)[block * kBlock + i] = byte(start, rank, block, i);
      }
    }
  }

  uint32_t ranks_;
  uint64_t seed_;
  bool in_place_;
  bool for_each_;
  ProgramModel model_;
  std::vector<std::vector<uint8_t>> sends_;
  std::vector<std::vector<uint8_t>> receives_;
  std::vector<Program::Remote> owns_;
  std::vector<std::vector<uint8_t>> collectives_[2];
  std::vector<Program::Remote> remotes_[2];
};

TEST(CollectedAlltoall, EachStartBringsItsOwnBlocks) {
  for (uint32_t ranks = 1; ranks <= 12; ranks++) {
    for (uint64_t seed = 0; seed < kOrders; seed++) {
      InTurn(ranks, seed, true).expect_right(collected_alltoall, name_of(ranks, seed));
    }
  }
}

TEST(CollectedAllgather, EachStartBringsItsOwnBlocks) {
  for (uint32_t ranks = 1; ranks <= 12; ranks++) {
    for (uint64_t seed = 0; seed < kOrders; seed++) {
      InTurn(ranks, seed, false).expect_right(collected_allgather, name_of(ranks, seed));
    }
  }
}

// The packets that are saved: who puts into collective buffers alone is told nothing.
void expect_puts_alone(const Program& program, uint32_t expected) {
  uint32_t puts = 0;
  for (const Program::Step& step : program.steps()) {
    EXPECT_NE(step.descriptor.opcode, PEAL_PROGRAM_SIGNAL);
    puts += step.descriptor.opcode == PEAL_PROGRAM_PUT ? 1 : 0;
  }
  EXPECT_EQ(puts, expected);
}

TEST(Collected, NobodySaysThatItIsReady) {
  Collecting own;
  own.ranks = 8;
  own.block_bytes = 8;
  own.collectives.resize(8);
  expect_puts_alone(collected_alltoall(own), 9);  // one for each rank, and the copy
  std::vector<uint8_t> memory(64);
  own.send = memory.data();
  own.collective = memory.data();
  expect_puts_alone(collected_allgather(own), 5);  // one a round, the own block, and the copy
}

}  // namespace
}  // namespace peal::host
