// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/log_stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/unit/emulator/log_pipe.h"

namespace peal::nic {
namespace {

void say(const LogStream& stream, const std::string& text) {
  std::fputs((text + "\n").c_str(), stream.file());
  std::fflush(stream.file());
}

TEST(LogStream, WritesWhatItIsGiven) {
  test::LogPipe pipe;
  const LogStream stream(pipe.writer());
  say(stream, "one");
  say(stream, "two");
  EXPECT_EQ(pipe.text(), "one\ntwo\n");
  EXPECT_EQ(stream.dropped(), 0u);
}

// The descriptor itself would wait.
TEST(LogStream, WaitsForNoReaderAndSaysHowMuchWasLost) {
  test::LogPipe pipe;
  const LogStream stream(pipe.writer());
  pipe.fill();
  say(stream, "nobody hears this");
  say(stream, "nor this");
  EXPECT_EQ(stream.dropped(), 2u);
  pipe.text();
  say(stream, "but this");
  say(stream, "and this");
  EXPECT_EQ(pipe.text(),
            "peal-nic: 2 lines were lost here, which nobody read\nbut this\nand this\n");
  EXPECT_EQ(stream.dropped(), 2u);
}

// Or else it would seem to be said after something that came later.
TEST(LogStream, WhatWasLostIsSaidBeforeAnythingElse) {
  test::LogPipe pipe;
  const LogStream stream(pipe.writer());
  pipe.fill();
  say(stream, "nobody hears this");
  pipe.leave(20);
  say(stream, "short");
  EXPECT_EQ(stream.dropped(), 2u);
  pipe.text();
  say(stream, "heard");
  EXPECT_EQ(pipe.text(), "peal-nic: 2 lines were lost here, which nobody read\nheard\n");
}

TEST(LogStream, TheDescriptorOfOthersStillWaits) {
  test::LogPipe pipe;
  const LogStream stream(pipe.writer());
  EXPECT_EQ(fcntl(pipe.writer(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(LogStream, ASocketIsNotWaitedForEither) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  {
    const LogStream stream(ends[1]);
    const std::string line(4000, 'x');
    while (stream.dropped() == 0) say(stream, line);
    char bytes[8];
    EXPECT_EQ(read(ends[0], bytes, 5), 5);
    EXPECT_EQ(std::string(bytes, 5), "xxxxx");
  }
  for (const int fd : ends) close(fd);
}

// What was written before, by whoever has the file open, stays.
TEST(LogStream, GoesOnWhereAFileIs) {
  char name[] = "/tmp/peal-log-XXXXXX";
  const int fd = mkstemp(name);
  ASSERT_GE(fd, 0);
  unlink(name);
  ASSERT_EQ(write(fd, "before\n", 7), 7);
  {
    const LogStream stream(fd);
    say(stream, "after");
  }
  char bytes[32];
  ASSERT_EQ(pread(fd, bytes, sizeof(bytes), 0), 13);
  EXPECT_EQ(std::string(bytes, 13), "before\nafter\n");
  close(fd);
}

}  // namespace
}  // namespace peal::nic
