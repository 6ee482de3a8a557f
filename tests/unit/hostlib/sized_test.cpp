// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/sized.h"

#include <gtest/gtest.h>

#include "peal/peal.h"

namespace peal::host {
namespace {

// As headers of several ages would have it.
struct Today {
  size_t struct_bytes;
  uint32_t first;
  uint32_t second;
};
struct Yesterday {
  size_t struct_bytes;
  uint32_t first;
  uint32_t beyond;  // the caller's own
};
constexpr size_t kYesterdayBytes = offsetof(Yesterday, beyond);
struct Tomorrow {
  Today today;
  uint64_t third;
};

TEST(Sized, AnOlderCallerSaysLessAndTheRestIsZero) {
  Yesterday callers = {kYesterdayBytes, 5, 99};
  Today taken = {};
  ASSERT_EQ(take_struct(reinterpret_cast<const Today*>(&callers), "Today", &taken), PEAL_OK);
  EXPECT_EQ(taken.first, 5u);
  EXPECT_EQ(taken.second, 0u);
}

TEST(Sized, AnOlderCallerIsGivenWhatItKnowsAndNoMore) {
  Yesterday callers = {kYesterdayBytes, 0, 99};
  ASSERT_EQ(give_struct(Today{0, 7, 8}, "Today", reinterpret_cast<Today*>(&callers)), PEAL_OK);
  EXPECT_EQ(callers.struct_bytes, kYesterdayBytes);
  EXPECT_EQ(callers.first, 7u);
  EXPECT_EQ(callers.beyond, 99u);
}

TEST(Sized, ANewerCallerMayNotAskForWhatIsUnknown) {
  Tomorrow callers = {{sizeof(Tomorrow), 5, 6}, 0};
  Today taken = {};
  EXPECT_EQ(take_struct(&callers.today, "Today", &taken), PEAL_OK);
  EXPECT_EQ(taken.second, 6u);
  callers.third = 1;
  EXPECT_EQ(take_struct(&callers.today, "Today", &taken), PEAL_ERR_INVALID_ARGUMENT);
}

TEST(Sized, ANewerCallerIsGivenZeroForWhatIsUnknown) {
  Tomorrow callers = {{sizeof(Tomorrow), 0, 0}, 77};
  ASSERT_EQ(give_struct(Today{0, 7, 8}, "Today", &callers.today), PEAL_OK);
  EXPECT_EQ(callers.today.struct_bytes, sizeof(Tomorrow));
  EXPECT_EQ(callers.today.second, 8u);
  EXPECT_EQ(callers.third, 0u);
}

TEST(Sized, ASizeThatWasNeverSetIsRefused) {
  Today callers = {};
  Today taken = {};
  for (const size_t bytes : {size_t{0}, sizeof(size_t) - 1, kStructBytesMax + 1, SIZE_MAX}) {
    callers.struct_bytes = bytes;
    EXPECT_EQ(take_struct(&callers, "Today", &taken), PEAL_ERR_INVALID_ARGUMENT) << bytes;
    EXPECT_EQ(give_struct(taken, "Today", &callers), PEAL_ERR_INVALID_ARGUMENT) << bytes;
  }
  EXPECT_EQ(take_struct(static_cast<const Today*>(nullptr), "Today", &taken), PEAL_OK);
}

}  // namespace
}  // namespace peal::host
