// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/unix_listener.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "base/unix_socket.h"
#include "tests/unit/emulator/temporary_folder.h"

namespace peal::nic {
namespace {

class UnixListenerTest : public ::testing::Test {
 protected:
  // A socket's name without a listener, as a killed process leaves it.
  void abandon() const {
    const FileDescriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    UnixAddress address;
    ASSERT_TRUE(address.set(path_));
    ASSERT_EQ(bind(fd.get(), address.get(), UnixAddress::bytes()), 0);
  }
  [[nodiscard]] bool answers() const {
    const FileDescriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    UnixAddress address;
    return address.set(path_) && connect(fd.get(), address.get(), UnixAddress::bytes()) == 0;
  }

  const test::TemporaryFolder own_folder_{"listener"};
  const std::string& folder_ = own_folder_.path();
  const std::string path_ = folder_ + "/socket";
};

TEST_F(UnixListenerTest, ListensUnderItsNameAndTakesItAway) {
  UnixListener listener;
  EXPECT_EQ(listener.listen(path_, SOCK_SEQPACKET, 0600), "");
  EXPECT_TRUE(answers());
  struct stat info = {};
  ASSERT_EQ(lstat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777u, 0600u);
  listener.close();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(UnixListenerTest, OneThatListensIsLeftAlone) {
  UnixListener first;
  UnixListener second;
  EXPECT_EQ(first.listen(path_, SOCK_SEQPACKET, 0600), "");
  EXPECT_NE(second.listen(path_, SOCK_SEQPACKET, 0600), "");
  EXPECT_TRUE(answers());
}

TEST_F(UnixListenerTest, AFileInTheWayIsLeftAlone) {
  std::ofstream(path_) << "mine";
  UnixListener listener;
  EXPECT_NE(listener.listen(path_, SOCK_SEQPACKET, 0600), "");
  EXPECT_TRUE(std::filesystem::is_regular_file(path_));
}

TEST_F(UnixListenerTest, ANameThatIsAnothersByNowStays) {
  UnixListener listener;
  ASSERT_EQ(listener.listen(path_, SOCK_SEQPACKET, 0600), "");
  unlink(path_.c_str());
  abandon();
  listener.close();
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(UnixListenerTest, PathsThatDoNotFit) {
  UnixListener listener;
  EXPECT_NE(listener.listen("", SOCK_SEQPACKET, 0600), "");
  EXPECT_NE(listener.listen(std::string(200, 's'), SOCK_SEQPACKET, 0600), "");
  EXPECT_NE(listener.listen(folder_ + "/none/socket", SOCK_SEQPACKET, 0600), "");
}

// pealrun holds a lock on its job's folder as long as it lives; anybody may lock /tmp.
TEST_F(UnixListenerTest, ALockOnItsFolderIsAnothersBusiness) {
  const int folder = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(folder, LOCK_EX | LOCK_NB), 0);
  UnixListener listener;
  EXPECT_EQ(listener.listen(path_, SOCK_SEQPACKET, 0600), "");
  EXPECT_TRUE(answers());
  close(folder);
}

TEST_F(UnixListenerTest, AFileOfAnothersUnderTheLocksNameIsLeftAlone) {
  std::ofstream(path_ + ".lock") << "precious";
  UnixListener listener;
  EXPECT_NE(listener.listen(path_, SOCK_SEQPACKET, 0600), "");
  EXPECT_EQ(std::filesystem::file_size(path_ + ".lock"), 8u);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(UnixListenerTest, NothingButTheNameIsLeftInTheFolder) {
  std::ofstream(path_ + ".lock") << "";  // of one that was killed
  UnixListener listener;
  ASSERT_EQ(listener.listen(path_, SOCK_SEQPACKET, 0600), "");
  EXPECT_FALSE(std::filesystem::exists(path_ + ".lock"));
  listener.close();
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

// A name between its bind and its listen looks like one that was left.
TEST_F(UnixListenerTest, OfManyThatStartAtOnceOneWins) {
  constexpr int kStarters = 4;
  for (int round = 0; round < 100; round++) {
    abandon();
    std::array<UnixListener, kStarters> listeners;
    std::atomic<int> ready = 0;
    std::atomic<int> won = 0;
    std::vector<std::thread> threads;
    for (UnixListener& listener : listeners) {
      threads.emplace_back([&] {
        ready++;
        while (ready < kStarters) std::this_thread::yield();
        if (listener.listen(path_, SOCK_SEQPACKET, 0600).empty()) won++;
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(won, 1) << round;
    ASSERT_TRUE(answers()) << round;
  }
}

}  // namespace
}  // namespace peal::nic
