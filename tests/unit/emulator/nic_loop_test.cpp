// SPDX-License-Identifier: BSD-2-Clause
// The loop as an interface sees it: who is called when, what keeps it awake, and that it looks once
// more before it sleeps. The interface is the test's script; all runs on the test's thread.
#include "emulator/nic/nic_loop.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/file_descriptor.h"
#include "tests/unit/emulator/two_cards.h"

namespace peal::nic {
namespace {

// Notes what it is asked, and stops the loop when it has been polled so often.
class Script final : public HostInterface {
 public:
  Script(NicLoop& loop, uint32_t polls) : loop_(loop), polls_(polls) {}

  bool poll(TimeNs now) override {
    EXPECT_FALSE(down_) << "polled after the end";
    EXPECT_GE(now, now_);
    now_ = now;
    const bool busy = polled_ >= busy_from && polled_ < busy_polls;
    note(busy ? "busy" : "poll");
    if (++polled_ == polls_) loop_.request_stop();
    return busy;
  }
  bool prepare_to_sleep() override {
    note("prepare");
    const uint64_t one = 1;
    EXPECT_EQ(write(event.get(), &one, sizeof(one)), ssize_t{sizeof(one)});
    return may_sleep;
  }
  void awake(TimeNs /*now*/) override { note("awake"); }
  void beat(uint64_t beats, uint32_t interval_us) override {
    EXPECT_EQ(interval_us, 250'000u);
    EXPECT_EQ(beats, beats_++);
  }
  void shut_down(TimeNs /*now*/) override {
    note("down");
    down_ = true;
  }
  [[nodiscard]] nlohmann::ordered_json counters_json() const override {
    return {{"polls", polled_}};
  }

  // Each different run of calls once, with a plus where it was longer.
  std::string log;
  uint32_t busy_from = 0;
  uint32_t busy_polls = 0;
  bool may_sleep = true;
  FileDescriptor event{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

 private:
  void note(const std::string& what) {
    if (log.ends_with(what + "+ ")) return;
    if (log.ends_with(what + " ")) {
      log.replace(log.size() - 1, 1, "+ ");
    } else {
      log += what + " ";
    }
  }
  NicLoop& loop_;
  uint32_t polls_;
  uint32_t polled_ = 0;
  uint64_t beats_ = 0;
  TimeNs now_ = 0;
  bool down_ = false;
};

class NicLoopTest : public ::testing::Test {
 protected:
  void SetUp() override {
    test::start_dpdk();
    options.cards = 2;
    options.packet_buffers = 2048;
    options.checksums = Checksums::kSkipped;
    options.timeouts = default_timeouts();
    options.idle_ns = 0;
  }
  // The interface goes with the loop.
  Script& make(uint32_t polls) {
    EXPECT_EQ(loop.create(options), "");
    auto script = std::make_unique<Script>(loop, polls);
    Script& made = *script;
    loop.add_interface(std::move(script));
    EXPECT_TRUE(loop.watch(made.event.get()));
    return made;
  }
  [[nodiscard]] uint64_t counted(const char* name) const {
    return loop.counters_json()["loop"][name].get<uint64_t>();
  }

  LoopOptions options;
  NicLoop loop;
};

TEST_F(NicLoopTest, LooksOnceMoreBeforeItSleeps) {
  Script& script = make(4);
  loop.run();
  // It does not sleep before its first heartbeat.
  EXPECT_EQ(script.log, "poll+ prepare poll awake poll prepare poll awake down ");
  EXPECT_EQ(counted("turns"), 5u);
  EXPECT_EQ(counted("busy_turns"), 0u);
  EXPECT_EQ(counted("sleeps"), 1u) << "it was told to stop before the second";
}

TEST_F(NicLoopTest, AnInterfaceThatCannotSleepKeepsItAwake) {
  Script& script = make(4);
  script.may_sleep = false;
  loop.run();
  EXPECT_EQ(script.log, "poll+ prepare poll awake poll prepare poll awake down ");
  EXPECT_EQ(counted("sleeps"), 0u);
}

TEST_F(NicLoopTest, WorkKeepsItAwake) {
  Script& script = make(7);
  script.busy_polls = 5;
  loop.run();
  EXPECT_EQ(script.log, "busy+ poll prepare poll awake down ");
  EXPECT_EQ(counted("busy_turns"), 5u);
}

// What a host has published before it saw that the card sleeps is found at the second look.
TEST_F(NicLoopTest, WorkAtTheSecondLookPutsTheSleepOff) {
  Script& script = make(4);
  script.busy_from = 2;
  script.busy_polls = 3;
  loop.run();
  EXPECT_EQ(script.log, "poll+ prepare busy awake poll prepare poll awake down ");
  EXPECT_EQ(counted("sleeps"), 0u);
}

TEST_F(NicLoopTest, WhereItMayNotSleepItPolls) {
  options.may_sleep = false;
  Script& script = make(1000);
  loop.run();
  EXPECT_EQ(script.log, "poll+ down ");
  EXPECT_EQ(counted("turns"), 1000u);
  EXPECT_EQ(counted("sleeps"), 0u);
}

TEST_F(NicLoopTest, SaysWhatItsPartsCount) {
  make(2);  // and once more, before it would sleep
  loop.run();
  const auto all = loop.counters_json();
  EXPECT_EQ(all["interfaces"].dump(), "{\"0\":{\"polls\":3}}");
  EXPECT_EQ(all["cards"].size(), 2u);
  EXPECT_EQ(all["cards"][1]["card"], 1);
}

}  // namespace
}  // namespace peal::nic
