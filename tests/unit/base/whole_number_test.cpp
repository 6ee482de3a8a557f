// SPDX-License-Identifier: BSD-2-Clause
#include "base/whole_number.h"

#include <gtest/gtest.h>

namespace peal {
namespace {

TEST(WholeNumber, TheTextIsReadBackAndShort) {
  const uint64_t values[] = {0,           1,
                             1023,        1024,
                             1500,        4096,
                             1024 * 999,  1024 * 1024 - 1,
                             1024 * 1024, uint64_t{3} << 20,
                             UINT64_MAX};
  const char* const texts[] = {
      "0", "1", "1023", "1k", "1500", "4k", "999k", "1048575", "1M", "3M", "18446744073709551615"};
  static_assert(std::size(values) == std::size(texts));
  for (size_t i = 0; i < std::size(values); i++) {
    EXPECT_EQ(whole_text(values[i]), texts[i]);
    uint64_t back = 0;
    EXPECT_TRUE(parse_whole(texts[i], 0, UINT64_MAX, &back));
    EXPECT_EQ(back, values[i]);
  }
}

}  // namespace
}  // namespace peal
