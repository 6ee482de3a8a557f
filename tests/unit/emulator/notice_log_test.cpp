// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/notice_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <string>

namespace peal::nic {
namespace {

class NoticeLogTest : public ::testing::Test {
 protected:
  NoticeLogTest() { EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0); }
  ~NoticeLogTest() override {
    for (const int fd : ends_) close(fd);
  }
  // Everything written so far.
  std::string text() {
    EXPECT_EQ(fcntl(ends_[0], F_SETFL, O_NONBLOCK), 0);
    std::string all;
    std::array<char, 4096> bytes;
    for (ssize_t got = 0; (got = read(ends_[0], bytes.data(), bytes.size())) > 0;)
      all.append(bytes.data(), static_cast<size_t>(got));
    return all;
  }
  int ends_[2];
};

TEST_F(NoticeLogTest, SaysWhoSpeaks) {
  NoticeLog log(ends_[1]);
  log.write("process 7 is odd", 5000);
  EXPECT_EQ(text(), "peal-nic: process 7 is odd\n");
}

TEST_F(NoticeLogTest, FewASecond) {
  NoticeLog log(ends_[1]);
  std::string expected;
  for (uint32_t i = 0; i < NoticeLog::kLinesPerSecond; i++) expected += "peal-nic: x\n";
  for (int i = 0; i < 1000; i++) log.write("x", 5999);
  EXPECT_EQ(text(), expected);
  EXPECT_EQ(log.dropped(), 1000u - NoticeLog::kLinesPerSecond);
  log.write("y", 6000);
  EXPECT_EQ(text(), "peal-nic: y\n");
}

TEST_F(NoticeLogTest, WaitsForNoReader) {
  NoticeLog log(ends_[1]);
  const std::string longest(2 * PIPE_BUF, 'z');
  for (uint64_t second = 0; second < 100; second++) log.write(longest, second * 1000);
  EXPECT_GT(log.dropped(), 0u);
  EXPECT_EQ(text().substr(0, 12), "peal-nic: zz");
}

}  // namespace
}  // namespace peal::nic
