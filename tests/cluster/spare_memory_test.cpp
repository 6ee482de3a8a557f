// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/spare_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "emulator/cluster/host_memory.h"

namespace peal::sim {
namespace {

using emulator::Touched;
using emulator::ZeroedMemory;

// Each thread has its own: on this one nobody has given anything.
template <typename Function>
void with_nothing_spare(Function function) {
  std::thread(function).join();
}

struct Kind {
  const char* name;
  size_t bytes;
  Touched touched;
};

class SpareMemory : public testing::TestWithParam<Kind> {
 protected:
  // Bytes of the kind's memory that are not zero.
  [[nodiscard]] static size_t dirty(const ZeroedMemory& memory) {
    const uint8_t* const bytes = memory.data();
    return GetParam().bytes -
           static_cast<size_t>(std::count(bytes, bytes + GetParam().bytes, uint8_t{0}));
  }
};

TEST_P(SpareMemory, ComesBackZeroed) {
  const Kind& kind = GetParam();
  with_nothing_spare([&] {
    ZeroedMemory memory = take_memory(kind.bytes, kind.touched);
    ASSERT_EQ(dirty(memory), 0u);
    const uint8_t* const place = memory.data();
    for (size_t at = 0; at < kind.bytes; at += 3 * 4096 + 1) memory.data()[at] = 1;
    memory.data()[kind.bytes - 1] = 1;
    give_memory(std::move(memory), kind.touched, kind.bytes);
    const ZeroedMemory again = take_memory(kind.bytes, kind.touched);
    EXPECT_EQ(again.data(), place) << "it was not kept";
    EXPECT_EQ(dirty(again), 0u);
  });
}

TEST_P(SpareMemory, IsOneOwnersAtATime) {
  const Kind& kind = GetParam();
  const ZeroedMemory one = take_memory(kind.bytes, kind.touched);
  const ZeroedMemory other = take_memory(kind.bytes, kind.touched);
  std::memset(one.data(), 1, kind.bytes);
  EXPECT_EQ(dirty(other), 0u);
}

INSTANTIATE_TEST_SUITE_P(Of, SpareMemory,
                         testing::Values(Kind{"small", 20'000, Touched::kWhole},
                                         Kind{"most_of_a_large_page", 1'100'000, Touched::kWhole},
                                         Kind{"half_a_large_page", 1 << 20, Touched::kWhole},
                                         Kind{"sparse", 5'000'000, Touched::kSparsely},
                                         Kind{"whole", 5'000'000, Touched::kWhole}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(SpareMemoryOfUses, IsNotMixed) {
  with_nothing_spare([] {
    ZeroedMemory sparse = take_memory(3 << 20, Touched::kSparsely);
    const uint8_t* const place = sparse.data();
    sparse.data()[0] = 1;
    give_memory(std::move(sparse), Touched::kSparsely, 3 << 20);
    EXPECT_NE(take_memory(3 << 20, Touched::kWhole).data(), place);
  });
}

// What is taken as it is may be anything; what is to be zero is none of it.
TEST(SpareMemoryOfUses, WhatIsNotClearedIsForWhoTakesItSo) {
  with_nothing_spare([] {
    constexpr size_t kBytes = 3 << 20;
    ZeroedMemory memory = take_memory(kBytes, Touched::kWhole, Contents::kAny);
    const uint8_t* const place = memory.data();
    memory.data()[kBytes - 1] = 1;
    give_memory(std::move(memory), Touched::kWhole, kBytes, Contents::kAny);
    EXPECT_NE(take_memory(kBytes, Touched::kWhole).data(), place);
    const ZeroedMemory again = take_memory(kBytes, Touched::kWhole, Contents::kAny);
    EXPECT_EQ(again.data(), place) << "it was not kept";
    EXPECT_EQ(again.data()[kBytes - 1], 1) << "it was cleared";
  });
}

// Regions that hosts fill are apart, however long they are; those that nobody looks at are not.
TEST(HostMemoryOfBuffers, EachHasItsOwnButWhatIsUnseen) {
  HostMemory memory;
  std::vector<uint32_t> regions;
  constexpr uint64_t kBytes[] = {1, 100, 20'000, 40 << 20, 64, 31 << 20};
  for (const uint64_t bytes : kBytes) {
    regions.push_back(memory.add_buffer(0, bytes));
    std::memset(memory.data(regions.back()), static_cast<int>(regions.size()), bytes);
  }
  for (size_t i = 0; i < regions.size(); i++) {
    const uint8_t* const data = memory.data(regions[i]);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
    EXPECT_EQ(std::count(data, data + kBytes[i], static_cast<uint8_t>(i + 1)),
              static_cast<ptrdiff_t>(kBytes[i]));
    EXPECT_TRUE(memory.contains(0, regions[i], 0, kBytes[i]));
    EXPECT_FALSE(memory.contains(0, regions[i], 1, kBytes[i]));
    EXPECT_FALSE(memory.contains(1, regions[i], 0, kBytes[i]));
  }
  const uint32_t unseen = memory.add_unseen(0, 5000);
  EXPECT_EQ(memory.data(memory.add_unseen(1, 4000)), memory.data(unseen));
  const uint32_t longer = memory.add_unseen(1, 5 << 20);
  std::memset(memory.data(longer), 1, 5 << 20);
  EXPECT_FALSE(memory.contains(1, unseen, 0, 1));
}

// What nobody takes any more makes room for what is given now.
TEST(SpareMemoryOfUses, TheOldestIsGivenUp) {
  with_nothing_spare([] {
    constexpr size_t kMiB = 1 << 20;
    std::vector<ZeroedMemory> all;
    for (size_t i = 0; i < 40; i++) all.push_back(take_memory(8 * kMiB, Touched::kWhole));
    for (ZeroedMemory& memory : all) {
      std::memset(memory.data(), 1, 8 * kMiB);
      give_memory(std::move(memory), Touched::kWhole, 8 * kMiB);
    }
    ZeroedMemory other = take_memory(20'000, Touched::kWhole);
    const uint8_t* const place = other.data();
    give_memory(std::move(other), Touched::kWhole, 20'000);
    EXPECT_EQ(take_memory(20'000, Touched::kWhole).data(), place);
  });
}

}  // namespace
}  // namespace peal::sim
