// SPDX-License-Identifier: BSD-2-Clause
// The ivshmem server as QEMU sees it: what it says in which order, with which descriptors, and when
// it hangs up. The test plays QEMU.
#include "emulator/nic/pci/ivshmem_server.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "base/file_descriptor.h"
#include "base/unix_socket.h"
#include "tests/unit/emulator/temporary_folder.h"

namespace peal::nic {
namespace {

class IvshmemServerTest : public ::testing::Test {
 protected:
  IvshmemServerTest() { EXPECT_EQ(server.listen(folder + "/socket"), ""); }

  [[nodiscard]] FileDescriptor connect_guest() const {
    FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    UnixAddress address;
    EXPECT_TRUE(address.set(folder + "/socket"));
    EXPECT_EQ(connect(fd.get(), address.get(), UnixAddress::bytes()), 0);
    return fd;
  }
  // The next number, and the descriptor that came with it; -2 at the end.
  static int64_t hear(const FileDescriptor& guest, FileDescriptor* with) {
    int64_t number = -2;
    iovec part = {&number, sizeof(number)};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof(room);
    if (recvmsg(guest.get(), &message, MSG_CMSG_CLOEXEC) != sizeof(number)) return -2;
    with->reset();
    if (const cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(control), sizeof(fd));
      with->reset(fd);
    }
    return number;
  }
  static bool is_same_file(const FileDescriptor& a, int b) {
    struct stat one = {};
    struct stat other = {};
    return fstat(a.get(), &one) == 0 && fstat(b, &other) == 0 && one.st_ino == other.st_ino &&
           one.st_dev == other.st_dev;
  }

  const test::TemporaryFolder own_folder{"ivshmem"};
  const std::string& folder = own_folder.path();
  IvshmemServer server;
};

TEST_F(IvshmemServerTest, NobodyIsThereAtFirst) { EXPECT_FALSE(server.accept()); }

TEST_F(IvshmemServerTest, GreetsWithVersionPeerMemoryAndVectors) {
  const FileDescriptor guest = connect_guest();
  ASSERT_TRUE(server.accept());
  const FileDescriptor bar(memfd_create("bar", MFD_CLOEXEC));
  IvshmemGreeting greeting = {};
  greeting.bar_fd = bar.get();
  std::vector<FileDescriptor> events;
  const auto make = [&] {
    events.emplace_back(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return events.back().get();
  };
  for (int& fd : greeting.doorbell_fds) fd = make();
  for (int& fd : greeting.interrupt_fds) fd = make();
  ASSERT_TRUE(server.greet(greeting));
  FileDescriptor with;
  EXPECT_EQ(hear(guest, &with), 0);  // version
  EXPECT_FALSE(with.valid());
  EXPECT_EQ(hear(guest, &with), 0);  // the guest is peer 0
  EXPECT_FALSE(with.valid());
  EXPECT_EQ(hear(guest, &with), -1);
  EXPECT_TRUE(is_same_file(with, bar.get()));
  // Eventfds share an inode: they are told apart by what is written to them.
  for (size_t i = 0; i < events.size(); i++) {
    EXPECT_EQ(hear(guest, &with), i < PEAL_PCI_VECTORS ? PEAL_PCI_CARD_PEER : 0) << i;
    const uint64_t mark = 100 + i;
    ASSERT_EQ(write(with.get(), &mark, sizeof(mark)), ssize_t{sizeof(mark)});
    uint64_t got = 0;
    ASSERT_EQ(read(events[i].get(), &got, sizeof(got)), ssize_t{sizeof(got)}) << i;
    EXPECT_EQ(got, mark);
  }
  server.hang_up();
  EXPECT_EQ(hear(guest, &with), -2) << "there is no more";
}

TEST_F(IvshmemServerTest, AGuestIsThereUntilItClosesOrSpeaks) {
  FileDescriptor guest = connect_guest();
  ASSERT_TRUE(server.accept());
  EXPECT_TRUE(server.guest_present());
  guest.reset();
  EXPECT_FALSE(server.guest_present());
  server.hang_up();
  const FileDescriptor speaker = connect_guest();
  ASSERT_TRUE(server.accept());
  EXPECT_TRUE(server.guest_present());
  ASSERT_EQ(send(speaker.get(), "x", 1, 0), 1);
  EXPECT_FALSE(server.guest_present());
}

TEST_F(IvshmemServerTest, ASecondGuestIsTurnedAwayAndTheFirstStays) {
  const FileDescriptor first = connect_guest();
  ASSERT_TRUE(server.accept());
  EXPECT_FALSE(server.turn_away());
  const FileDescriptor second = connect_guest();
  EXPECT_TRUE(server.turn_away());
  FileDescriptor with;
  EXPECT_EQ(hear(second, &with), -2);
  EXPECT_TRUE(server.guest_present());
}

// A guest that takes nothing may not hold up the loop.
TEST_F(IvshmemServerTest, AGuestThatDoesNotListenIsGivenUp) {
  const FileDescriptor guest = connect_guest();
  ASSERT_TRUE(server.accept());
  const FileDescriptor event(eventfd(0, EFD_CLOEXEC));
  IvshmemGreeting greeting = {};
  greeting.bar_fd = event.get();
  greeting.doorbell_fds.fill(event.get());
  greeting.interrupt_fds.fill(event.get());
  int greetings = 0;
  while (server.greet(greeting)) ASSERT_LT(++greetings, 100'000);
  EXPECT_GT(greetings, 0);
}

TEST_F(IvshmemServerTest, ItsNameIsItsOwnersAloneAndGoesWithIt) {
  struct stat info = {};
  ASSERT_EQ(stat((folder + "/socket").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  server.close();
  EXPECT_NE(stat((folder + "/socket").c_str(), &info), 0);
}

}  // namespace
}  // namespace peal::nic
