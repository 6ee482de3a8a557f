// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/admin_message.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "base/unix_socket.h"
#include "emulator/nic/closer.h"
#include "tests/unit/emulator/lingering_socket.h"

namespace peal::nic {
namespace {

class AdminMessageTest : public ::testing::Test {
 protected:
  AdminMessageTest() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_), 0);
    const int on = 1;
    EXPECT_EQ(setsockopt(ends_[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
  }
  ~AdminMessageTest() override {
    for (const int fd : ends_) {
      if (fd >= 0) close(fd);
    }
  }

  void send_bytes(size_t bytes) const {
    std::array<uint8_t, 2 * PEAL_ADMIN_BYTES> data;
    data.fill(0x5a);
    ASSERT_EQ(send(ends_[1], data.data(), bytes, 0), static_cast<ssize_t>(bytes));
  }
  void send_descriptor(int fd) const {
    std::array<uint8_t, PEAL_ADMIN_BYTES> data = {};
    ASSERT_EQ(send_with_descriptors(ends_[1], data.data(), data.size(), {&fd, 1}, 0),
              static_cast<ssize_t>(data.size()));
  }

  int ends_[2] = {-1, -1};
  AdminMessage message_{};
};

TEST_F(AdminMessageTest, TakesOneMessage) {
  EXPECT_EQ(receive_message(ends_[0], &message_), Received::kNothing);
  send_bytes(PEAL_ADMIN_BYTES);
  send_bytes(24);
  EXPECT_EQ(receive_message(ends_[0], &message_), Received::kMessage);
  EXPECT_EQ(message_.bytes, unsigned{PEAL_ADMIN_BYTES});
  EXPECT_EQ(message_.command.u.bytes_[487], 0x5a);
  EXPECT_EQ(message_.sender, getpid());
  EXPECT_FALSE(message_.carries_descriptors);
  EXPECT_EQ(receive_message(ends_[0], &message_), Received::kMessage);
  EXPECT_EQ(message_.bytes, 24u);
  EXPECT_EQ(message_.command.u.bytes_[0], 0);
  EXPECT_EQ(receive_message(ends_[0], &message_), Received::kNothing);
}

TEST_F(AdminMessageTest, LongerThanACommand) {
  for (const size_t bytes : {size_t{PEAL_ADMIN_BYTES} + 1, size_t{2} * PEAL_ADMIN_BYTES}) {
    send_bytes(bytes);
    EXPECT_EQ(receive_message(ends_[0], &message_), Received::kMessage);
    EXPECT_EQ(message_.bytes, unsigned{PEAL_ADMIN_BYTES} + 1);
  }
  EXPECT_EQ(receive_message(ends_[0], &message_), Received::kNothing);
}

TEST_F(AdminMessageTest, EndOfConnection) {
  close(ends_[1]);
  ends_[1] = -1;
  EXPECT_EQ(receive_message(ends_[0], &message_), Received::kClosed);
}

TEST_F(AdminMessageTest, ChildIsAnotherSender) {
  const pid_t child = fork();
  if (child == 0) {
    const uint8_t byte = 1;
    _exit(send(ends_[1], &byte, 1, 0) == 1 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(receive_message(ends_[0], &message_), Received::kMessage);
  EXPECT_EQ(message_.sender, child);
}

TEST_F(AdminMessageTest, DescriptorsAreNotTaken) {
  int pipe_ends[2];
  ASSERT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
  send_descriptor(pipe_ends[1]);
  close(pipe_ends[1]);
  EXPECT_EQ(receive_message(ends_[0], &message_), Received::kMessage);
  EXPECT_TRUE(message_.carries_descriptors);
  // No descriptor came here, and none was closed: it is still in the queue.
  EXPECT_EQ(fcntl(pipe_ends[1], F_GETFD), -1);
  EXPECT_EQ(fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK), 0);
  char byte = 0;
  EXPECT_EQ(read(pipe_ends[0], &byte, 1), -1);
  close(pipe_ends[0]);
}

// What made the control thread wait: the last close of a socket that lingers.
TEST_F(AdminMessageTest, LingeringSocketHoldsUpNobody) {
  test::LingeringSocket lingering;
  send_descriptor(lingering.fd());
  close(lingering.release());
  EXPECT_EQ(receive_message(ends_[0], &message_), Received::kMessage);
  EXPECT_TRUE(message_.carries_descriptors);
  Closer closer;
  closer.close(ends_[0]);
  ends_[0] = -1;
}

}  // namespace
}  // namespace peal::nic
