// SPDX-License-Identifier: BSD-2-Clause
#include "base/file_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

namespace peal {
namespace {

bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }
int some_fd() { return eventfd(0, EFD_CLOEXEC); }

TEST(FileDescriptor, ClosesItselfOnce) {
  const int fd = some_fd();
  {
    FileDescriptor owner(fd);
    EXPECT_TRUE(owner.valid());
    EXPECT_EQ(owner.get(), fd);
    owner.reset();
    EXPECT_FALSE(owner.valid());
    EXPECT_FALSE(is_open(fd));
    EXPECT_EQ(some_fd(), fd);  // somebody else's now
  }
  EXPECT_TRUE(is_open(fd));
  close(fd);
}

TEST(FileDescriptor, MovesAndIsGivenUp) {
  const int first = some_fd();
  const int second = some_fd();
  FileDescriptor owner(first);
  FileDescriptor other(second);
  other = std::move(owner);
  EXPECT_FALSE(is_open(second));
  EXPECT_EQ(other.get(), first);
  FileDescriptor third(std::move(other));
  EXPECT_EQ(third.get(), first);
  EXPECT_EQ(third.release(), first);
  third.reset();
  EXPECT_TRUE(is_open(first));
  close(first);
}

TEST(FileDescriptor, TakesAnotherInstead) {
  const int first = some_fd();
  FileDescriptor owner(first);
  owner.reset(some_fd());
  EXPECT_FALSE(is_open(first));
  EXPECT_TRUE(is_open(owner.get()));
}

// What failed is told after the cleaning up.
TEST(FileDescriptor, ClosingLeavesErrnoAlone) {
  FileDescriptor owner(some_fd());
  close(owner.get());  // so that closing fails
  errno = ECONNREFUSED;
  owner.reset();
  EXPECT_EQ(errno, ECONNREFUSED);
}

TEST(Retried, UntilNoSignalInterrupts) {
  int calls = 0;
  EXPECT_EQ(retried([&] {
              calls++;
              errno = EINTR;
              return calls < 3 ? -1 : 7;
            }),
            7);
  EXPECT_EQ(calls, 3);
}

TEST(Retried, OtherFailuresAreFailures) {
  int calls = 0;
  EXPECT_EQ(retried([&] {
              calls++;
              errno = EAGAIN;
              return -1;
            }),
            -1);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace peal
