// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/copy_pool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "emulator/common/region_table.h"
#include "tests/unit/emulator/stuck_page.h"

namespace peal::nic {
namespace {

CopyPiece piece(const void* remote, void* card, uint32_t bytes, DmaToken token,
                bool to_card = true) {
  return {getpid(),
          -1,
          emulator::RegionTable::kByNumber,
          reinterpret_cast<uintptr_t>(remote),
          static_cast<uint8_t*>(card),
          bytes,
          token,
          to_card,
          false};
}

void copy_all(std::vector<CopyPiece>& pieces) {
  std::vector<CopyPiece*> pointers;
  for (CopyPiece& each : pieces) pointers.push_back(&each);
  copy_pieces(pointers.data(), static_cast<uint32_t>(pointers.size()));
}

// Until `count` pieces were taken; their tokens, negative for those that failed.
std::vector<int> take(CopyLane& lane, size_t count) {
  std::vector<int> tokens;
  while (tokens.size() < count) {
    const CopyPiece* const done = lane.take();
    if (done == nullptr) {
      std::this_thread::yield();
      continue;
    }
    const auto token = static_cast<int>(done->token);
    tokens.push_back(done->ok ? token : -token);
  }
  return tokens;
}

class OutOfReach {
 public:
  OutOfReach() : page_(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~OutOfReach() { munmap(page_, 4096); }
  OutOfReach(const OutOfReach&) = delete;
  OutOfReach& operator=(const OutOfReach&) = delete;
  [[nodiscard]] void* page() const { return page_; }

 private:
  void* page_;
};

TEST(CopyPieces, EachIsJudgedAlone) {
  const OutOfReach nowhere;
  std::vector<uint8_t> host(400);
  std::iota(host.begin(), host.end(), uint8_t{1});
  std::vector<uint8_t> card(400);
  std::vector<CopyPiece> pieces = {
      piece(&host[0], &card[0], 100, 1),        piece(nowhere.page(), &card[100], 50, 2),
      piece(nowhere.page(), &card[150], 50, 3), piece(&host[200], &card[200], 0, 4),
      piece(&host[200], &card[200], 100, 5),    piece(nowhere.page(), &card[300], 8, 6)};
  copy_all(pieces);
  std::vector<bool> ok;
  for (const CopyPiece& each : pieces) ok.push_back(each.ok);
  EXPECT_EQ(ok, (std::vector<bool>{true, false, false, true, true, false}));
  std::vector<uint8_t> expected(400);
  std::memcpy(&expected[0], &host[0], 100);
  std::memcpy(&expected[200], &host[200], 100);
  EXPECT_EQ(card, expected);
}

TEST(CopyPieces, SideBySideEachIsJudgedAlone) {
  constexpr size_t kPage = 4096;
  constexpr uint32_t kBytes = 3000;
  auto* const host = static_cast<uint8_t*>(
      mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(host, MAP_FAILED);
  std::iota(host, host + 3 * kPage, uint8_t{1});
  std::vector<uint8_t> expected(4 * kBytes);
  std::memcpy(&expected[0], host, kBytes);
  std::memcpy(&expected[3 * kBytes], host + 3 * kBytes, kBytes);
  ASSERT_EQ(mprotect(host + kPage, kPage, PROT_NONE), 0);
  std::vector<uint8_t> card(4 * kBytes);
  std::vector<CopyPiece> pieces;
  for (uint32_t i = 0; i < 4; i++)
    pieces.push_back(piece(host + i * kBytes, &card[i * kBytes], kBytes, i + 1));
  copy_all(pieces);
  std::vector<bool> ok;
  for (const CopyPiece& each : pieces) ok.push_back(each.ok);
  EXPECT_EQ(ok, (std::vector<bool>{true, false, false, true}));
  // Of what failed some may have come.
  std::memset(&card[kBytes], 0, 2 * kBytes);
  EXPECT_EQ(card, expected);
  munmap(host, 3 * kPage);
}

// It is not kept out by protection (mprotect): what nobody can reach is a page behind the end of
// its file.
TEST(CopyPieces, ByADescriptorEachIsJudgedAlone) {
  constexpr size_t kPage = 4096;
  constexpr uint32_t kBytes = 3000;
  const int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  const int empty = memfd_create("empty", MFD_CLOEXEC);
  ASSERT_GE(memory, 0);
  ASSERT_GE(empty, 0);
  auto* const host = static_cast<uint8_t*>(
      mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(host, MAP_FAILED);
  std::iota(host, host + 3 * kPage, uint8_t{1});
  std::vector<uint8_t> expected(5 * kBytes);
  std::memcpy(&expected[0], host, kBytes);
  std::memcpy(&expected[3 * kBytes], host + 3 * kBytes, kBytes);
  std::memcpy(&expected[4 * kBytes], host, kBytes);
  ASSERT_EQ(mmap(host + kPage, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, empty, 0),
            host + kPage);
  std::vector<uint8_t> card(5 * kBytes);
  std::vector<CopyPiece> pieces;
  for (uint32_t i = 0; i < 4; i++)
    pieces.push_back(piece(host + i * kBytes, &card[i * kBytes], kBytes, i + 1));
  pieces.push_back(piece(host, &card[4 * kBytes], kBytes, 5));
  for (CopyPiece& each : pieces) each.memory = memory;
  copy_all(pieces);
  std::vector<bool> ok;
  for (const CopyPiece& each : pieces) ok.push_back(each.ok);
  EXPECT_EQ(ok, (std::vector<bool>{true, false, false, true, true}));
  std::memset(&card[kBytes], 0, 2 * kBytes);
  EXPECT_EQ(card, expected);
  uint8_t back[] = {7, 8};
  std::vector<CopyPiece> written = {piece(host, back, 1, 1, false),
                                    piece(host + 1, back + 1, 1, 2, false)};
  for (CopyPiece& each : written) each.memory = memory;
  copy_all(written);
  EXPECT_TRUE(written[0].ok && written[1].ok);
  EXPECT_EQ(std::memcmp(host, back, 2), 0);
  munmap(host, 3 * kPage);
  close(memory);
  close(empty);
}

TEST(CopyPieces, NothingIsCopiedOfWhatIsOutOfReach) {
  uint8_t host[8] = {1};
  uint8_t card[8] = {};
  std::vector<CopyPiece> pieces = {piece(host, card, 4, 1), piece(&host[4], &card[4], 4, 2)};
  for (CopyPiece& each : pieces) each.memory = emulator::RegionTable::kOutOfReach;
  copy_all(pieces);
  EXPECT_FALSE(pieces[0].ok || pieces[1].ok);
  EXPECT_EQ(card[0], 0);
}

TEST(CopyPieces, WritesToTheHost) {
  const OutOfReach nowhere;
  std::vector<uint8_t> host(16);
  std::vector<uint8_t> card(16, 0x77);
  std::vector<CopyPiece> pieces = {piece(nowhere.page(), &card[0], 8, 1, false),
                                   piece(&host[8], &card[0], 8, 2, false)};
  copy_all(pieces);
  EXPECT_FALSE(pieces[0].ok);
  EXPECT_TRUE(pieces[1].ok);
  EXPECT_EQ(host, (std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 0, 0, 0x77, 0x77, 0x77, 0x77, 0x77, 0x77,
                                        0x77, 0x77}));
}

// A descriptor of a process that is gone.
class DeadProcess {
 public:
  DeadProcess() {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, static_cast<long>(child), 0L));
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
  }
  ~DeadProcess() { close(pidfd_); }
  DeadProcess(const DeadProcess&) = delete;
  DeadProcess& operator=(const DeadProcess&) = delete;
  [[nodiscard]] int pidfd() const { return pidfd_; }

 private:
  int pidfd_ = -1;
};

class DeadCopyTest : public testing::Test {
 protected:
  // Of this process, but for the descriptor: as if its number had been another's before.
  int copy(int pidfd) {
    CopyPiece each = piece(host_, card_, 8, 1);
    each.pidfd = pidfd;
    lane_->add(each);
    lane_->work();  // unless a worker does
    return take(*lane_, 1).front();
  }

  CopyPool pool_{1};
  CopyLane* lane_ = pool_.acquire();
  DeadProcess dead_;
  uint8_t host_[8] = {1};
  uint8_t card_[8] = {};
};

TEST_F(DeadCopyTest, NothingIsCopied) {
  EXPECT_EQ(copy(dead_.pidfd()), -1);
  EXPECT_EQ(card_[0], 0);
  EXPECT_EQ(copy(-1), 1);
  EXPECT_EQ(card_[0], 1);
}

TEST_F(DeadCopyTest, WhoWasThereIsLookedForAgain) {
  ASSERT_EQ(copy(-1), 1);
  // Only time tells: the lane asks the system's clock. However late this wakes, it is later still.
  std::this_thread::sleep_for(2 * CopyLane::kNumberLasts);
  EXPECT_EQ(copy(dead_.pidfd()), -1);
}

TEST_F(DeadCopyTest, AnotherClientIsLookedForAtOnce) {
  ASSERT_EQ(copy(-1), 1);
  pool_.release(lane_);
  ASSERT_EQ(pool_.acquire(), lane_);
  EXPECT_EQ(copy(dead_.pidfd()), -1);
}

TEST(CopyPool, ManyPiecesInOrder) {
  CopyPool pool(4);
  CopyLane* const lane = pool.acquire();
  ASSERT_NE(lane, nullptr);
  std::vector<uint32_t> host(5000);
  std::iota(host.begin(), host.end(), 1u);
  std::vector<uint32_t> card(5000);
  std::vector<uint32_t> back(5000);
  std::vector<uint32_t> packets(5000);
  std::iota(packets.begin(), packets.end(), 5001u);
  const std::vector<uint32_t> expected_card = host;
  const std::vector<uint32_t> expected_back = packets;
  const OutOfReach nowhere;
  uint32_t added = 0;
  for (uint32_t taken = 0; taken < 3 * host.size();) {
    // As many at once as a card may have; in turn one goes in, one fails and one comes out.
    for (; added < 3 * host.size() && added - taken < CONFIG_DMA_RECORDS; added++) {
      const uint32_t i = added / 3;
      if (added % 3 == 0) lane->add(piece(&host[i], &card[i], 4, added + 1));
      if (added % 3 == 1) lane->add(piece(nowhere.page(), &card[i], 4, added + 1));
      if (added % 3 == 2) lane->add(piece(&back[i], &packets[i], 4, added + 1, false));
    }
    pool.notify();
    const int expected = static_cast<int>(taken + 1) * (taken % 3 == 1 ? -1 : 1);
    ASSERT_EQ(take(*lane, 1).front(), expected);
    taken++;
  }
  EXPECT_EQ(card, expected_card);
  EXPECT_EQ(back, expected_back);
  EXPECT_EQ(lane->outstanding(), 0u);
  pool.release(lane);
  while (!pool.stop()) continue;  // however late its workers run
}

TEST(CopyPool, LanesRunOutAndComeBack) {
  CopyPool pool(2);
  CopyLane* const first = pool.acquire();
  CopyLane* const second = pool.acquire();
  EXPECT_NE(first, second);
  EXPECT_EQ(pool.acquire(), nullptr);
  pool.release(first);
  EXPECT_EQ(pool.acquire(), first);
}

TEST(CopyPool, ParkedWorkersComeBack) {
  CopyPool pool(1);
  CopyLane* const lane = pool.acquire();
  uint8_t host[8] = {1};
  uint8_t card[8] = {};
  // Each is waited for, so the worker is lingering or parking at the next; after every hundredth it
  // is parked.
  for (int i = 1; i < 2000; i++) {
    lane->add(piece(host, card, 8, static_cast<DmaToken>(i)));
    pool.notify();
    ASSERT_EQ(take(*lane, 1).front(), i);
    while (i % 100 == 0 && pool.awake() > 0) std::this_thread::yield();
  }
  EXPECT_GE(pool.unparks(), 19u);
}

TEST(CopyPool, ALoopThatSleepsIsWoken) {
  CopyPool pool(1);
  CopyLane* const lane = pool.acquire();
  uint8_t host[8] = {1};
  uint8_t card[8] = {};
  for (int i = 1; i < 100; i++) {
    pool.set_loop_sleeping(true);
    lane->add(piece(host, card, 8, static_cast<DmaToken>(i)));
    pool.notify();
    pollfd wait = {pool.event_fd(), POLLIN, 0};
    ASSERT_EQ(poll(&wait, 1, 60'000), 1);
    uint64_t count = 0;
    ASSERT_EQ(read(pool.event_fd(), &count, sizeof(count)), ssize_t{sizeof(count)});
    ASSERT_EQ(take(*lane, 1).front(), i);
  }
}

class StuckCopyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!stuck_.available()) GTEST_SKIP() << "the kernel gives this user no userfaultfd";
    lane_ = pool_.acquire();
    other_ = pool_.acquire();
  }
  // A piece that does not return, alone in a worker's hands, and pieces behind it.
  void get_stuck(uint32_t pieces) {
    for (uint32_t i = 1; i <= pieces; i++) {
      lane_->add(piece(reinterpret_cast<void*>(stuck_.address()), card_, 8, i));
      pool_.notify();
      while (!lane_->in_hand()) std::this_thread::yield();
    }
  }

  test::StuckPage stuck_;
  CopyPool pool_{2};
  CopyLane* lane_ = nullptr;
  CopyLane* other_ = nullptr;
  uint8_t card_[8] = {};
};

TEST_F(StuckCopyTest, HoldsUpNobodyElse) {
  get_stuck(1);
  pool_.count_stuck(true);
  uint8_t host[8] = {5};
  uint8_t card[8] = {};
  for (int i = 1; i < 500; i++) {
    other_->add(piece(host, card, 8, static_cast<DmaToken>(i)));
    pool_.notify();
    ASSERT_EQ(take(*other_, 1).front(), i);
  }
  EXPECT_EQ(card[0], 5);
  EXPECT_TRUE(lane_->in_hand());
  EXPECT_EQ(lane_->take(), nullptr);
  stuck_.let_go();
  EXPECT_EQ(take(*lane_, 1), std::vector<int>{1});
}

TEST_F(StuckCopyTest, WhatWasNotBegunFailsWhenTheLaneIsAbandoned) {
  const uint32_t pieces = CopyLane::kPieces;
  get_stuck(pieces);
  lane_->abandon();
  // All but what is in the worker's hands.
  std::vector<int> expected;
  for (uint32_t i = 2; i <= pieces; i++) expected.push_back(-static_cast<int>(i));
  EXPECT_EQ(take(*lane_, expected.size()), expected);
  EXPECT_EQ(lane_->take(), nullptr);
  EXPECT_EQ(lane_->outstanding(), 1u);
  EXPECT_TRUE(lane_->in_hand());
  stuck_.let_go();
  EXPECT_EQ(take(*lane_, 1), std::vector<int>{1});
  EXPECT_EQ(lane_->outstanding(), 0u);
  EXPECT_FALSE(lane_->in_hand());
  // A new client finds an empty lane.
  pool_.release(lane_);
  EXPECT_EQ(pool_.acquire(), lane_);
  EXPECT_FALSE(lane_->abandoned());
  uint8_t host[8] = {9};
  lane_->add(piece(host, card_, 8, 77));
  pool_.notify();
  EXPECT_EQ(take(*lane_, 1), std::vector<int>{77});
  EXPECT_EQ(card_[0], 9);
}

// A loop of the test's, whose turns are calls of `turns` one after the other, whoever it is.
void run_turns(CopyPool& pool, Relay& relay, const std::vector<std::function<void()>>& turns) {
  size_t next = 0;
  pool.set_relay(&relay);
  const auto serve = [&] {
    pool.resume();
    while (next < turns.size()) {
      while (!relay.may_leave()) std::this_thread::yield();
      turns[next++]();
      if (pool.has_own() && !pool.copy_own()) return false;
    }
    return true;
  };
  while (!relay.run(serve, [](Relay::Part) {})) continue;
}

TEST(CopyPool, TheLoopCopiesWhatIsLittle) {
  CopyPool pool(1);
  CopyLane* const lane = pool.acquire();
  std::vector<uint8_t> host(size_t{1} << 20, 5);
  std::vector<uint8_t> card(host.size());
  while (pool.awake() > 0) std::this_thread::yield();
  Relay relay;
  const auto add = [&](uint32_t pieces, uint32_t bytes) {
    for (uint32_t i = 0; i < pieces; i++) lane->add(piece(host.data(), card.data(), bytes, i + 1));
    pool.serve(lane, pieces, uint64_t{pieces} * bytes);
  };
  run_turns(pool, relay,
            {[&] {
               add(2, 64);
               EXPECT_TRUE(pool.has_own());
               EXPECT_FALSE(lane->has_done()) << "not before the turn is over";
             },
             [&] {
               EXPECT_EQ(take(*lane, 2), (std::vector<int>{1, 2}));
               EXPECT_FALSE(pool.has_own());
               add(1, 1 << 20);  // too long
               ASSERT_FALSE(pool.has_own());
               EXPECT_EQ(take(*lane, 1), std::vector<int>{1});
               add(CopyLane::kBatch + 1, 1);  // too many
               ASSERT_FALSE(pool.has_own());
               EXPECT_EQ(take(*lane, CopyLane::kBatch + 1).size(), CopyLane::kBatch + 1);
             }});
  EXPECT_EQ(card, host);
  EXPECT_EQ(relay.reliefs(), 0u);
}

TEST_F(StuckCopyTest, TheLoopIsRelievedAndCopiesNothingOfThatLaneAnyMore) {
  uint8_t host[8] = {7};
  uint8_t card[8] = {};
  while (pool_.awake() > 0) std::this_thread::yield();  // or a worker may be the first
  Relay relay;
  run_turns(pool_, relay,
            {[&] {
               other_->add(piece(host, card, 8, 1));
               pool_.serve(other_, 1, 8);
               lane_->add(piece(reinterpret_cast<void*>(stuck_.address()), card_, 8, 2));
               pool_.serve(lane_, 1, 8);
               other_->add(piece(host, card, 8, 3));
               pool_.serve(other_, 1, 8);  // behind it
             },
             [&] {
               EXPECT_TRUE(lane_->in_hand());
               EXPECT_TRUE(lane_->blocks());
               EXPECT_FALSE(other_->blocks());
               pool_.count_stuck(true);
               EXPECT_EQ(take(*other_, 2), (std::vector<int>{1, 3}));
               lane_->add(piece(host, card, 8, 4));
               pool_.serve(lane_, 1, 8);
               EXPECT_FALSE(pool_.has_own());
               other_->add(piece(host, card, 8, 5));
               pool_.serve(other_, 1, 8);
               EXPECT_TRUE(pool_.has_own());
             },
             [&] {
               EXPECT_EQ(take(*other_, 1), std::vector<int>{5});
               stuck_.let_go();
               EXPECT_EQ(take(*lane_, 2), (std::vector<int>{2, 4}));
               pool_.count_stuck(false);
             }});
  EXPECT_EQ(card[0], 7);
  EXPECT_EQ(relay.reliefs(), 1u);
  // Its next client is another one.
  pool_.release(lane_);
  EXPECT_FALSE(lane_->blocks());
}

TEST(CopyHands, TheLeastIsLeftToEachHoweverManyAreStuck) {
  CopyHands hands;
  for (uint32_t i = 0; i < CONFIG_CONTEXTS; i++) hands.take(CopyLane::kBatch);
  EXPECT_EQ(hands.take(CopyHands::kMost), CopyHands::kLeast);
  EXPECT_EQ(hands.take(1), 1u);
  // Half of the records, all in all, and not fewer than can be shared out.
  EXPECT_GT(CopyHands::kMost + CONFIG_CONTEXTS * (CopyHands::kLeast + 1), CONFIG_DMA_RECORDS / 2u);
}

// As many contexts as a card has are stuck, with all that they may have under way, and then ended.
TEST(CopyPool, WhatIsStuckLeavesHalfOfTheRecords) {
  test::StuckPage stuck;
  if (!stuck.available()) GTEST_SKIP() << "the kernel gives this user no userfaultfd";
  CopyPool pool(CONFIG_CONTEXTS + 1);
  CopyHands hands;
  std::vector<CopyLane*> lanes;
  std::vector<uint32_t> taken;
  uint8_t card[8] = {};
  for (uint32_t i = 0; i <= CONFIG_CONTEXTS; i++)
    lanes.emplace_back(pool.acquire())->set_hands(&hands);
  CopyLane* const other = lanes.back();
  lanes.pop_back();
  while (pool.awake() > 0) std::this_thread::yield();  // or they take what is half added
  for (CopyLane* const lane : lanes) {
    for (uint32_t i = 1; i <= CopyLane::kPieces; i++)
      lane->add(piece(reinterpret_cast<void*>(stuck.address()), card, 8, i));
    while (!lane->in_hand()) {
      pool.notify();
      std::this_thread::yield();
    }
    pool.count_stuck(true);
    lane->abandon();
    while (lane->take() != nullptr) continue;
    taken.push_back(lane->outstanding());
  }
  EXPECT_EQ(taken.front(), std::min(CopyLane::kBatch, CopyHands::kMost / 2));
  EXPECT_EQ(*std::min_element(taken.begin(), taken.end()),
            std::min(CopyLane::kBatch, CopyHands::kLeast));
  EXPECT_LE(std::accumulate(taken.begin(), taken.end(), 0u), uint32_t{CONFIG_DMA_RECORDS} / 2);
  // One that is not stuck gets on, and has a batch again when they have let go.
  uint8_t host[8] = {5};
  const auto copy = [&](uint32_t pieces) {
    for (uint32_t i = 1; i <= pieces; i++) other->add(piece(host, card, 8, i));
    pool.notify();
    EXPECT_EQ(take(*other, pieces).size(), pieces);
  };
  copy(3);
  stuck.let_go();
  for (uint32_t i = 0; i < lanes.size(); i++) take(*lanes[i], taken[i]);
  EXPECT_EQ(hands.take(CopyLane::kBatch), std::min(CopyLane::kBatch, CopyHands::kMost / 2));
  while (!pool.stop()) continue;
}

TEST_F(StuckCopyTest, IsToldApartAtTheEnd) {
  get_stuck(1);
  EXPECT_FALSE(pool_.stop());
  stuck_.let_go();
  while (!pool_.stop()) continue;  // however late its worker runs
}

}  // namespace
}  // namespace peal::nic
