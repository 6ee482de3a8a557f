// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/base/crc32c.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/frame.h"

namespace peal::test {
namespace {

// RFC 3720, appendix B.4.
TEST(Crc32c, KnowsTheStandardsExamples) {
  std::vector<uint8_t> bytes(32, 0);
  EXPECT_EQ(crc32c(0, bytes.data(), 32), 0x8a9136aau);
  bytes.assign(32, 0xff);
  EXPECT_EQ(crc32c(0, bytes.data(), 32), 0x62a8ab43u);
  for (uint8_t i = 0; i < 32; i++) bytes[i] = i;
  EXPECT_EQ(crc32c(0, bytes.data(), 32), 0x46dd794eu);
  EXPECT_EQ(crc32c(0, "123456789", 9), 0xe3069283u);
}

TEST(Crc32c, AgreesWithTheSlowOneAtEveryLengthAndAlignment) {
  std::vector<uint8_t> bytes(300);
  for (size_t i = 0; i < bytes.size(); i++) bytes[i] = static_cast<uint8_t>(i * 37 + 11);
  for (size_t at = 0; at < 9; at++) {
    for (size_t length = 0; length < 270; length++) {
      ASSERT_EQ(crc32c(0, &bytes[at], length), reference_crc32c(&bytes[at], length));
    }
  }
}

// They are summed by blocks of 1024 bytes.
TEST(Crc32c, AgreesWithTheSlowOneOnLongInputs) {
  std::vector<uint8_t> bytes(9000);
  for (size_t i = 0; i < bytes.size(); i++) bytes[i] = static_cast<uint8_t>(i * 37 + i / 256 + 11);
  for (const size_t whole : {1024, 2048, 3072, 8192}) {
    for (size_t length = whole - 9; length < whole + 77; length++) {
      ASSERT_EQ(crc32c(0, bytes.data(), length), reference_crc32c(bytes.data(), length));
    }
  }
}

TEST(Crc32c, GoesOnFromASeed) {
  const char text[] = "one allgather through every home";
  const size_t length = sizeof(text) - 1;
  for (size_t cut = 0; cut <= length; cut++) {
    EXPECT_EQ(crc32c(crc32c(0, text, cut), text + cut, length - cut), crc32c(0, text, length));
  }
}

TEST(Crc32c, SeesEveryFlippedBit) {
  std::vector<uint8_t> bytes(64, 0x42);
  const uint32_t right = crc32c(0, bytes.data(), bytes.size());
  for (size_t bit = 0; bit < 8 * bytes.size(); bit++) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    EXPECT_NE(crc32c(0, bytes.data(), bytes.size()), right) << bit;
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
  }
}

}  // namespace
}  // namespace peal::test
