// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/file_descriptor.h"
#include "base/unix_socket.h"
#include "tests/support/forbid.h"

namespace peal::nic {
namespace {

TEST(SharedMemory, SizeIsSealed) {
  int fd = -1;
  Mapping* const mapping = create_shared("test", 8192, Sharing::kReadWrite, &fd);
  ASSERT_NE(mapping, nullptr);
  EXPECT_EQ(ftruncate(fd, 4096), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(ftruncate(fd, 16384), -1);
  EXPECT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
  void* const client = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(client, MAP_FAILED);
  std::memcpy(client, "ring", 4);
  EXPECT_EQ(std::memcmp(mapping->base, "ring", 4), 0);
  munmap(client, 8192);
  destroy(mapping);
  close(fd);
}

TEST(SharedMemory, IsThereOrRefused) {
  const pid_t child = fork();
  if (child == 0) {
    if (!::peal::test::forbid({SYS_fallocate}, ENOSPC)) _exit(2);
    int fd = -1;
    _exit(create_shared("test", 8192, Sharing::kReadWrite, &fd) == nullptr && errno == ENOSPC ? 0
                                                                                              : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "no seccomp";
  EXPECT_EQ(status, 0);
}

TEST(SharedMemory, ReadOnlyForOthers) {
  int fd = -1;
  Mapping* const mapping = create_shared("test", 4096, Sharing::kReadOnlyForOthers, &fd);
  ASSERT_NE(mapping, nullptr);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  void* const client = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  ASSERT_NE(client, MAP_FAILED);
  EXPECT_EQ(mprotect(client, 4096, PROT_READ | PROT_WRITE), -1);
  std::memcpy(mapping->base, "word", 4);
  EXPECT_EQ(std::memcmp(client, "word", 4), 0);
  munmap(client, 4096);
  destroy(mapping);
  close(fd);
}

TEST(SharedMemory, WholePages) {
  EXPECT_EQ(whole_pages(1), 4096u);
  EXPECT_EQ(whole_pages(4096), 4096u);
  EXPECT_EQ(whole_pages(4097), 8192u);
  EXPECT_EQ(whole_pages(UINT64_MAX), 0u);
  EXPECT_EQ(whole_pages(UINT64_MAX - 4095), UINT64_MAX - 4095);
}

// What a group reserves for its channels costs nothing until it is used.
TEST(SharedMemory, PrivateMemoryIsNotTouched) {
  constexpr size_t kPages = 64;
  Mapping* const mapping = create_private(kPages * 4096);
  ASSERT_NE(mapping, nullptr);
  auto* const bytes = static_cast<uint8_t*>(mapping->base);
  EXPECT_EQ(bytes[5 * 4096], 0);
  bytes[6 * 4096] = 1;
  std::array<unsigned char, kPages> resident = {};
  ASSERT_EQ(mincore(mapping->base, kPages * 4096, resident.data()), 0);
  std::string there;
  for (size_t i = 0; i < kPages; i++) {
    if ((resident[i] & 1) != 0) there += std::to_string(i) + " ";
  }
  EXPECT_EQ(there, "5 6 ");
  destroy(mapping);
}

TEST(MappingBin, EmptiesWhatWasThrownIn) {
  MappingBin bin;
  bin.empty();
  size_t unmapped = 0;
  for (const size_t bytes : {4096, 8192}) {
    Mapping* const mapping = create_private(bytes);
    mapping->let_go = [&unmapped](size_t freed) { unmapped += freed; };
    bin.throw_in(mapping);
  }
  EXPECT_EQ(unmapped, 0u);
  bin.empty();
  bin.empty();
  EXPECT_EQ(unmapped, 12288u);
}

class HeldMemoryTest : public ::testing::Test {
 protected:
  HeldMemoryTest() {
    Mapping* const mapping = create_shared("test", 8192, Sharing::kReadWrite, &fd);
    EXPECT_TRUE(know_holders(mapping, &fd));
    mapping->let_go = [this](size_t) { let_go = true; };
    bin->throw_in(mapping);
  }
  // Whether the memory has been let go of.
  bool look() {
    bin->empty();
    bin->look_again();
    EXPECT_EQ(bin->has_kept(), !let_go);
    return let_go;
  }

  bool let_go = false;
  std::optional<MappingBin> bin{std::in_place};
  int fd = -1;
};

TEST_F(HeldMemoryTest, IsSealedAsBefore) {
  EXPECT_EQ(ftruncate(fd, 4096), -1);
  EXPECT_EQ(ftruncate(fd, 16384), -1);
  close(fd);
  EXPECT_TRUE(look());
}

TEST_F(HeldMemoryTest, IsKeptByDescriptors) {
  EXPECT_FALSE(look());
  const int copy = dup(fd);
  close(fd);
  EXPECT_FALSE(look());
  close(copy);
  EXPECT_TRUE(look());
}

TEST_F(HeldMemoryTest, IsKeptByMappings) {
  void* const writable = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  void* const readable = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  EXPECT_FALSE(look());
  munmap(writable, 8192);
  EXPECT_FALSE(look());
  munmap(readable, 4096);
  EXPECT_TRUE(look());
}

TEST_F(HeldMemoryTest, IsKeptByMessages) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  EXPECT_EQ(send_with_descriptors(ends[0], "x", 1, {&fd, 1}, 0), 1);
  close(fd);
  EXPECT_FALSE(look());
  for (const int end : ends) close(end);
  EXPECT_TRUE(look());
}

TEST_F(HeldMemoryTest, IsKeptByWhoOpenedItAgain) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const int reader = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  close(fd);
  EXPECT_FALSE(look());
  close(reader);
  EXPECT_TRUE(look());
}

// Whoever only names it has none of it, and nobody but its owner opens it again.
TEST_F(HeldMemoryTest, IsEmptyOnceNobodyHasIt) {
  EXPECT_EQ(write(fd, "page", 4), 4);
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const FileDescriptor name(open(path.c_str(), O_PATH | O_CLOEXEC));
  EXPECT_FALSE(look());
  close(fd);
  EXPECT_TRUE(look());
  struct stat info = {};
  ASSERT_EQ(fstat(name.get(), &info), 0);
  EXPECT_EQ(info.st_blocks, 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(HeldMemoryTest, IsNobodysWhenTheBinGoes) {
  EXPECT_FALSE(look());
  bin.reset();
  EXPECT_TRUE(let_go);
  close(fd);
}

}  // namespace
}  // namespace peal::nic
