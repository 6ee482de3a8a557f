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

// Notes what it is asked, and stops the loop after so many polls or when it has been awoken so
// often.
class Script final : public HostInterface {
 public:
  explicit Script(NicLoop& loop) : loop_(loop) {}

  bool poll(TimeNs now) override {
    EXPECT_FALSE(down_) << "polled after the end";
    EXPECT_GE(now, now_);
    now_ = now;
    const bool second_look = log.ends_with("prepare ");
    const bool busy = polled_ < busy_polls || (second_look && looks_++ < busy_looks);
    note(busy ? "busy " : "poll ");
    if (++polled_ == last_poll) loop_.request_stop();
    return busy;
  }
  bool prepare_to_sleep() override {
    note("prepare ");
    const uint64_t one = 1;
    EXPECT_EQ(write(event.get(), &one, sizeof(one)), ssize_t{sizeof(one)});
    return may_sleep;
  }
  void awake(TimeNs /*now*/) override {
    note("awake ");
    if (++awoken_ == last_awake) loop_.request_stop();
  }
  void beat(uint64_t beats, uint32_t interval_us) override {
    EXPECT_EQ(interval_us, 250'000u);
    EXPECT_EQ(beats, beats_++);
  }
  void shut_down(TimeNs /*now*/) override {
    note("down ");
    down_ = true;
  }
  [[nodiscard]] nlohmann::ordered_json counters_json() const override {
    return {{"polls", polled_}};
  }

  std::string log;  // several polls in a row are one
  uint32_t last_poll = 0;
  uint32_t last_awake = 0;
  uint32_t busy_polls = 0;  // the first ones
  uint32_t busy_looks = 0;  // the first second looks
  bool may_sleep = true;
  FileDescriptor event{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

 private:
  void note(const std::string& what) {
    if (!log.ends_with(what)) log += what;
  }
  NicLoop& loop_;
  uint32_t polled_ = 0;
  uint32_t looks_ = 0;
  uint32_t awoken_ = 0;
  uint64_t beats_ = 0;
  TimeNs now_ = 0;
  bool down_ = false;
};

class NicLoopTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options.cards = 2;
    options.packet_buffers = 2048;
    options.checksums = Checksums::kSkipped;
    options.timeouts = default_timeouts();
    options.idle_ns = 0;
  }
  // The interface goes with the loop.
  Script& make() {
    EXPECT_EQ(loop.create(options), "");
    auto script = std::make_unique<Script>(loop);
    Script& made = *script;
    loop.add_interface(std::move(script));
    EXPECT_TRUE(loop.watch(made.event.get()));
    return made;
  }
  [[nodiscard]] uint64_t counted(const char* name) const {
    return loop.counters_json()["loop"][name].get<uint64_t>();
  }

  const bool started = (test::start_dpdk(), true);  // the loop's clock needs it
  LoopOptions options;
  NicLoop loop;
};

TEST_F(NicLoopTest, LooksOnceMoreBeforeItSleeps) {
  Script& script = make();
  script.last_awake = 2;
  loop.run();
  EXPECT_EQ(script.log, "poll prepare poll awake poll prepare poll awake down ");
  EXPECT_EQ(counted("busy_turns"), 0u);
  EXPECT_EQ(counted("sleeps"), 2u);
}

TEST_F(NicLoopTest, AnInterfaceThatCannotSleepKeepsItAwake) {
  Script& script = make();
  script.last_awake = 2;
  script.may_sleep = false;
  loop.run();
  EXPECT_EQ(script.log, "poll prepare poll awake poll prepare poll awake down ");
  EXPECT_EQ(counted("sleeps"), 0u);
}

TEST_F(NicLoopTest, WorkKeepsItAwake) {
  Script& script = make();
  script.last_awake = 1;
  script.busy_polls = 5;
  loop.run();
  EXPECT_EQ(script.log, "busy poll prepare poll awake down ");
  EXPECT_EQ(counted("busy_turns"), 5u);
}

// What a host has published before it saw that the card sleeps is found at the second look.
TEST_F(NicLoopTest, WorkAtTheSecondLookPutsTheSleepOff) {
  Script& script = make();
  script.last_awake = 2;
  script.busy_looks = 1;
  loop.run();
  EXPECT_EQ(script.log, "poll prepare busy awake poll prepare poll awake down ");
  EXPECT_EQ(counted("sleeps"), 1u);
}

TEST_F(NicLoopTest, WhereItMayNotSleepItPolls) {
  options.may_sleep = false;
  Script& script = make();
  script.last_poll = 1000;
  loop.run();
  EXPECT_EQ(script.log, "poll down ");
  EXPECT_EQ(counted("turns"), 1000u);
  EXPECT_EQ(counted("sleeps"), 0u);
}

TEST_F(NicLoopTest, SaysWhatItsPartsCount) {
  options.may_sleep = false;
  make().last_poll = 2;
  loop.run();
  const auto all = loop.counters_json();
  EXPECT_EQ(all["interfaces"].dump(), "{\"0\":{\"polls\":2}}");
  EXPECT_EQ(all["cards"].size(), 2u);
  EXPECT_EQ(all["cards"][1]["card"], 1);
}

}  // namespace
}  // namespace peal::nic
