// SPDX-License-Identifier: BSD-2-Clause
// Memory of processes whose user may do less than we: we are root, or may trace everybody.
// process_vm_* asks who we are, and would reach whatever a client's process becomes by execve(), a
// setuid program's memory too: its number and its pidfd stay the same. So such a client's memory is
// reached by a descriptor (/proc/PID/mem), opened when it is registered, as the client's user and
// without any capability: the kernel looks at both under one lock. What was opened is the memory of
// that moment, and an execve() ends it.
//
// Not by copies with the client's user ids: process_vm_* goes by the real one, and whose real user
// id a thread has may signal it, which ends us all.
#pragma once

#include <sys/types.h>

namespace peal::nic {

// Process_vm_* lets us reach more than a process of that user could.
[[nodiscard]] bool may_reach_more_than(uid_t user);

struct OpenedMemory {
  int fd = -1;
  bool no_resources = false;  // there may be some later; otherwise without a descriptor: not theirs
  bool not_as_user = false;   // or we may not become that user, nor the group
};
// The memory of the process that both the number and the descriptor mean, for that user and group
// to read and write. The descriptor is the caller's. Any thread but the loop's: the ids it opens
// files with are another's meanwhile.
[[nodiscard]] OpenedMemory open_process_memory(pid_t pid, int pidfd, uid_t user, gid_t group);

// The number of that descriptor means no process any more, or another.
[[nodiscard]] bool is_gone(int pidfd);

}  // namespace peal::nic
