// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/common/host_copies.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace peal::emulator {
namespace {

constexpr uint32_t kPiece = HostCopies::kLeast;
constexpr uint64_t kCache = 64 * kPiece;
// What goes past the caches of a piece that should, where the processor can do so.
constexpr uint64_t kPast = kHasNontemporal ? kPiece : 0;
// So many pieces between two writes of a place are as much as is found again.
constexpr uint32_t kFoundAgain = 40;

class HostCopiesTest : public ::testing::Test {
 protected:
  // How much of it goes past the caches.
  uint64_t write(uint32_t piece, uint32_t bytes = kPiece) {
    const uint64_t before = copies_->bytes_past();
    copies_->write(memory_.data() + uint64_t{piece} * kPiece, card_.data(), bytes);
    return copies_->bytes_past() - before;
  }
  void copy_between(uint32_t to, uint32_t from) {
    copies_->between(memory_.data() + uint64_t{to} * kPiece,
                     memory_.data() + uint64_t{from} * kPiece, kPiece);
  }
  void read(uint32_t pieces) {
    for (uint32_t i = 0; i < pieces; i++) copies_->read(card_.data(), memory_.data(), kPiece);
  }

  std::unique_ptr<HostCopies> copies_ = std::make_unique<HostCopies>(kCache);
  std::vector<uint8_t> memory_ = std::vector<uint8_t>(128 * kPiece);
  std::vector<uint8_t> card_ = std::vector<uint8_t>(2 * kPiece);
};

TEST_F(HostCopiesTest, WhatWasNeverWrittenIsInNoCache) { EXPECT_EQ(write(5), kPast); }

TEST_F(HostCopiesTest, WhatWasJustWrittenIsThere) {
  write(5);
  EXPECT_EQ(write(5), 0u);
}

TEST_F(HostCopiesTest, WhatIsCopiedMeanwhileDrivesItOut) {
  for (const bool reads : {false, true}) {
    for (const uint32_t between : {kFoundAgain - 2, kFoundAgain, 2 * kFoundAgain}) {
      copies_ = std::make_unique<HostCopies>(kCache);
      write(0);
      if (reads) {
        read(between);
      } else {
        for (uint32_t i = 1; i <= between; i++) write(i);
      }
      EXPECT_EQ(write(0), between < kFoundAgain ? 0u : kPast) << reads << ", " << between;
    }
  }
}

// What goes from host to host is read as well.
TEST_F(HostCopiesTest, WhatIsCopiedBetweenHostsCountsTwice) {
  for (const uint32_t between : {kFoundAgain / 2 - 1, kFoundAgain / 2}) {
    copies_ = std::make_unique<HostCopies>(kCache);
    write(0);
    for (uint32_t i = 1; i <= between; i++) copy_between(i, 64 + i);
    EXPECT_EQ(write(0), between < kFoundAgain / 2 ? 0u : kPast) << between;
  }
}

// Where it is for several it is read once.
TEST_F(HostCopiesTest, WhatSeveralCopyFromCountsOnce) {
  for (const uint32_t between : {kFoundAgain - 2, kFoundAgain - 1}) {
    copies_ = std::make_unique<HostCopies>(kCache);
    write(0);
    for (uint32_t i = 1; i <= between; i++) copy_between(i, 64);
    EXPECT_EQ(write(0), between < kFoundAgain - 1 ? 0u : kPast) << between;
  }
}

// And where nobody has for a while it is read anew: half of what is found again.
TEST_F(HostCopiesTest, WhatWasCopiedFromAWhileAgoCountsAgain) {
  copy_between(1, 64);
  for (uint32_t i = 2; i <= kFoundAgain / 2 + 2; i++) write(i);
  write(0);
  copy_between(1, 64);
  for (uint32_t i = 2; i <= kFoundAgain - 1; i++) write(i);
  EXPECT_EQ(write(0), kPast);
}

// Every piece in turn, again and again: all of them or none.
TEST_F(HostCopiesTest, APassThatFitsAndOneThatDoesNot) {
  for (const uint32_t pieces : {kFoundAgain, kFoundAgain + 1}) {
    for (uint32_t round = 0; round < 3; round++) {
      for (uint32_t i = 0; i < pieces; i++) {
        const bool past = round == 0 || pieces > kFoundAgain;
        if (round == 0 && pieces > kFoundAgain) {
          write(i);  // some of them by the pass before
        } else {
          ASSERT_EQ(write(i), past ? kPast : 0u) << pieces << ", " << round << ", " << i;
        }
      }
    }
  }
}

TEST_F(HostCopiesTest, WhatIsShortGoesToTheCache) {
  EXPECT_EQ(write(5, kPiece - 1), 0u);
  EXPECT_EQ(write(6, 2 * kPiece), 2 * kPast);
}

TEST_F(HostCopiesTest, WithoutACacheThatIsKnownNothingGoesPastIt) {
  copies_ = std::make_unique<HostCopies>(0);
  EXPECT_EQ(write(5), 0u);
  read(1000);
  EXPECT_EQ(write(5), 0u);
}

TEST_F(HostCopiesTest, EitherWayItArrives) {
  for (uint32_t i = 0; i < kPiece; i++) card_[i] = static_cast<uint8_t>(i * 7 + 1);
  for (const uint64_t past : {kPast, uint64_t{0}}) {
    std::fill(memory_.begin(), memory_.end(), uint8_t{0});
    ASSERT_EQ(write(3), past);
    EXPECT_EQ(memory_[3 * kPiece - 1], 0);
    EXPECT_TRUE(std::equal(card_.begin(), card_.begin() + kPiece, memory_.begin() + 3 * kPiece));
    EXPECT_EQ(memory_[4 * kPiece], 0);
    std::vector<uint8_t> back(kPiece);
    copies_->read(back.data(), memory_.data() + 3 * kPiece, kPiece);
    EXPECT_TRUE(std::equal(back.begin(), back.end(), card_.begin()));
  }
}

}  // namespace
}  // namespace peal::emulator
