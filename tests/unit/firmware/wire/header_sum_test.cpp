// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/wire/header_sum.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/frame.h"

namespace peal::test {
namespace {

peal_wire_header some_header() {
  peal_wire_header header;
  auto* bytes = reinterpret_cast<uint8_t*>(&header);
  for (size_t i = 0; i < sizeof(header); i++) bytes[i] = static_cast<uint8_t>(i * 37 + 11);
  return header;
}

TEST(HeaderSum, IsThatOfTheBytesWithItsOwnFieldZero) {
  const peal_wire_header header = some_header();
  peal_wire_header zeroed = header;
  zeroed.header_crc = 0;
  EXPECT_EQ(header_sum(header), reference_crc32c(&zeroed, sizeof(zeroed)));
}

TEST(HeaderSum, SeesEveryBitButThoseOfItsOwnField) {
  peal_wire_header header = some_header();
  const uint32_t right = header_sum(header);
  auto* bytes = reinterpret_cast<uint8_t*>(&header);
  for (size_t bit = 0; bit < 8 * sizeof(header); bit++) {
    const size_t byte = bit / 8;
    const bool own = byte >= offsetof(peal_wire_header, header_crc) &&
                     byte < offsetof(peal_wire_header, header_crc) + sizeof(header.header_crc);
    bytes[byte] ^= static_cast<uint8_t>(1 << bit % 8);
    EXPECT_EQ(header_sum(header) == right, own) << bit;
    bytes[byte] ^= static_cast<uint8_t>(1 << bit % 8);
  }
}

}  // namespace
}  // namespace peal::test
