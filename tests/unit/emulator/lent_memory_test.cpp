// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/lent_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/unit/emulator/two_cards.h"

namespace peal::nic {
namespace {

constexpr uint32_t kBytes = LentMemory::kLeast + 64;
constexpr LenderId kWho = 3;
constexpr LenderId kAnother = 4;

// Two cards, of which one lends, and a packet to the other.
class LentMemoryTest : public ::testing::Test {
 protected:
  LentMemoryTest() {
    test::start_dpdk();
    EXPECT_EQ(pool_.create(2 * LentMemory::kPlaces), "");
    memory_.assign(kBytes, 1);
    packet_ = fresh();
  }
  ~LentMemoryTest() override {
    if (packet_ != nullptr) pool_.release(packet_);
  }

  Packet* fresh() {
    Packet* packet = pool_.allocate();
    packet->payload_bytes = kBytes;
    std::memset(packet->payload, 0, kBytes);
    return packet;
  }
  void lend(LenderId who = kWho) { lender_.lend(packet_, memory_.data(), who); }
  // All bytes of the payload, when they are all the same.
  static int payload_of(const Packet* packet) {
    const std::vector<uint8_t> same(kBytes, packet->payload[0]);
    return std::memcmp(packet->payload, same.data(), kBytes) == 0 ? packet->payload[0] : -1;
  }
  static bool is_in(const LentMemory::Claim& claim, const Packet* packet) {
    return claim.from == packet->payload && !claim.lent && !claim.ends;
  }
  [[nodiscard]] bool is_at_host(const LentMemory::Claim& claim, bool ends) const {
    return claim.from == memory_.data() && claim.lent && claim.ends == ends;
  }
  [[nodiscard]] LentMemory::Claim claim(const LentMemory& card) const {
    return card.claim(packet_, packet_->payload, kBytes);
  }

  PacketPool pool_;
  LentMemory lender_;
  LentMemory receiver_;
  std::vector<uint8_t> memory_;
  Packet* packet_;
};

TEST_F(LentMemoryTest, WhatNobodyLendsIsInThePacket) {
  EXPECT_FALSE(LentMemory::was_lent(packet_));
  EXPECT_FALSE(LentMemory::is_delivered(packet_));
  EXPECT_TRUE(is_in(claim(receiver_), packet_));
}

TEST_F(LentMemoryTest, BytesStayWhereTheyAreUntilAnotherCardHasThem) {
  lend();
  EXPECT_TRUE(LentMemory::was_lent(packet_));
  EXPECT_FALSE(LentMemory::is_delivered(packet_));
  EXPECT_TRUE(is_at_host(claim(receiver_), true));
  LentMemory::deliver(packet_);
  EXPECT_TRUE(LentMemory::is_delivered(packet_));
  lender_.take_back(kWho);  // waits for nobody
  EXPECT_EQ(payload_of(packet_), 0);
}

TEST_F(LentMemoryTest, WhatWasDeliveredIsNowhere) {
  lend();
  ASSERT_TRUE(is_at_host(claim(receiver_), true));
  LentMemory::deliver(packet_);
  EXPECT_EQ(claim(receiver_).from, nullptr);
  EXPECT_FALSE(receiver_.bring(packet_));
  // But for its own card, whose operation is not over.
  EXPECT_TRUE(is_at_host(claim(lender_), false));
  EXPECT_TRUE(lender_.bring(packet_));
  EXPECT_EQ(payload_of(packet_), 1);
}

TEST_F(LentMemoryTest, WhatIsTakenBackIsInThePacket) {
  lend();
  lender_.take_back(kAnother);
  EXPECT_EQ(payload_of(packet_), 0);
  lender_.take_back(kWho);
  memory_.assign(kBytes, 2);
  EXPECT_EQ(payload_of(packet_), 1);
  EXPECT_TRUE(is_in(claim(receiver_), packet_));
  EXPECT_FALSE(LentMemory::is_delivered(packet_));
}

TEST_F(LentMemoryTest, WhoeverLentItIsTakenBackWithTheMemory) {
  lend();
  // What is lent, and what is before it and behind it, which is nobody else's.
  const std::vector<uint8_t> others(3 * kBytes, 2);
  const uint8_t* const lent = others.data() + kBytes;
  Packet* const other = fresh();
  lender_.lend(other, lent, kAnother);
  lender_.take_back_from(lent + kBytes, kBytes);
  lender_.take_back_from(lent - kBytes, kBytes);
  EXPECT_EQ(payload_of(other), 0);
  lender_.take_back_from(lent, kBytes);
  EXPECT_EQ(payload_of(other), 2);
  EXPECT_EQ(payload_of(packet_), 0);
  pool_.release(other);
}

TEST_F(LentMemoryTest, ALenderThatEndsLeavesNothingOut) {
  {
    LentMemory lender;
    lender.lend(packet_, memory_.data(), kWho);
  }
  EXPECT_TRUE(is_in(claim(receiver_), packet_));
  EXPECT_EQ(payload_of(packet_), 1);
}

TEST_F(LentMemoryTest, TheLendersOwnCardTakesNothingAway) {
  lend();
  EXPECT_TRUE(is_at_host(claim(lender_), false));
  EXPECT_TRUE(is_at_host(claim(receiver_), true));
  LentMemory::deliver(packet_);
}

TEST_F(LentMemoryTest, PacketsThatShareAPayloadShareWhatBecomesOfIt) {
  Packet* const shared = pool_.share(packet_);
  lend();
  const LentMemory::Claim claimed = receiver_.claim(shared, shared->payload, kBytes);
  EXPECT_TRUE(is_at_host(claimed, true));
  LentMemory::deliver(shared);
  EXPECT_TRUE(LentMemory::is_delivered(packet_));
  pool_.release(shared);
}

TEST_F(LentMemoryTest, APartIsTakenFromThePacket) {
  lend();
  const LentMemory::Claim part = receiver_.claim(packet_, packet_->payload + 64, 64);
  EXPECT_EQ(part.from, packet_->payload + 64);
  EXPECT_FALSE(part.lent);
  EXPECT_EQ(payload_of(packet_), 1);
  EXPECT_TRUE(is_in(claim(receiver_), packet_));
}

TEST_F(LentMemoryTest, AHeadersBytesAreItsOwn) {
  lend();
  const auto* const header = reinterpret_cast<const uint8_t*>(packet_->header);
  EXPECT_EQ(receiver_.claim(packet_, header, sizeof(*packet_->header)).from, header);
  EXPECT_EQ(payload_of(packet_), 0);
  EXPECT_TRUE(is_at_host(claim(receiver_), true));
  LentMemory::deliver(packet_);
}

TEST_F(LentMemoryTest, WhoeverCopiesLaterFindsThemInThePacket) {
  lend();
  EXPECT_TRUE(receiver_.bring(packet_));
  memory_.assign(kBytes, 2);
  lender_.take_back(kWho);
  EXPECT_EQ(payload_of(packet_), 1);
  EXPECT_FALSE(LentMemory::is_delivered(packet_));
}

// A packet that nobody has any more may be another one by then.
TEST_F(LentMemoryTest, WhatIsLetGoIsNotTakenBack) {
  lend();
  pool_.release(packet_);
  packet_ = fresh();
  lender_.take_back(kWho);
  EXPECT_EQ(payload_of(packet_), 0);
  EXPECT_FALSE(LentMemory::was_lent(packet_));
}

TEST_F(LentMemoryTest, PlacesComeBack) {
  lend();
  for (uint32_t i = 0; i < 3 * LentMemory::kPlaces; i++) {
    Packet* const other = fresh();
    lender_.lend(other, memory_.data(), kWho);
    if (i % 2 == 0) {
      ASSERT_TRUE(receiver_.claim(other, other->payload, kBytes).ends);
      LentMemory::deliver(other);
    }
    pool_.release(other);
    // The first is the oldest, until its place is needed.
    if (i + 2 < LentMemory::kPlaces) {
      EXPECT_EQ(payload_of(packet_), 0) << i;
    }
  }
  EXPECT_EQ(payload_of(packet_), 1);
}

TEST_F(LentMemoryTest, WhereThereIsNoPlaceTheOldestIsTakenBack) {
  lend();
  std::vector<Packet*> others;
  for (uint32_t i = 0; i < LentMemory::kPlaces; i++) {
    EXPECT_EQ(payload_of(packet_), 0) << i;
    others.push_back(fresh());
    lender_.lend(others.back(), memory_.data(), kWho);
  }
  EXPECT_EQ(payload_of(packet_), 1);
  EXPECT_EQ(payload_of(others.front()), 0);
  for (Packet* other : others) pool_.release(other);
}

// --- for several cards ---

class LentToSeveral : public LentMemoryTest {
 protected:
  LentToSeveral() { lender_.lend(packet_, memory_.data(), kWho, ReadFor::kSeveralCards); }
};

TEST_F(LentToSeveral, EachCopiesFromTheHostAndNobodyTakesItAway) {
  const LentMemory third;
  EXPECT_TRUE(is_at_host(claim(receiver_), true));
  EXPECT_TRUE(is_at_host(claim(third), true));
  LentMemory::deliver(packet_);
  LentMemory::deliver(packet_);
  EXPECT_FALSE(LentMemory::is_delivered(packet_));
  EXPECT_TRUE(is_at_host(claim(receiver_), true));
  LentMemory::deliver(packet_);
  EXPECT_TRUE(is_at_host(claim(lender_), false));
  EXPECT_EQ(payload_of(packet_), 0);
}

TEST_F(LentToSeveral, APartToo) {
  const LentMemory::Claim claimed = receiver_.claim(packet_, packet_->payload + 64, 64);
  EXPECT_EQ(claimed.from, memory_.data() + 64);
  EXPECT_TRUE(claimed.lent && claimed.ends);
  LentMemory::deliver(packet_);
}

TEST_F(LentToSeveral, WhatIsTakenBackIsInThePacket) {
  ASSERT_TRUE(is_at_host(claim(receiver_), true));
  LentMemory::deliver(packet_);
  lender_.take_back(kWho);
  memory_.assign(kBytes, 2);
  EXPECT_EQ(payload_of(packet_), 1);
  EXPECT_TRUE(is_in(claim(receiver_), packet_));
}

TEST_F(LentToSeveral, WhoeverCopiesLaterFindsThemInThePacket) {
  EXPECT_TRUE(receiver_.bring(packet_));
  memory_.assign(kBytes, 2);
  lender_.take_back(kWho);
  EXPECT_EQ(payload_of(packet_), 1);
  EXPECT_TRUE(is_in(claim(receiver_), packet_));
}

// (That it does not come is looked for over many turns of the processor; it fails for nobody.)
TEST_F(LentToSeveral, WhoBringsItWaitsForThoseWhoCopy) {
  ASSERT_TRUE(is_at_host(claim(receiver_), true));
  std::atomic<bool> brought{false};
  std::thread other([&] {
    const LentMemory third;
    brought = third.bring(packet_);
  });
  for (int i = 0; i < 2000; i++) std::this_thread::yield();
  EXPECT_FALSE(brought);
  LentMemory::deliver(packet_);
  other.join();
  EXPECT_TRUE(brought);
  EXPECT_EQ(payload_of(packet_), 1);
  EXPECT_TRUE(is_in(claim(receiver_), packet_));
}

TEST_F(LentToSeveral, WhatIsLetGoIsNotTakenBack) {
  Packet* const shared = pool_.share(packet_);
  pool_.release(packet_);
  EXPECT_TRUE(LentMemory::was_lent(shared));
  pool_.release(shared);
  packet_ = fresh();
  lender_.take_back(kWho);
  EXPECT_EQ(payload_of(packet_), 0);
}

TEST_F(LentToSeveral, PlacesServeEitherKind) {
  for (uint32_t i = 0; i < 2 * LentMemory::kPlaces; i++) {
    Packet* const other = fresh();
    lender_.lend(other, memory_.data(), kAnother,
                 i % 3 == 0 ? ReadFor::kSeveralCards : ReadFor::kOneCard);
    lender_.take_back(kAnother);
    ASSERT_EQ(payload_of(other), 1) << i;
    pool_.release(other);
  }
}

// One thread lends, takes back at some time and writes to its memory at once; the other one copies,
// puts off or lets go. Whatever comes first, nobody sees the next round's bytes.
TEST(LentMemoryOfLoops, TwoThreadsAgree) {
  constexpr uint32_t kRounds = 20'000;
  test::start_dpdk();
  PacketPool pool;
  ASSERT_EQ(pool.create(64, 2, 2), "");
  LentMemory lender;
  LentMemory receiver;
  std::vector<uint8_t> memory;
  std::atomic<Packet*> sent{nullptr};
  std::atomic<uint32_t> wrong{0};
  std::thread other([&] {
    std::vector<uint8_t> result(kBytes);
    for (uint32_t round = 1; round <= kRounds; round++) {
      Packet* packet = nullptr;
      while ((packet = sent.exchange(nullptr, std::memory_order_acquire)) == nullptr)
        std::this_thread::yield();
      const auto expected = static_cast<uint8_t>(round);
      if (round % 4 == 0) {
        receiver.bring(packet);
        std::memcpy(result.data(), packet->payload, kBytes);
      } else if (round % 4 != 3) {
        const LentMemory::Claim claim = receiver.claim(packet, packet->payload, kBytes);
        std::memcpy(result.data(), claim.from, kBytes);
        if (claim.ends) LentMemory::deliver(packet);
      }
      if (round % 4 != 3 && (result.front() != expected || result.back() != expected)) wrong++;
      pool.release(packet);
    }
  });
  for (uint32_t round = 1; round <= kRounds; round++) {
    while (sent.load(std::memory_order_relaxed) != nullptr) std::this_thread::yield();
    memory.assign(kBytes, static_cast<uint8_t>(round));
    Packet* const packet = pool.allocate();
    ASSERT_NE(packet, nullptr);
    packet->payload_bytes = kBytes;
    lender.lend(packet, memory.data(), kWho);
    sent.store(packet, std::memory_order_release);
    for (uint32_t pause = round % 64; pause > 0; pause--)
      std::atomic_signal_fence(std::memory_order_seq_cst);
    lender.take_back(kWho);
    memory.assign(kBytes, 0);
  }
  other.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(pool.in_use(), 0u);
}

// The same with two who copy, or put off, at once.
TEST(LentMemoryOfLoops, ThreeThreadsAgree) {
  constexpr uint32_t kRounds = 5'000;
  constexpr uint32_t kOthers = 2;
  test::start_dpdk();
  PacketPool pool;
  ASSERT_EQ(pool.create(64, kOthers + 1, kOthers + 1), "");
  LentMemory lender;
  std::vector<uint8_t> memory;
  std::array<std::atomic<Packet*>, kOthers> sent{};
  std::atomic<uint32_t> wrong{0};
  std::vector<std::thread> others;
  for (uint32_t who = 0; who < kOthers; who++) {
    others.emplace_back([&, who] {
      const LentMemory receiver;
      std::vector<uint8_t> result(kBytes);
      for (uint32_t round = 1; round <= kRounds; round++) {
        Packet* packet = nullptr;
        while ((packet = sent[who].exchange(nullptr, std::memory_order_acquire)) == nullptr)
          std::this_thread::yield();
        const auto expected = static_cast<uint8_t>(round);
        if (round % 8 == 4 * who && !receiver.bring(packet)) wrong++;
        // To its host, and to its channel.
        for (int copy = 0; copy < 2; copy++) {
          const LentMemory::Claim claim = receiver.claim(packet, packet->payload, kBytes);
          if (claim.from != nullptr) std::memcpy(result.data(), claim.from, kBytes);
          if (claim.ends) LentMemory::deliver(packet);
          const auto right = std::count(result.begin(), result.end(), expected);
          if (claim.from == nullptr || right != kBytes) wrong++;
        }
        pool.release(packet);
      }
    });
  }
  for (uint32_t round = 1; round <= kRounds; round++) {
    for (auto& place : sent)
      while (place.load(std::memory_order_relaxed) != nullptr) std::this_thread::yield();
    memory.assign(kBytes, static_cast<uint8_t>(round));
    Packet* const packet = pool.allocate();
    ASSERT_NE(packet, nullptr);
    packet->payload_bytes = kBytes;
    lender.lend(packet, memory.data(), kWho, ReadFor::kSeveralCards);
    for (auto& place : sent) place.store(pool.share(packet), std::memory_order_release);
    pool.release(packet);
    for (uint32_t pause = round % 512; pause > 0; pause--)
      std::atomic_signal_fence(std::memory_order_seq_cst);
    lender.take_back(kWho);
    memory.assign(kBytes, 0);
  }
  for (std::thread& other : others) other.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(pool.in_use(), 0u);
}

}  // namespace
}  // namespace peal::nic
