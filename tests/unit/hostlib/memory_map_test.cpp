// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/memory_map.h"

#include <gtest/gtest.h>

namespace peal::host {
namespace {

Region make(uintptr_t start, size_t bytes, uint32_t key, uint32_t access = PEAL_READ | PEAL_WRITE,
            bool allocated = false) {
  Region region;
  region.start = start;
  region.bytes = bytes;
  region.key = key;
  region.access = access;
  region.allocated = allocated;
  return region;
}

const void* at(uintptr_t address) { return reinterpret_cast<const void*>(address); }

TEST(MemoryMap, FindsTheNewestThatCovers) {
  MemoryMap map;
  map.add(make(1000, 1000, 1));
  map.add(make(1500, 100, 2));
  Region region;
  ASSERT_EQ(map.find(at(1500), 100, PEAL_READ, "send", &region), PEAL_OK);
  EXPECT_EQ(region.key, 2u);
  ASSERT_EQ(map.find(at(1500), 101, PEAL_READ, "send", &region), PEAL_OK);
  EXPECT_EQ(region.key, 1u);
  ASSERT_EQ(map.find(at(1999), 1, PEAL_READ, "send", &region), PEAL_OK);
}

TEST(MemoryMap, SaysWhatIsWrong) {
  MemoryMap map;
  map.add(make(1000, 1000, 1, PEAL_READ));
  Region region;
  EXPECT_EQ(map.find(at(999), 1, PEAL_READ, "send", &region), PEAL_ERR_NOT_REGISTERED);
  EXPECT_EQ(map.find(at(2000), 1, PEAL_READ, "send", &region), PEAL_ERR_NOT_REGISTERED);
  EXPECT_EQ(map.find(at(1000), 1001, PEAL_READ, "send", &region), PEAL_ERR_BAD_BOUNDS);
  EXPECT_EQ(map.find(at(1999), SIZE_MAX, PEAL_READ, "send", &region), PEAL_ERR_BAD_BOUNDS);
  EXPECT_EQ(map.find(at(1000), 1000, PEAL_WRITE, "receive", &region), PEAL_ERR_BAD_ACCESS);
}

TEST(MemoryMap, AccessMayComeFromAnOlderRegion) {
  MemoryMap map;
  map.add(make(1000, 1000, 1, PEAL_WRITE));
  map.add(make(1000, 1000, 2, PEAL_READ));
  Region region;
  ASSERT_EQ(map.find(at(1000), 10, PEAL_WRITE, "receive", &region), PEAL_OK);
  EXPECT_EQ(region.key, 1u);
}

TEST(MemoryMap, RemovalChangesTheVersion) {
  MemoryMap map;
  map.add(make(1000, 1000, 1));
  const uint64_t version = map.version();
  map.remove(1);
  EXPECT_NE(map.version(), version);
  Region region;
  EXPECT_EQ(map.find(at(1000), 1, PEAL_READ, "send", &region), PEAL_ERR_NOT_REGISTERED);
}

TEST(MemoryMap, StartIsExactAndOfItsKind) {
  MemoryMap map;
  map.add(make(1000, 1000, 1, PEAL_READ, true));
  EXPECT_EQ(map.allocated_at(at(1001)), nullptr);
  ASSERT_NE(map.allocated_at(at(1000)), nullptr);
}

}  // namespace
}  // namespace peal::host
