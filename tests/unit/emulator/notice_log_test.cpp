// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/notice_log.h"

#include <gtest/gtest.h>

#include <climits>
#include <string>

#include "emulator/nic/log.h"
#include "emulator/nic/log_stream.h"
#include "tests/unit/emulator/log_pipe.h"

namespace peal::nic {
namespace {

class NoticeLogTest : public ::testing::Test {
 protected:
  NoticeLogTest() { rte_openlog_stream(stream_.file()); }
  ~NoticeLogTest() override { rte_openlog_stream(nullptr); }

  test::LogPipe pipe_;
  LogStream stream_{pipe_.writer()};
  NoticeLog log_;
};

TEST_F(NoticeLogTest, SaysWhoSpeaks) {
  log_.write("process 7 is odd", 5000);
  EXPECT_EQ(pipe_.text(), "peal-nic: process 7 is odd\n");
}

TEST_F(NoticeLogTest, FewASecondAndHowManyWereLeftOut) {
  std::string expected;
  for (uint32_t i = 0; i < NoticeLog::kLinesPerSecond; i++) expected += "peal-nic: x\n";
  for (int i = 0; i < 1000; i++) log_.write("x", 5999);
  EXPECT_EQ(pipe_.text(), expected);
  EXPECT_EQ(log_.left_out(), 1000u - NoticeLog::kLinesPerSecond);
  log_.write("y", 6000);
  log_.write("z", 7000);
  EXPECT_EQ(pipe_.text(), "peal-nic: 980 notices were left out\npeal-nic: y\npeal-nic: z\n");
}

TEST_F(NoticeLogTest, WaitsForNoReader) {
  const std::string longest(2 * PIPE_BUF, 'z');
  for (uint64_t second = 0; second < 100; second++) log_.write(longest, second * 1000);
  EXPECT_GT(stream_.dropped(), 0u);
  EXPECT_EQ(pipe_.text().substr(0, PIPE_BUF),
            "peal-nic: " + std::string(PIPE_BUF - 11, 'z') + "\n");
}

// Who runs the cards may want to hear less, or more.
TEST_F(NoticeLogTest, TheLevelOfTheTypeDecides) {
  ASSERT_EQ(rte_log_set_level_pattern("peal", RTE_LOG_ERR), 0);
  log_.write("unheard", 1000);
  log(RTE_LOG_ERR, "heard");
  ASSERT_EQ(rte_log_set_level_pattern("peal", RTE_LOG_INFO), 0);
  log(RTE_LOG_INFO, "this too");
  log(RTE_LOG_DEBUG, "but not this");
  ASSERT_EQ(rte_log_set_level_pattern("peal", RTE_LOG_NOTICE), 0);
  EXPECT_EQ(pipe_.text(), "peal-nic: heard\npeal-nic: this too\n");
}

}  // namespace
}  // namespace peal::nic
