// SPDX-License-Identifier: BSD-2-Clause
#include "base/unix_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <vector>

namespace peal {
namespace {

TEST(UnixAddress, HoldsAPathOfItsLength) {
  UnixAddress address;
  const std::string longest(kUnixPathMax, 'x');
  ASSERT_TRUE(address.set(longest));
  EXPECT_EQ(address.name.sun_path, longest);
  EXPECT_EQ(address.get()->sa_family, AF_UNIX);
  ASSERT_TRUE(address.set("y"));
  EXPECT_STREQ(address.name.sun_path, "y");
}

TEST(UnixAddress, RefusesNoPathAndALongerOne) {
  UnixAddress address;
  for (const size_t length : {size_t{0}, kUnixPathMax + 1}) {
    errno = 0;
    EXPECT_FALSE(address.set(std::string(length, 'x'))) << length;
    EXPECT_EQ(errno, ENAMETOOLONG) << length;
  }
}

class Messages : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    here_.reset(ends[0]);
    there_.reset(ends[1]);
  }
  // Sends "hello" with so many event descriptors, which end with this call.
  void send(size_t count) {
    std::vector<FileDescriptor> owned(count);
    std::vector<int> numbers;
    for (FileDescriptor& fd : owned) {
      fd.reset(eventfd(0, 0));
      numbers.push_back(fd.get());
    }
    ASSERT_EQ(send_with_descriptors(here_.get(), "hello", 5, numbers, 0), 5);
  }
  // How many descriptors this process has.
  static size_t open_now() {
    size_t count = 0;
    for (int fd = 0; fd < 256; fd++) count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return count;
  }

  FileDescriptor here_;
  FileDescriptor there_;
  std::array<char, 8> text_ = {};
};

TEST_F(Messages, WithoutDescriptors) {
  send(0);
  const auto got = receive_with_descriptors(there_.get(), text_.data(), text_.size(), {}, 0);
  EXPECT_EQ(got.bytes, 5);
  EXPECT_EQ(got.descriptors, 0u);
  EXPECT_FALSE(got.cut);
  EXPECT_STREQ(text_.data(), "hello");
}

TEST_F(Messages, DescriptorsArriveAsOurs) {
  for (size_t count = 1; count <= kDescriptorsMax; count++) {
    send(count);
    std::array<FileDescriptor, kDescriptorsMax> fds;
    const auto got = receive_with_descriptors(there_.get(), text_.data(), text_.size(), fds, 0);
    EXPECT_EQ(got.bytes, 5);
    ASSERT_EQ(got.descriptors, count);
    for (size_t i = 0; i < fds.size(); i++) {
      EXPECT_EQ(fds[i].valid(), i < count);
      if (i < count) {
        EXPECT_EQ(fcntl(fds[i].get(), F_GETFD), FD_CLOEXEC);
      }
    }
  }
}

TEST_F(Messages, DescriptorsForWhichThereIsNoRoomAreClosed) {
  const size_t before = open_now();
  for (size_t room = 0; room < 4; room++) {
    send(4);
    std::vector<FileDescriptor> fds(room);
    const auto got = receive_with_descriptors(there_.get(), text_.data(), text_.size(), fds, 0);
    EXPECT_EQ(got.bytes, 5);
    EXPECT_EQ(got.descriptors, room);
    EXPECT_EQ(open_now(), before + room);
  }
  EXPECT_EQ(open_now(), before);
}

TEST_F(Messages, LongerThanTheRoomAreCut) {
  send(0);
  const auto got = receive_with_descriptors(there_.get(), text_.data(), 4, {}, 0);
  EXPECT_EQ(got.bytes, 4);
  EXPECT_TRUE(got.cut);
}

TEST_F(Messages, EndAndFailure) {
  EXPECT_EQ(receive_with_descriptors(there_.get(), text_.data(), 8, {}, MSG_DONTWAIT).bytes, -1);
  EXPECT_EQ(errno, EAGAIN);
  here_.reset();
  EXPECT_EQ(receive_with_descriptors(there_.get(), text_.data(), 8, {}, 0).bytes, 0);
  // No SIGPIPE.
  EXPECT_EQ(send_with_descriptors(there_.get(), "x", 1, {}, 0), -1);
  EXPECT_EQ(errno, EPIPE);
}

TEST_F(Messages, MoreDescriptorsThanAMessageMayHave) {
  const std::vector<int> many(kDescriptorsMax + 1, here_.get());
  EXPECT_EQ(send_with_descriptors(here_.get(), "x", 1, many, 0), -1);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace peal
