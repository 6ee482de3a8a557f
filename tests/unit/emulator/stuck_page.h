// SPDX-License-Identifier: BSD-2-Clause
// A page that whoever touches it waits for, until the test lets go (userfaultfd). Where the kernel
// gives none (it needs root, or vm.unprivileged_userfaultfd), available() is false.
#pragma once

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace peal::nic::test {

class StuckPage {
 public:
  StuckPage() {
    page_ = static_cast<uint8_t*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    fd_ = static_cast<int>(syscall(SYS_userfaultfd, 02000000 /* O_CLOEXEC */));
    if (fd_ < 0) return;
    uffdio_api api = {};
    api.api = UFFD_API;
    uffdio_register request = {};
    request.range = {reinterpret_cast<uintptr_t>(page_), kBytes};
    request.mode = UFFDIO_REGISTER_MODE_MISSING;
    if (ioctl(fd_, UFFDIO_API, &api) != 0 || ioctl(fd_, UFFDIO_REGISTER, &request) != 0) let_go();
  }
  ~StuckPage() {
    let_go();
    munmap(page_, kBytes);
  }
  StuckPage(const StuckPage&) = delete;
  StuckPage& operator=(const StuckPage&) = delete;

  [[nodiscard]] bool available() const { return fd_ >= 0; }
  [[nodiscard]] uint64_t address() const { return reinterpret_cast<uintptr_t>(page_); }
  // From now on it is a page like any other; whoever waits goes on.
  void let_go() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

  static constexpr uint64_t kBytes = 4096;

 private:
  uint8_t* page_;
  int fd_;
};

}  // namespace peal::nic::test
