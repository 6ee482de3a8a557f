// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/process_memory.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <string>
#include <thread>

#include "tests/support/forbid.h"

namespace peal::nic {
namespace {

constexpr uid_t kStranger = 54321;

// The thread's ids and capabilities, as the kernel tells them.
std::string status() {
  std::ifstream file("/proc/thread-self/status");
  std::string all;
  for (std::string line; std::getline(file, line);) {
    for (const char* const name : {"Uid:", "Gid:", "Groups:", "Cap"}) {
      if (line.starts_with(name)) all += line + "\n";
    }
  }
  return all;
}

// A process of the stranger's, whose memory was ours. It stands still until told to go on.
class Stranger {
 public:
  explicit Stranger(bool dumpable) {
    EXPECT_EQ(pipe2(said_, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(told_, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) live(dumpable);
    pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, static_cast<long>(pid_), 0L));
    char byte = 0;
    EXPECT_EQ(read(said_[0], &byte, 1), 1);
  }
  ~Stranger() {
    end();
    for (const int fd : {said_[0], said_[1], told_[0], told_[1], pidfd_}) close(fd);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] int pidfd() const { return pidfd_; }
  // Its memory is another one when this returns.
  void execute() {
    close(said_[1]);
    said_[1] = -1;
    EXPECT_EQ(write(told_[1], "x", 1), 1);
    char byte = 0;
    EXPECT_EQ(read(said_[0], &byte, 1), 0);
  }
  void end() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    EXPECT_EQ(waitpid(pid_, nullptr, 0), pid_);
    pid_ = 0;
  }

 private:
  [[noreturn]] void live(bool dumpable) {
    if (setgroups(0, nullptr) != 0 || setgid(kStranger) != 0 || setuid(kStranger) != 0) _exit(1);
    prctl(PR_SET_DUMPABLE, dumpable ? 1 : 0);
    char byte = 'x';
    if (write(said_[1], &byte, 1) != 1 || read(told_[0], &byte, 1) != 1) _exit(1);
    execlp("sleep", "sleep", "3600", nullptr);
    _exit(1);
  }

  int said_[2] = {-1, -1};
  int told_[2] = {-1, -1};
  pid_t pid_ = 0;
  int pidfd_ = -1;
};

class ProcessMemoryOfStrangers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  }
  void TearDown() override {
    if (fd_ >= 0) close(fd_);
  }
  int open_as(const Stranger& stranger, uid_t user, gid_t group) {
    fd_ = open_process_memory(stranger.pid(), stranger.pidfd(), user, group).fd;
    return fd_;
  }
  // The word of the other process, which has what we had when it was made.
  bool reads() {
    uint64_t read = 0;
    return pread(fd_, &read, sizeof(read),
                 static_cast<off_t>(reinterpret_cast<uintptr_t>(&word_))) ==
               ssize_t{sizeof(read)} &&
           read == word_;
  }

  uint64_t word_ = 0x1234567;
  int fd_ = -1;
};

TEST_F(ProcessMemoryOfStrangers, IsThatOfTheProgramThatRegisteredIt) {
  Stranger stranger(true);
  ASSERT_GE(open_as(stranger, kStranger, kStranger), 0);
  EXPECT_TRUE(reads());
  stranger.execute();
  EXPECT_FALSE(reads());
}

TEST_F(ProcessMemoryOfStrangers, IsNotWhatItsUserCannotReach) {
  const Stranger open(true);
  const Stranger closed(false);
  EXPECT_EQ(open_as(open, kStranger + 1, kStranger), -1);
  EXPECT_EQ(open_as(open, kStranger, kStranger + 1), -1);
  EXPECT_EQ(open_as(closed, kStranger, kStranger), -1);
}

TEST_F(ProcessMemoryOfStrangers, WhoOpensItIsWhomItWasBefore) {
  const std::string before = status();
  prctl(PR_SET_DUMPABLE, 1);
  const Stranger stranger(true);
  ASSERT_GE(open_as(stranger, kStranger, kStranger), 0);
  EXPECT_EQ(status(), before);
  EXPECT_EQ(prctl(PR_GET_DUMPABLE), 1);
}

TEST_F(ProcessMemoryOfStrangers, TwoWhoOpenItAtOnceAreWhomTheyWereBefore) {
  prctl(PR_SET_DUMPABLE, 1);
  const Stranger stranger(true);
  const auto open_often = [&] {
    const std::string before = status();
    for (int i = 0; i < 1000; i++)
      close(open_process_memory(stranger.pid(), stranger.pidfd(), kStranger, kStranger).fd);
    EXPECT_EQ(status(), before);
  };
  for (int i = 0; i < 10; i++) {
    std::thread other(open_often);
    open_often();
    other.join();
    ASSERT_EQ(prctl(PR_GET_DUMPABLE), 1);
  }
}

TEST_F(ProcessMemoryOfStrangers, IsNotOfWhomTheNumberMeansNow) {
  const Stranger stranger(true);
  Stranger dead(true);
  dead.end();
  EXPECT_EQ(open_process_memory(stranger.pid(), dead.pidfd(), kStranger, kStranger).fd, -1);
}

// A container's rules may forbid any of it: that is no reason to end.
TEST(ProcessMemory, IsOutOfReachForWhoMayNotBecomeItsUser) {
  using Calls = std::initializer_list<long>;
  for (const Calls calls : {Calls{SYS_setfsuid, SYS_setfsgid, SYS_capset}, Calls{SYS_setfsuid},
                            Calls{SYS_setfsgid}, Calls{SYS_capset}, Calls{SYS_capget}}) {
    const pid_t child = fork();
    if (child == 0) {
      if (!::peal::test::forbid(calls, EPERM)) _exit(2);
      const OpenedMemory memory = open_process_memory(getpid(), -1, kStranger, kStranger);
      _exit(memory.fd == -1 && !memory.no_resources && memory.not_as_user ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << *calls.begin();
  }
}

TEST(ProcessMemory, OfRootIsReachedByNumberByRootAlone) {
  EXPECT_EQ(may_reach_more_than(0), geteuid() != 0);
  EXPECT_TRUE(may_reach_more_than(geteuid() + 1));
}

// Unless we may trace what is not ours.
TEST(ProcessMemory, OfTheOwnUserIsReachedByNumber) {
  const pid_t child = fork();
  if (child == 0) {
    // (Root's leave to trace goes with its user.)
    if (geteuid() == 0 && setuid(kStranger) != 0) _exit(2);
    std::ifstream status("/proc/self/status");
    std::string word;
    uint64_t effective = 0;
    while (status >> word) {
      if (word == "CapEff:") status >> std::hex >> effective;
    }
    const bool traces = (effective >> CAP_SYS_PTRACE & 1) != 0;
    _exit(may_reach_more_than(geteuid()) == traces ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace peal::nic
