// SPDX-License-Identifier: BSD-2-Clause
// A pipe for what is logged, whose writing end waits, as standard error's does.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

namespace peal::nic::test {

class LogPipe {
 public:
  LogPipe() {
    EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0);
    EXPECT_EQ(fcntl(ends_[0], F_SETFL, O_NONBLOCK), 0);
  }
  ~LogPipe() {
    for (const int fd : ends_) close(fd);
  }
  LogPipe(const LogPipe&) = delete;
  LogPipe& operator=(const LogPipe&) = delete;

  [[nodiscard]] int writer() const { return ends_[1]; }
  // Until nothing more goes in.
  void fill() {
    ASSERT_EQ(fcntl(ends_[1], F_SETFL, O_NONBLOCK), 0);
    while (write(ends_[1], "f", 1) == 1) continue;
    ASSERT_EQ(fcntl(ends_[1], F_SETFL, 0), 0);
  }
  // Of a full one: room for so many bytes, less than a page.
  void leave(size_t bytes) {
    std::array<char, 4096> page;
    ASSERT_EQ(read(ends_[0], page.data(), page.size()), static_cast<ssize_t>(page.size()));
    const size_t again = page.size() - bytes;
    ASSERT_EQ(write(ends_[1], page.data(), again), static_cast<ssize_t>(again));
  }
  // Everything written since the last call.
  std::string text() {
    std::string all;
    std::array<char, 4096> bytes;
    for (ssize_t got = 0; (got = read(ends_[0], bytes.data(), bytes.size())) > 0;)
      all.append(bytes.data(), static_cast<size_t>(got));
    return all;
  }

 private:
  int ends_[2];
};

}  // namespace peal::nic::test
