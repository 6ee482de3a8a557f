// SPDX-License-Identifier: BSD-2-Clause
// A guest's memory as QEMU and others on the machine find it.
#include "emulator/nic/pci/guest_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file_descriptor.h"
#include "tests/unit/emulator/temporary_folder.h"

namespace peal::nic {
namespace {

class GuestMemoryTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kBytes = 1 << 20;

  std::unique_ptr<GuestMemory> create() { return GuestMemory::create(path, kBytes, &error); }
  [[nodiscard]] bool is_there() const {
    return std::filesystem::symlink_status(path).type() != std::filesystem::file_type::not_found;
  }

  const test::TemporaryFolder folder{"guest"};
  const std::string path = folder.path() + "/ram";
  std::string error;
};

TEST_F(GuestMemoryTest, IsSharedUnderItsName) {
  const auto memory = create();
  ASSERT_NE(memory, nullptr) << error;
  EXPECT_EQ(memory->bus().bytes, kBytes);
  const FileDescriptor fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(fd.valid());
  const char text[] = "from QEMU";
  ASSERT_EQ(pwrite(fd.get(), text, sizeof(text), kBytes - sizeof(text)), ssize_t{sizeof(text)});
  EXPECT_STREQ(reinterpret_cast<const char*>(memory->bus().base + kBytes - sizeof(text)), text);
}

// The card's DMA would end in a bus error.
TEST_F(GuestMemoryTest, NobodyCanShrinkIt) {
  const auto memory = create();
  const FileDescriptor fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_NE(ftruncate(fd.get(), kBytes / 2), 0);
  EXPECT_NE(ftruncate(fd.get(), 2 * kBytes), 0);
  struct stat info = {};
  ASSERT_EQ(fstat(fd.get(), &info), 0);
  EXPECT_EQ(static_cast<uint64_t>(info.st_size), kBytes);
}

TEST_F(GuestMemoryTest, ItsNameGoesWithIt) {
  auto memory = create();
  EXPECT_TRUE(is_there());
  memory.reset();
  EXPECT_FALSE(is_there());
}

// A process that must end with copies under way takes its names with it all the same.
TEST_F(GuestMemoryTest, TheNameMayGoFirst) {
  auto memory = create();
  memory->unlink_name();
  EXPECT_FALSE(is_there());
  memory->unlink_name();
  const auto next = create();
  memory.reset();
  EXPECT_TRUE(is_there()) << "another one's now";
}

TEST_F(GuestMemoryTest, AnothersNameIsLeftAlone) {
  std::ofstream(path) << "something";
  EXPECT_EQ(create(), nullptr);
  EXPECT_EQ(error,
            "cannot create '" + path + "': File exists; remove it or choose another RAMFILE");
  EXPECT_TRUE(std::filesystem::is_regular_file(path));
}

TEST_F(GuestMemoryTest, TheNameOfTheLivingIsLeftAlone) {
  const auto memory = create();
  EXPECT_EQ(create(), nullptr);
  EXPECT_EQ(error,
            "cannot create '" + path + "': File exists; remove it or choose another RAMFILE");
  EXPECT_TRUE(is_there());
}

TEST_F(GuestMemoryTest, WhatAKilledCardLeftIsReplaced) {
  ASSERT_EQ(symlink("/proc/1073741824/fd/9", path.c_str()), 0);
  const auto memory = create();
  EXPECT_NE(memory, nullptr) << error;
}

}  // namespace
}  // namespace peal::nic
