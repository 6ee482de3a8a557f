// SPDX-License-Identifier: BSD-2-Clause
// Several loops of cards in one process: whose cards are whose, that they run and end together, and
// that who sleeps is woken by a frame.
#include "emulator/nic/nic_loops.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "emulator/common/packet_text.h"
#include "tests/unit/emulator/two_cards.h"

namespace peal::nic {
namespace {

LoopOptions options_of(uint32_t cards) {
  LoopOptions options;
  options.cards = cards;
  options.packet_buffers = 2048;
  options.checksums = Checksums::kSkipped;
  options.timeouts = default_timeouts();
  options.idle_ns = 0;
  return options;
}

// What does not come about is a hang.
template <typename Condition>
bool comes_about(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

uint64_t slept(const NicLoop& loop) {
  return loop.counters_json()["loop"]["sleeps"].get<uint64_t>();
}

// Does nothing but count how often time alone woke the loop.
class Beats final : public HostInterface {
 public:
  explicit Beats(std::atomic<uint64_t>& beats) : beats_(beats) {}
  bool poll(TimeNs /*now*/) override { return false; }
  bool prepare_to_sleep() override { return true; }
  void awake(TimeNs /*now*/) override {}
  void beat(uint64_t beats, uint32_t /*interval_us*/) override { beats_ = beats; }
  void shut_down(TimeNs /*now*/) override {}
  [[nodiscard]] nlohmann::ordered_json counters_json() const override { return {}; }

 private:
  std::atomic<uint64_t>& beats_;
};

class NicLoopsTest : public ::testing::Test {
 protected:
  const bool started = (test::start_dpdk(), true);  // the loops' clocks need it
};

TEST_F(NicLoopsTest, CardsAreDealtOutInTurn) {
  NicLoops loops(2);
  ASSERT_EQ(loops.create(options_of(5)), "");
  ASSERT_EQ(loops.count(), 2u);
  EXPECT_EQ(loops.card_count(), 5u);
  EXPECT_EQ(loops.loop(0).card_count(), 3u);
  EXPECT_EQ(loops.loop(1).card_count(), 2u);
  std::string indices;
  for (uint32_t i = 0; i < 2; i++) {
    for (uint32_t card = 0; card < loops.loop(i).card_count(); card++)
      indices += std::to_string(loops.loop(i).card(card).index);
  }
  EXPECT_EQ(indices, "02413");
  std::string counted;
  const nlohmann::ordered_json counters = loops.counters_json();
  for (const auto& card : counters["cards"])
    counted += std::to_string(card["card"].get<uint32_t>());
  EXPECT_EQ(counted, "01234");
  for (uint32_t card = 0; card < 5; card++) EXPECT_EQ(loops.runner(card).index(), card);
}

TEST_F(NicLoopsTest, TheyRunAndEndTogether) {
  NicLoops loops(2);
  ASSERT_EQ(loops.create(options_of(2)), "");
  std::thread caller([&] { loops.run(); });
  EXPECT_TRUE(comes_about([&] { return slept(loops.loop(0)) > 0 && slept(loops.loop(1)) > 0; }));
  loops.request_stop();
  caller.join();
  EXPECT_TRUE(loops.stop_copies());
  // Of what both count there is the sum.
  EXPECT_EQ(loops.counters_json()["loop"]["sleeps"], slept(loops.loop(0)) + slept(loops.loop(1)));
}

// Loops that give way and have nothing to do: how often they gave way, and how many turns found
// nothing.
std::pair<uint64_t, uint64_t> ways_given(TimeNs look_on_ns) {
  NicLoops loops(2);
  LoopOptions options = options_of(2);
  options.may_sleep = false;
  options.yield_when_idle = true;
  options.look_on_ns = look_on_ns;
  EXPECT_EQ(loops.create(options), "");
  std::thread caller([&] { loops.run(); });
  const auto counter = [&](const char* name) {
    return loops.counters_json()["loop"][name].get<uint64_t>();
  };
  EXPECT_TRUE(comes_about([&] { return counter("yields") > 50; }));
  loops.request_stop();
  caller.join();
  EXPECT_TRUE(loops.stop_copies());
  return {counter("yields"), counter("turns") - counter("busy_turns")};
}

TEST_F(NicLoopsTest, TheyLookOnBeforeTheyGiveWay) {
  const auto [yields, idle_turns] = ways_given(GiveWay::kLookOnNs);
  EXPECT_LE(yields, idle_turns / 2);
}

TEST_F(NicLoopsTest, WithoutThatTheyGiveWayAtOnce) {
  const auto [yields, idle_turns] = ways_given(0);
  EXPECT_EQ(yields, idle_turns);
}

TEST_F(NicLoopsTest, ABellWakesBeforeItsTime) {
  PacketPool pool;
  ASSERT_EQ(pool.create(2048, 2, 2), "");
  WireRings rings(pool);
  ASSERT_EQ(rings.create(2, WireRings::Producers::kOne, 2), "");
  NicLoop loop;
  ASSERT_EQ(loop.create(options_of(2), {pool, rings, 1}), "");
  std::atomic<uint64_t> beats = 0;
  loop.add_interface(std::make_unique<Beats>(beats));
  std::thread runs([&] { loop.run(); });
  EXPECT_TRUE(comes_about([&] {
    rings.ring_bells(2);
    return slept(loop) > 20 + 2 * beats;
  }));
  loop.request_stop();
  runs.join();
  EXPECT_TRUE(loop.stop_copies());
}

TEST_F(NicLoopsTest, AFrameOfAnotherLoopWakesWhoSleeps) {
  PacketPool pool;
  ASSERT_EQ(pool.create(2048, 2, 2), "");
  WireRings rings(pool);
  ASSERT_EQ(rings.create(2, WireRings::Producers::kOne, 2), "");
  FrameSwitch other(pool, {});
  other.join(rings, 0);
  NicLoop loop;
  ASSERT_EQ(loop.create(options_of(2), {pool, rings, 1}), "");
  ASSERT_EQ(loop.card_count(), 1u);
  std::thread runs([&] { loop.run(); });
  uint64_t rung = 0;
  uint64_t sleeps = 0;
  EXPECT_TRUE(comes_about([&] {
    EXPECT_TRUE(comes_about([&] { return slept(loop) > sleeps; }));
    sleeps = slept(loop);
    Packet* const packet = pool.allocate();
    if (packet == nullptr) return false;
    std::memset(packet->header, 0, sizeof(*packet->header));
    emulator::card_mac(1, packet->header->destination);
    other.send(0, packet);
    other.wake_receivers();
    EXPECT_TRUE(comes_about([&] { return !other.has_frames(1); })) << "it is received";
    return read(rings.bell_fd(1), &rung, sizeof(rung)) == sizeof(rung);
  }));
  loop.request_stop();
  runs.join();
  EXPECT_TRUE(loop.stop_copies());
}

}  // namespace
}  // namespace peal::nic
