// SPDX-License-Identifier: BSD-2-Clause
// The driver's ioctls: numbers differ, sizes are in the number, and every structure opens with
// version and size.
#include "abi/ioctl.h"

#include <gtest/gtest.h>

#include <set>

#include "abi/window.h"

namespace {

struct Ioctl {
  const char* name;
  unsigned long number;
  size_t bytes;
};

#define PEAL_ROW(symbol, type) \
  { #symbol, symbol, sizeof(type) }
const Ioctl kIoctls[] = {
    PEAL_ROW(PEAL_IOCTL_INFO, peal_ioctl_info),
    PEAL_ROW(PEAL_IOCTL_EVENTFD, peal_ioctl_eventfd),
    PEAL_ROW(PEAL_IOCTL_KICK, peal_ioctl_kick),
    PEAL_ROW(PEAL_IOCTL_ASK, peal_ioctl_ask),
    PEAL_ROW(PEAL_IOCTL_DEPARTED, peal_ioctl_departed),
};

TEST(Ioctl, NumbersDifferAndCarryMagicAndSize) {
  std::set<unsigned long> numbers;
  for (const Ioctl& row : kIoctls) {
    EXPECT_TRUE(numbers.insert(_IOC_NR(row.number)).second) << row.name;
    EXPECT_EQ(_IOC_TYPE(row.number), static_cast<unsigned long>(PEAL_IOCTL_MAGIC)) << row.name;
    EXPECT_EQ(_IOC_SIZE(row.number), row.bytes) << row.name;
    EXPECT_EQ(_IOC_DIR(row.number), static_cast<unsigned long>(_IOC_READ | _IOC_WRITE)) << row.name;
  }
}

// A program of version 2 gets ENOTTY, and not another call than it meant.
TEST(Ioctl, NumbersOfVersion2AreNotUsedAgain) {
  for (const Ioctl& row : kIoctls) {
    for (const unsigned long old : {2, 3, 4, 5, 6, 9}) EXPECT_NE(_IOC_NR(row.number), old);
  }
}

TEST(Ioctl, SizesAreTheSameFor32And64BitCallers) {
  for (const Ioctl& row : kIoctls) EXPECT_EQ(row.bytes % 8, 0u) << row.name;
}

TEST(Ioctl, MappingsDoNotMeet) {
  EXPECT_LT(PEAL_MMAP_WINDOW + PEAL_WINDOW_BYTES(PEAL_RING_ENTRIES_MAX), PEAL_MMAP_DOORBELL);
}

}  // namespace
