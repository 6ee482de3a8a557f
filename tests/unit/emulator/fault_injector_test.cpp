// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/common/fault_injector.h"

#include <gtest/gtest.h>

namespace peal::emulator {
namespace {

FaultPlan plan_of(const std::string& text) {
  FaultPlan plan;
  EXPECT_EQ(parse_fault_plan(text, &plan), "");
  return plan;
}

// A verdict as text, for comparison.
std::string text_of(const Verdict& verdict) {
  std::string text = std::to_string(verdict.copies);
  for (uint32_t i = 0; i < verdict.copies; i++)
    text +=
        " +" + std::to_string(verdict.copy[i].delay_ns) + "/" +
        (verdict.copy[i].corrupt_bit == kNoBit ? "-" : std::to_string(verdict.copy[i].corrupt_bit));
  return text;
}

TEST(Random, KnownSequence) {
  // Computed from the authors' published code; a change here changes what every seed means.
  Random random(0);
  EXPECT_EQ(random.next(), 0x99ec5f36cb75f2b4u);
  EXPECT_EQ(random.next(), 0xbf6e1f784956452au);
  EXPECT_EQ(random.next(), 0x1a5f849d4933e6e0u);
}

TEST(Random, BelowStaysBelow) {
  Random random(1);
  for (const uint64_t bound : {uint64_t{1}, uint64_t{2}, uint64_t{1000}, ~uint64_t{0}}) {
    for (int i = 0; i < 1000; i++) EXPECT_LT(random.below(bound), bound);
  }
  EXPECT_EQ(random.below(0), 0u);
}

TEST(FaultInjector, WithoutFaultsEverythingPasses) {
  FaultInjector injector(FaultPlan{}, 1);
  EXPECT_FALSE(injector.active());
  for (int i = 0; i < 100; i++) EXPECT_EQ(text_of(injector.judge(0, 1, 64, 0)), "1 +0/-");
  EXPECT_EQ(injector.counts().judged, 0u);
}

TEST(FaultInjector, CertainFaults) {
  FaultInjector lossy(plan_of("loss=1"), 1);
  EXPECT_EQ(text_of(lossy.judge(0, 1, 64, 0)), "0");
  FaultInjector doubling(plan_of("duplicate=1"), 1);
  EXPECT_EQ(text_of(doubling.judge(0, 1, 64, 0)), "2 +0/- +0/-");
  FaultInjector delaying(plan_of("delay=1,delay_us=5"), 1);
  for (int i = 0; i < 1000; i++) {
    const Verdict verdict = delaying.judge(0, 1, 64, 0);
    EXPECT_GE(verdict.copy[0].delay_ns, 1u);
    EXPECT_LE(verdict.copy[0].delay_ns, 5000u);
  }
}

TEST(FaultInjector, CorruptsABitOfTheFrame) {
  FaultInjector injector(plan_of("corrupt=1"), 7);
  bool header = false;
  bool payload = false;
  for (int i = 0; i < 1000; i++) {
    const Verdict verdict = injector.judge(0, 1, 164, 0);
    ASSERT_EQ(verdict.copies, 1u);
    ASSERT_LT(verdict.copy[0].corrupt_bit, 164u * 8);
    (verdict.copy[0].corrupt_bit < 64 * 8 ? header : payload) = true;
  }
  EXPECT_TRUE(header);
  EXPECT_TRUE(payload);
  EXPECT_EQ(injector.counts().corrupted, 1000u);
}

TEST(FaultInjector, RatesAreAsAsked) {
  FaultInjector injector(plan_of("loss=0.1,duplicate=0.2,corrupt=0.3"), 3);
  for (int i = 0; i < 100000; i++) injector.judge(0, 1, 64, 0);
  const FaultCounts& counts = injector.counts();
  EXPECT_EQ(counts.judged, 100000u);
  EXPECT_NEAR(static_cast<double>(counts.lost), 10000, 500);
  EXPECT_NEAR(static_cast<double>(counts.duplicated), 18000, 700);  // of the frames not lost
  EXPECT_NEAR(static_cast<double>(counts.corrupted), 27000, 900);
}

TEST(FaultInjector, SameSeedSameFate) {
  const FaultPlan plan = plan_of("loss=0.1,duplicate=0.1,reorder=0.1,delay=0.1,corrupt=0.1");
  FaultInjector first(plan, 42);
  FaultInjector second(plan, 42);
  FaultInjector other(plan, 43);
  int different = 0;
  for (uint32_t i = 0; i < 1000; i++) {
    const std::string fate = text_of(first.judge(i % 7, i % 5, 64 + i, i));
    EXPECT_EQ(fate, text_of(second.judge(i % 7, i % 5, 64 + i, i)));
    different += fate != text_of(other.judge(i % 7, i % 5, 64 + i, i)) ? 1 : 0;
  }
  EXPECT_GT(different, 100);
}

// The outcome for one frame does not shift the luck of those behind it.
TEST(FaultInjector, EveryJudgementDrawsAlike) {
  FaultPlan plan = plan_of("loss=0.5");
  FaultInjector plain(plan, 9);
  plan.partitions.push_back({0, 0, 0, 1000});
  FaultInjector parted(plan, 9);
  for (int i = 0; i < 100; i++) {
    plain.judge(0, 1, 64, 0);
    EXPECT_EQ(parted.judge(0, 1, 64, 0).copies, 0u);
  }
  for (int i = 0; i < 100; i++)
    EXPECT_EQ(plain.judge(0, 1, 64, 2000).copies, parted.judge(0, 1, 64, 2000).copies);
}

TEST(FaultInjector, PartitionsPart) {
  FaultInjector injector(plan_of("partition=2-3:10-20"), 1);
  EXPECT_EQ(injector.judge(2, 1, 64, 9'999).copies, 1u);   // not yet
  EXPECT_EQ(injector.judge(2, 1, 64, 10'000).copies, 0u);  // out
  EXPECT_EQ(injector.judge(1, 3, 64, 19'999).copies, 0u);  // in
  EXPECT_EQ(injector.judge(2, 3, 64, 15'000).copies, 1u);  // inside
  EXPECT_EQ(injector.judge(0, 4, 64, 15'000).copies, 1u);  // outside
  EXPECT_EQ(injector.judge(2, 1, 64, 20'000).copies, 1u);  // healed
  EXPECT_EQ(injector.counts().partitioned, 2u);
}

// Nothing happens between spared cards, and it does not shift the luck of the others.
TEST(FaultInjector, SparesCards) {
  FaultInjector plain(plan_of("loss=0.5"), 9);
  FaultInjector sparing(plan_of("loss=0.5,spare=2-3,spare=5-5"), 9);
  for (int i = 0; i < 100; i++) {
    EXPECT_EQ(sparing.judge(2, 3, 64, 0).copies, 1u);
    EXPECT_EQ(sparing.judge(5, 5, 64, 0).copies, 1u);
    EXPECT_EQ(sparing.judge(1, 2, 64, 0).copies, plain.judge(1, 2, 64, 0).copies);  // in
    EXPECT_EQ(sparing.judge(3, 4, 64, 0).copies, plain.judge(3, 4, 64, 0).copies);  // out
    EXPECT_EQ(sparing.judge(3, 5, 64, 0).copies, plain.judge(3, 5, 64, 0).copies);  // across
  }
  EXPECT_EQ(sparing.counts().judged, 300u);
}

TEST(FaultInjector, Heals) {
  FaultInjector timed(plan_of("loss=1,until_us=7"), 1);
  EXPECT_EQ(timed.judge(0, 1, 64, 6'999).copies, 0u);
  EXPECT_EQ(timed.judge(0, 1, 64, 7'000).copies, 1u);
  FaultInjector told(plan_of("loss=1,partition=0-0:0-99"), 1);
  told.heal();
  EXPECT_EQ(told.judge(0, 1, 64, 0).copies, 1u);
  EXPECT_FALSE(told.active());
}

TEST(FaultPlan, TextGoesBothWays) {
  for (const char* text :
       {"", "loss=0.05", "duplicate=0.25,reorder=0.5,reorder_us=30",
        "delay=1,delay_us=1000,until_us=5000,partition=0-3:10-20,partition=7-7:0-18446744073",
        "loss=1,spare=0-3,spare=5-5"}) {
    EXPECT_EQ(format_fault_plan(plan_of(text)), text);
  }
}

TEST(FaultPlan, NonsenseIsRefusedByName) {
  for (const char* text : {"loss",
                           "loss=",
                           "loss=x",
                           "loss=0.1x",
                           "lost=0.1",
                           "loss=2",
                           "loss=-1",
                           "loss=nan",
                           "loss=inf",
                           "delay_us=-1",
                           "delay_us=99999999999999999999",
                           "partition=1",
                           "partition=3-1:0-9",
                           "partition=1-3:9-9",
                           "partition=1-3:0",
                           "partition=1-99999999999:0-9",
                           "spare=1",
                           "spare=3-1",
                           "spare=1-x",
                           ","}) {
    FaultPlan plan;
    EXPECT_NE(parse_fault_plan(text, &plan), "") << text;
  }
  FaultPlan plan;
  EXPECT_EQ(parse_fault_plan("loss=2", &plan),
            "loss is 2.000000; it must be a probability from 0 to 1");
}

}  // namespace
}  // namespace peal::emulator
