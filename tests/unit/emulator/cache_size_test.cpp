// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/common/cache_size.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/emulator/temporary_folder.h"

namespace peal::emulator {
namespace {

class CacheSize : public ::testing::Test {
 protected:
  void add(const std::string& level, const std::string& size) {
    const std::string cache = folder_.path() + "/index" + std::to_string(caches_++);
    std::filesystem::create_directory(cache);
    std::ofstream(cache + "/level") << level << "\n";
    std::ofstream(cache + "/size") << size << "\n";
  }
  uint64_t bytes() { return last_cache_bytes(folder_.path()); }

  nic::test::TemporaryFolder folder_{"caches"};
  uint32_t caches_ = 0;
};

TEST_F(CacheSize, NoneIsTold) { EXPECT_EQ(bytes(), 0u); }

TEST_F(CacheSize, TheLastOneCounts) {
  add("1", "32K");
  add("1", "64K");
  EXPECT_EQ(bytes(), 64u << 10);
  add("3", "8192K");
  EXPECT_EQ(bytes(), 8u << 20);
  add("2", "512K");
  EXPECT_EQ(bytes(), 8u << 20);
}

TEST_F(CacheSize, WhatCannotBeReadEndsTheList) {
  add("1", "32K");
  add("2", "much");
  add("3", "8192K");
  EXPECT_EQ(bytes(), 32u << 10);
}

}  // namespace
}  // namespace peal::emulator
