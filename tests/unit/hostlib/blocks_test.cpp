// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/blocks.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace peal::host {
namespace {

constexpr size_t kMost = UINT32_MAX;
uint8_t* const kBuffer = reinterpret_cast<uint8_t*>(0x10000);

struct Arrays {
  std::vector<size_t> bytes;
  std::vector<size_t> offsets = {};  // none: one behind the other
  const uint8_t* address = kBuffer;

  [[nodiscard]] Blocks blocks() const {
    return {address, bytes.data(), offsets.empty() ? nullptr : offsets.data(),
            static_cast<uint32_t>(bytes.size()), "receive"};
  }
};

// "start + bytes, longest", or what was wrong.
std::string measure(const Arrays& arrays) {
  Extent extent;
  const peal_error error = measure_blocks("allgatherv", arrays.blocks(), &extent);
  if (error != PEAL_OK) return std::to_string(error) + " " + peal_last_error_text();
  char text[100];
  snprintf(text, sizeof(text), "%#zx + %zu, %zu", extent.start, extent.bytes, extent.longest);
  return text;
}

std::string parts_of(const Arrays& arrays, uintptr_t region) {
  std::vector<peal_part> parts(arrays.bytes.size(), {77, 77});
  write_parts(arrays.blocks(), region, parts.data());
  std::string text;
  for (const peal_part& part : parts) {
    text += std::to_string(part.offset) + "+" + std::to_string(part.bytes) + " ";
  }
  return text;
}

TEST(Blocks, OneBehindTheOther) {
  const Arrays arrays = {{5, 0, 7}};
  EXPECT_EQ(measure(arrays), "0x10000 + 12, 7");
  EXPECT_EQ(parts_of(arrays, 0x10000), "0+5 0+0 5+7 ");
}

TEST(Blocks, WhereTheirOffsetsSay) {
  const Arrays arrays = {{5, 2, 7}, {100, 200, 8}};
  EXPECT_EQ(measure(arrays), "0x10008 + 194, 7");
  EXPECT_EQ(parts_of(arrays, 0xfff0), "116+5 216+2 24+7 ");
}

TEST(Blocks, WhereNothingIsNoOffsetMatters) {
  const Arrays arrays = {{0, 2, 0}, {SIZE_MAX, 200, SIZE_MAX}};
  EXPECT_EQ(measure(arrays), "0x100c8 + 2, 2");
  EXPECT_EQ(parts_of(arrays, 0x10000), "0+0 200+2 0+0 ");
}

TEST(Blocks, NothingAtAllIsNowhere) {
  EXPECT_EQ(measure({{0, 0}, {1, 2}, nullptr}), "0 + 0, 0");
  EXPECT_EQ(parts_of({{0, 0}, {1, 2}, nullptr}, 0), "0+0 0+0 ");
}

TEST(Blocks, TheLongestThereMayBe) {
  EXPECT_EQ(measure({{kMost, kMost, 1}}), "0x10000 + 8589934591, 4294967295");
  EXPECT_EQ(parts_of({{kMost, kMost, 1}}, 0x10000),
            "0+4294967295 4294967295+4294967295 8589934590+1 ");
}

TEST(Blocks, WhatIsWrongIsNamed) {
  EXPECT_EQ(measure({{1, kMost + 1}}),
            "11 allgatherv: receive block 1 has 4294967296 bytes, the limit is 4294967295");
  EXPECT_EQ(measure({{SIZE_MAX, 1}}),
            "11 allgatherv: receive block 0 has 18446744073709551615 "
            "bytes, the limit is 4294967295");
  EXPECT_EQ(measure({{0, 1}, {}, nullptr}), "64 allgatherv: the receive buffer is null");
  Extent extent;
  const Blocks without_lengths = {kBuffer, nullptr, nullptr, 3, "send"};
  EXPECT_EQ(measure_blocks("alltoallv", without_lengths, &extent), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_STREQ(peal_last_error_text(), "alltoallv: the lengths of the send blocks are null");
}

// To the byte: the last one of the address space cannot be in a block, the one before it can.
TEST(Blocks, WhatWrapsAround) {
  const size_t left = SIZE_MAX - reinterpret_cast<uintptr_t>(kBuffer);
  EXPECT_EQ(measure({{4, 10}, {0, left - 10}}), "0x10000 + 18446744073709486079, 10");
  EXPECT_EQ(measure({{4, 10}, {0, left - 9}}),
            "64 allgatherv: receive block 1, 10 bytes at 0x10000 + 18446744073709486070, wraps "
            "around");
  EXPECT_EQ(measure({{10}, {SIZE_MAX}}),
            "64 allgatherv: receive block 0, 10 bytes at 0x10000 + 18446744073709551615, wraps "
            "around");
  const auto* high = reinterpret_cast<const uint8_t*>(UINTPTR_MAX - 10);
  EXPECT_EQ(measure({{6, 4}, {}, high}), "0xfffffffffffffff5 + 10, 6");
  EXPECT_EQ(measure({{6, 5}, {}, high}),
            "64 allgatherv: receive block 1, 5 bytes at 0xfffffffffffffff5 + 6, wraps around");
}

TEST(Blocks, TheyOverlapInAByteOrNot) {
  const auto overlap = [](const Arrays& a, const Arrays& b) {
    EXPECT_EQ(blocks_overlap(a.blocks(), b.blocks()), blocks_overlap(b.blocks(), a.blocks()));
    return blocks_overlap(a.blocks(), b.blocks());
  };
  const Arrays every_second = {{10, 10, 10}, {0, 20, 40}};
  EXPECT_FALSE(overlap(every_second, {{10, 10, 10}, {30, 50, 10}}));
  EXPECT_TRUE(overlap(every_second, {{10, 10, 11}, {30, 50, 10}}));
  EXPECT_FALSE(overlap(every_second, {{11}, {50}}));
  EXPECT_TRUE(overlap(every_second, {{11}, {49}}));
  EXPECT_TRUE(overlap(every_second, {{11}, {10}}));
  EXPECT_FALSE(overlap(every_second, {{0}, {5}}));
  EXPECT_TRUE(overlap(every_second, {{1}, {0}}));
  EXPECT_TRUE(overlap({{100}, {0}}, {{1, 1}, {200, 99}})) << "one within the other";
  EXPECT_TRUE(overlap({{100, 1}, {0, 5}}, {{1}, {50}})) << "behind a short one of the same side";
  EXPECT_FALSE(overlap({{10, 10}, {0, 5}}, {{1}, {15}})) << "those of one side may overlap";
}

// In one pass, for blocks in `bytes` from `start` on: as parts_of() with what there is of them, or
// "" where there is more to say.
std::string written_in(const Arrays& arrays, uintptr_t start, size_t bytes) {
  std::vector<peal_part> parts(arrays.bytes.size(), {77, 77});
  Region region;
  region.start = start;
  region.bytes = bytes;
  Extent extent;
  if (!write_parts_in(region, arrays.blocks(), true, parts.data(), &extent)) return "";
  std::string text;
  for (const peal_part& part : parts) {
    text += part.bytes == 0 ? "- "
                            : std::to_string(part.offset) + "+" + std::to_string(part.bytes) + " ";
  }
  return text + "of " + std::to_string(extent.start - start) + "+" + std::to_string(extent.bytes) +
         ", " + std::to_string(extent.longest);
}

TEST(Blocks, InOnePass) {
  EXPECT_EQ(written_in({{5, 0, 7}}, 0xfff0, 100), "16+5 - 21+7 of 16+12, 7");
  EXPECT_EQ(written_in({{5, 2, 7}, {30, 50, 8}}, 0xfff0, 100), "46+5 66+2 24+7 of 24+44, 7");
  EXPECT_EQ(written_in({{1, 2, 3, 4, 5, 6, 7, 9, 8}}, 0x10000, 45),
            "0+1 1+2 3+3 6+4 10+5 15+6 21+7 28+9 37+8 of 0+45, 9");
  EXPECT_EQ(written_in({{1, 1, 1, 1, 1}, {8, 6, 4, 2, 0}}, 0x10000, 9),
            "8+1 6+1 4+1 2+1 0+1 of 0+9, 1");
  EXPECT_EQ(written_in({{kMost, 1}}, 0x10000, kMost + 1),
            "0+4294967295 4294967295+1 of 0+4294967296, 4294967295");
}

// All of them in memory that is known, to the byte, and something to send or receive; or others
// look at them.
TEST(Blocks, InOnePassWhereThereIsNothingToSay) {
  EXPECT_EQ(written_in({{5, 7}}, 0x10000, 11), "") << "beyond the end";
  EXPECT_EQ(written_in({{5, 7}}, 0x10001, 100), "") << "before the beginning";
  EXPECT_EQ(written_in({{5, 7}, {0, 4}}, 0x10000, 10), "");
  EXPECT_EQ(written_in({{5, 7}, {6, 0}}, 0x10000, 10), "");
  EXPECT_EQ(written_in({{5, 7}, {1, 0}}, 0x10001, 100), "");
  EXPECT_EQ(written_in({{0, 0}}, 0x10000, 100), "") << "nothing";
  EXPECT_EQ(written_in({{0, 0}, {1, 2}}, 0x10000, 100), "");
  EXPECT_EQ(written_in({{1, kMost + 1}}, 0x10000, SIZE_MAX / 2), "") << "too long";
  EXPECT_EQ(written_in({{SIZE_MAX, 2}}, 0x10000, 100), "") << "around to where it began";
  EXPECT_EQ(written_in({{4, 10}, {0, SIZE_MAX - 7}}, 0x10000 - 8, 100), "") << "a negative offset";
  EXPECT_EQ(written_in({{4, 0}, {0, SIZE_MAX}}, 0x10000, 100), "") << "of nothing: not known here";
  EXPECT_EQ(written_in({{5, 7}, {}, nullptr}, 0x10000, 100), "") << "no buffer";
  EXPECT_EQ(written_in({{5, 7}, {0x10000, 0x10010}, nullptr}, 0x10000, 100), "");
}

}  // namespace
}  // namespace peal::host
