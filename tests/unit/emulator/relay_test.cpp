// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/relay.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <list>
#include <set>
#include <thread>
#include <vector>

namespace peal::nic {
namespace {

// What blocks whoever reads it, until it is opened.
class Gate {
 public:
  Gate() { EXPECT_EQ(pipe(ends_), 0); }
  ~Gate() {
    close(ends_[0]);
    open();
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void pass() const {
    char byte = 0;
    EXPECT_GE(read(ends_[0], &byte, 1), 0);
  }
  void open() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
};

class RelayTest : public ::testing::Test {
 protected:
  void until_somebody_stands_by() const {
    while (!relay.may_leave()) std::this_thread::yield();
  }
  const std::function<void(Relay::Part)> place = [this](Relay::Part part) {
    serves = part == Relay::Part::kServes;
    if (serves) threads.push_back(std::this_thread::get_id());
  };

  static thread_local bool serves;
  Relay relay;
  std::vector<std::thread::id> threads;  // that served, in turn
};
thread_local bool RelayTest::serves = false;

TEST_F(RelayTest, WhoeverComesBackGoesOn) {
  const auto serve = [&] {
    EXPECT_TRUE(serves);
    for (int i = 0; i < 1000; i++) {
      const uint64_t left = relay.leave();
      if (!relay.back(left)) return false;
    }
    return true;
  };
  EXPECT_TRUE(relay.run(serve, place));
  EXPECT_EQ(relay.reliefs(), 0u);
  EXPECT_EQ(threads.size(), 1u);
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST_F(RelayTest, TheOtherGoesOnWhereOneIsBlockedAndIsRelievedInTurn) {
  Gate gates[3];
  std::atomic<int> back = 0;
  int served = 0;
  const auto serve = [&] {
    EXPECT_TRUE(serves);
    const int turn = served++;
    until_somebody_stands_by();  // though all who served before are away
    if (turn == 3) {
      for (Gate& gate : gates) gate.open();
      while (back < 3) std::this_thread::yield();
      return true;
    }
    const uint64_t left = relay.leave();
    gates[turn].pass();
    EXPECT_FALSE(relay.back(left));
    back++;
    return false;
  };
  EXPECT_TRUE(relay.run(serve, place));
  EXPECT_EQ(relay.reliefs(), 3u);
  EXPECT_EQ(std::set<std::thread::id>(threads.begin(), threads.end()).size(), 4u);
}

// More than there may be threads: whoever is the last to serve has nobody behind it, until one
// comes back.
TEST_F(RelayTest, WhereAllAreAwayNobodyStandsBy) {
  Gate gate;
  uint32_t served = 0;
  const auto serve = [&] {
    if (++served < Relay::kThreads) {
      until_somebody_stands_by();
      const uint64_t left = relay.leave();
      gate.pass();
      return relay.back(left);
    }
    EXPECT_FALSE(relay.may_leave());
    gate.open();
    until_somebody_stands_by();
    return true;
  };
  EXPECT_TRUE(relay.run(serve, place));
  EXPECT_EQ(relay.reliefs(), Relay::kThreads - 1);
}

// So that whoever stands by finds it away at its first look.
TEST_F(RelayTest, WhoLeftBeforeIsRelieved) {
  Gate gate;
  bool again = false;
  const auto serve = [&] {
    if (again) {
      gate.open();
      return true;
    }
    again = true;
    const uint64_t left = relay.leave();
    gate.pass();
    return relay.back(left);
  };
  EXPECT_TRUE(relay.run(serve, place));
  EXPECT_EQ(relay.reliefs(), 1u);
}

// It waits for a processor, and for nothing else.
TEST_F(RelayTest, WhoIsBusyIsNotRelieved) {
  const auto serve = [&] {
    until_somebody_stands_by();
    const auto end = std::chrono::steady_clock::now() + 20 * Relay::kPatience;
    const uint64_t left = relay.leave();
    while (std::chrono::steady_clock::now() < end) continue;
    EXPECT_TRUE(relay.back(left));
    return true;
  };
  EXPECT_TRUE(relay.run(serve, place));
  EXPECT_EQ(relay.reliefs(), 0u);
}

// Long after whoever stands by has gone to rest.
TEST_F(RelayTest, WhoRestsIsWoken) {
  Gate gate;
  bool again = false;
  const auto serve = [&] {
    if (again) {
      gate.open();
      until_somebody_stands_by();
      return true;
    }
    again = true;
    until_somebody_stands_by();
    while (!relay.rests()) std::this_thread::yield();
    const uint64_t left = relay.leave();
    gate.pass();
    return relay.back(left);
  };
  EXPECT_TRUE(relay.run(serve, place));
  EXPECT_EQ(relay.reliefs(), 1u);
}

TEST_F(RelayTest, WhoNeverComesBackIsToldApart) {
  // What outlives the test: the thread that is away has it.
  struct Lasting {
    Relay relay;
    Gate gate;
    std::atomic<bool> back{false};
    std::atomic<int> served{0};
    std::function<bool()> serve;
    std::function<void(Relay::Part)> place = [](Relay::Part) {};
  };
  static std::list<Lasting> all;
  Lasting& lasting = all.emplace_back();
  lasting.serve = [&lasting] {
    if (++lasting.served > 1) return true;
    while (!lasting.relay.may_leave()) std::this_thread::yield();
    const uint64_t left = lasting.relay.leave();
    lasting.gate.pass();
    const bool mine = lasting.relay.back(left);
    lasting.back = true;
    return mine;
  };
  EXPECT_FALSE(lasting.relay.run(lasting.serve, lasting.place));
  EXPECT_FALSE(lasting.back);
  lasting.gate.open();
  while (!lasting.back) std::this_thread::yield();
  EXPECT_EQ(lasting.served, 2);
}

}  // namespace
}  // namespace peal::nic
