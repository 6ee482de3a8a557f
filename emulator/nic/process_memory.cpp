// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/process_memory.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <string>

namespace peal::nic {
namespace {

// Of this thread.
class Capabilities {
 public:
  [[nodiscard]] bool get() { return syscall(SYS_capget, &header_, sets_.data()) == 0; }
  [[nodiscard]] bool set() { return syscall(SYS_capset, &header_, sets_.data()) == 0; }
  void clear_effective() {
    for (auto& set : sets_) set.effective = 0;
  }
  [[nodiscard]] bool may_trace() const {
    return (sets_[CAP_TO_INDEX(CAP_SYS_PTRACE)].effective & CAP_TO_MASK(CAP_SYS_PTRACE)) != 0;
  }

 private:
  __user_cap_header_struct header_ = {_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets_ = {};
};

// What this thread opens, it opens as another user. Its real and effective ids stay: by those the
// kernel says who may signal and trace it.
class AsUser {
 public:
  AsUser(uid_t user, gid_t group) : dumpable_(prctl(PR_GET_DUMPABLE)), known_(before_.get()) {
    if (!known_) return;
    setfsgid(group);
    setfsuid(user);
    Capabilities none = before_;
    none.clear_effective();
    // They say what was before, and nothing of whether they did it.
    is_ = none.set() && setfsgid(~gid_t{0}) == static_cast<int>(group) &&
          setfsuid(~uid_t{0}) == static_cast<int>(user);
  }
  ~AsUser() {
    setfsuid(geteuid());
    setfsgid(getegid());
    const bool back = known_ && before_.set();  // unknown ones were not changed
    // For us to go back is always allowed, and nothing may be done as somebody else by mistake.
    assert(!is_ || back);
    assert(setfsuid(~uid_t{0}) == static_cast<int>(geteuid()));
    assert(setfsgid(~gid_t{0}) == static_cast<int>(getegid()));
    // The kernel takes it away from whoever changes such an id, for good: no core would be written.
    if (dumpable_ == 1) prctl(PR_SET_DUMPABLE, 1);
  }
  AsUser(const AsUser&) = delete;
  AsUser& operator=(const AsUser&) = delete;
  [[nodiscard]] bool is() const { return is_; }

 private:
  Capabilities before_;
  int dumpable_;
  bool known_;  // before_
  bool is_ = false;
};

}  // namespace

bool is_gone(int pidfd) {
  pollfd gone = {pidfd, POLLIN, 0};
  return pidfd >= 0 && poll(&gone, 1, 0) != 0;
}

bool may_reach_more_than(uid_t user) {
  if (user != geteuid()) return true;
  Capabilities ours;
  // Root may do all that we may.
  return user != 0 && (!ours.get() || ours.may_trace());
}

OpenedMemory open_process_memory(pid_t pid, int pidfd, uid_t user, gid_t group) {
  const std::string path = "/proc/" + std::to_string(pid) + "/mem";
  OpenedMemory memory;
  {
    const AsUser as(user, group);
    if (!as.is()) return memory;
    memory.fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    memory.no_resources = memory.fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
  }
  // Whose number it was while we opened it.
  if (memory.fd >= 0 && is_gone(pidfd)) {
    close(memory.fd);
    memory.fd = -1;
  }
  return memory;
}

}  // namespace peal::nic
