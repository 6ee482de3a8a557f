// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/closer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "base/unix_socket.h"
#include "tests/unit/emulator/lingering_socket.h"

namespace peal::nic {
namespace {

TEST(Closer, Closes) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  std::promise<void> closed;
  Closer closer;
  closer.close(ends[1], [&] { closed.set_value(); });
  closed.get_future().wait();
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);  // no writer is left
  close(ends[0]);
}

TEST(Closer, OneThatIsStuckHoldsUpNobody) {
  test::LingeringSocket lingering;
  Closer closer;
  closer.close(lingering.release());
  for (int i = 0; i < 20; i++) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    std::promise<void> closed;
    closer.close(ends[1], [&] { closed.set_value(); });
    closed.get_future().wait();
    close(ends[0]);
  }
  EXPECT_GE(closer.pending(), 1u);
  // And the closer itself goes without waiting for it.
}

// Two in a queue that goes at once, as a client sends them.
TEST(Closer, NothingLingersThatIsHurried) {
  test::LingeringSocket first;
  test::LingeringSocket second;
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const int both[] = {first.release(), second.release()};
  EXPECT_EQ(send_with_descriptors(ends[0], "x", 1, both, 0), 1);
  for (const int fd : {both[0], both[1], ends[0]}) close(fd);
  Closer closer;
  closer.close(ends[1]);
  while (closer.pending() > 0) {
    closer.hurry();
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace peal::nic
