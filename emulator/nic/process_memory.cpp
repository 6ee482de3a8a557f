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

// Of the process, and so asked before there are threads: while one of them is somebody else, and
// until it has given it back, the answer is another.
const int kDumpable = prctl(PR_GET_DUMPABLE);

// What this thread opens, it opens as another user. Its real and effective ids stay: by those the
// kernel says who may signal and trace it.
class AsUser {
 public:
  AsUser(uid_t user, gid_t group)
      : user_before_(user_now()), group_before_(group_now()), known_(before_.get()) {
    if (!known_) return;
    setfsgid(group);
    setfsuid(user);
    Capabilities none = before_;
    none.clear_effective();
    is_ = none.set() && group_now() == static_cast<int>(group) &&
          user_now() == static_cast<int>(user);
  }
  ~AsUser() {
    setfsuid(static_cast<uid_t>(user_before_));
    setfsgid(static_cast<gid_t>(group_before_));
    const bool back = known_ && before_.set();  // unknown ones were not changed
    // Whoever was allowed to become another may go back, and nothing may be done as somebody else
    // by mistake.
    assert(!is_ || back);
    assert(user_now() == user_before_);
    assert(group_now() == group_before_);
    // The kernel takes it away from whoever changes such an id, for good: no core would be written.
    if (kDumpable == 1) prctl(PR_SET_DUMPABLE, 1);
  }
  AsUser(const AsUser&) = delete;
  AsUser& operator=(const AsUser&) = delete;
  [[nodiscard]] bool is() const { return is_; }

 private:
  // The calls say what was before, and nothing of whether they did it; or -1, each time, where a
  // filter allows none of them (seccomp(2)).
  static int user_now() { return setfsuid(~uid_t{0}); }
  static int group_now() { return setfsgid(~gid_t{0}); }

  Capabilities before_;
  int user_before_;
  int group_before_;
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
    memory.not_as_user = !as.is();
    if (memory.not_as_user) return memory;
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
