// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/same_numbers.h"

#include <gtest/gtest.h>

#include <vector>

namespace peal::host {
namespace {

// Two arrays beside their copies; the arrays begin behind whatever number lies in front of them.
struct Arrays {
  explicit Arrays(uint32_t count) : count(count), stride(copy_stride(count)) {
    for (uint32_t i = 0; i < count; i++) {
      copies[i] = first[1 + i] = 100 + i;
      copies[stride + i] = second[1 + i] = 200 + i;
    }
  }
  bool one() const { return all_same(count, Copied{first + 1, copies}); }
  bool both() const {
    return all_same(count, Copied{first + 1, copies}, Copied{second + 1, copies + stride});
  }

  uint32_t count;
  size_t stride;
  alignas(16) size_t first[32] = {};
  alignas(16) size_t second[32] = {};
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

TEST(SameNumbers, CopiesAreAligned) {
  for (uint32_t count = 0; count <= 21; count++) {
    EXPECT_GE(copy_stride(count), count);
    EXPECT_EQ(copy_stride(count) * sizeof(size_t) % sizeof(TwoNumbers), 0u);
  }
}

}  // namespace
}  // namespace peal::host
