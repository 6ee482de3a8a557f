// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/same_numbers.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace peal::host {
namespace {

// Two arrays and their copies; the arrays begin behind whatever number lies in front of them.
struct Arrays {
  explicit Arrays(uint32_t numbers) : count(numbers) {
    for (uint32_t i = 0; i < count; i++) {
      first[1 + i] = 100 + i;
      second[1 + i] = 200 + i;
    }
    copy_numbers(copy, count, first + 1);
    copy_numbers(copies, count, first + 1, second + 1);
  }
  bool one() const { return all_same(count, copy, first + 1); }
  bool both() const { return all_same(count, copies, first + 1, second + 1); }

  uint32_t count;
  alignas(16) size_t first[32] = {};
  alignas(16) size_t second[32] = {};
  alignas(16) size_t copy[32] = {};
  alignas(16) size_t copies[64] = {};
};

// Whatever the number of ranks, and wherever it is: each of its bits counts, in either array.
TEST(SameNumbers, EveryNumberOfEveryCountIsCompared) {
  for (uint32_t count = 0; count <= 21; count++) {
    Arrays arrays(count);
    EXPECT_TRUE(arrays.one()) << count;
    EXPECT_TRUE(arrays.both()) << count;
    for (uint32_t i = 0; i < count; i++) {
      for (const size_t bit : {size_t{1}, size_t{1} << 63}) {
        arrays.first[1 + i] ^= bit;
        EXPECT_FALSE(arrays.one()) << i << " of " << count;
        EXPECT_FALSE(arrays.both()) << i << " of " << count;
        arrays.first[1 + i] ^= bit;
        arrays.second[1 + i] ^= bit;
        EXPECT_TRUE(arrays.one()) << i << " of " << count;
        EXPECT_FALSE(arrays.both()) << i << " of " << count;
        arrays.second[1 + i] ^= bit;
      }
    }
    arrays.first[0]++;
    arrays.first[1 + count]++;
    EXPECT_TRUE(arrays.both()) << "what lies in front and behind is nobody's";
  }
}

// The same difference in both arrays is a difference.
TEST(SameNumbers, DifferencesDoNotCancel) {
  Arrays arrays(8);
  arrays.first[1] ^= 1;
  arrays.second[1] ^= 1;
  arrays.first[3] ^= 1;
  EXPECT_FALSE(arrays.one());
  EXPECT_FALSE(arrays.both());
}

// Each number has a place of its own, and an array's even ones begin two that are compared as one.
TEST(SameNumbers, CopiesLieInTurnByTwos) {
  for (size_t arrays = 1; arrays <= 4; arrays++) {
    for (size_t count = 0; count <= 21; count++) {
      std::vector<int> taken(copied_numbers(arrays, count));
      for (size_t array = 0; array < arrays; array++) {
        for (size_t i = 0; i < count; i++) {
          const size_t at = copied_at(arrays, array, i);
          ASSERT_LT(at, taken.size());
          EXPECT_EQ(taken[at]++, 0) << at;
          EXPECT_EQ(at % 2, i % 2);
          if (i % 2 == 1) {
            EXPECT_EQ(copied_at(arrays, array, i - 1), at - 1);
          }
        }
      }
    }
  }
}

TEST(SameNumbers, FourArraysAreComparedToTheirEnd) {
  for (uint32_t count = 1; count <= 13; count++) {
    std::vector<size_t> arrays[4];
    for (std::vector<size_t>& array : arrays) array.resize(count, 7);
    const auto copies = std::make_unique<size_t[]>(copied_numbers(4, count));
    const auto all = [&](const auto& use) {
      return use(count, copies.get(), arrays[0].data(), arrays[1].data(), arrays[2].data(),
                 arrays[3].data());
    };
    const auto same = [&] { return all([](auto... each) { return all_same(each...); }); };
    copy_numbers(copies.get(), count, arrays[0].data(), arrays[1].data(), arrays[2].data(),
                 arrays[3].data());
    EXPECT_TRUE(same()) << count;
    for (std::vector<size_t>& array : arrays) {
      for (size_t& number : array) {
        number++;
        EXPECT_FALSE(same()) << count;
        number--;
      }
    }
  }
}

}  // namespace
}  // namespace peal::host
