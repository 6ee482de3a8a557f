// SPDX-License-Identifier: BSD-2-Clause
// What killed processes leave in DPDK's folder, and who collects it.
#include "emulator/nic/eal.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/unix_socket.h"
#include "tests/unit/emulator/temporary_folder.h"

namespace peal::nic {
namespace {

class RuntimeFolderTest : public ::testing::Test {
 protected:
  RuntimeFolderTest() {
    // A process that was, and is no more.
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
    dead_ = std::to_string(child);
  }

  std::string add(const std::string& name) const {
    std::filesystem::create_directory(parent_ + "/" + name);
    return parent_ + "/" + name;
  }
  // A telemetry socket; the descriptor listens.
  static int add_socket(const std::string& folder) {
    UnixAddress address;
    EXPECT_TRUE(address.set(folder + "/dpdk_telemetry.v2"));
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(fd, address.get(), UnixAddress::bytes()), 0);
    EXPECT_EQ(listen(fd, 1), 0);
    return fd;
  }
  std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(parent_))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  const test::TemporaryFolder folder_{"runtime"};
  const std::string& parent_ = folder_.path();
  std::string dead_;
};

TEST_F(RuntimeFolderTest, OfTheDeadAreCollected) {
  add("peal-" + dead_);
  collect_runtime_folders(parent_);
  EXPECT_EQ(left(), std::vector<std::string>{});
  close(add_socket(add("peal-" + dead_)));
  collect_runtime_folders(parent_);
  EXPECT_EQ(left(), std::vector<std::string>{});
}

TEST_F(RuntimeFolderTest, OfTheLivingStay) {
  add("peal-" + std::to_string(getpid()));  // this program's name begins as peal-nic's
  // No process that we know, as that of another container; but it answers.
  const int fd = add_socket(add("peal-" + dead_));
  collect_runtime_folders(parent_);
  EXPECT_EQ(left().size(), 2u);
  close(fd);
}

TEST_F(RuntimeFolderTest, WhatIsNotOursStays) {
  for (const char* name : {"rte", "peal-", "peal-x1", "peal-bench-1", "peal-99999999999"})
    add(name);
  std::ofstream(add("peal-" + dead_) + "/unknown") << "somebody's";
  collect_runtime_folders(parent_);
  EXPECT_EQ(left().size(), 6u);
  collect_runtime_folders(parent_ + "/none");
}

}  // namespace
}  // namespace peal::nic
