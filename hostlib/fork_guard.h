// SPDX-License-Identifier: BSD-2-Clause
// What a child of fork() inherits and must not use: a context's registrations mean its parent's
// memory, its rings have one writer, and a connection that the child holds open hides the parent's
// death. So whoever has such a thing notes the process that owns it, which says inherited() in a
// child, and keeps a guard, by which its descriptors are closed there at once.
#pragma once

#include <sys/types.h>

#include "base/file_descriptor.h"

namespace peal::host {

// The calling process.
pid_t current_process();

// The process that something was made in. (Apart from the guard: every call asks, and finds it on
// the cache line where its other things are.)
class OwnerProcess {
 public:
  OwnerProcess();

  // For the price of a load: the process stands in a page that the kernel wipes in every child,
  // however it was forked.
  [[nodiscard]] bool inherited() const { return !seems_own() && !is_own(); }
  // False where it is inherited, and where this kernel cannot wipe pages: inherited() says which.
  [[nodiscard]] bool seems_own() const {
    return id_ == __atomic_load_n(current_, __ATOMIC_RELAXED);
  }
  [[nodiscard]] pid_t id() const { return id_; }

 private:
  // Asks the kernel where its pages do not say.
  [[nodiscard, gnu::cold]] bool is_own() const;

  const pid_t* current_;  // of no process where this kernel cannot wipe pages
  pid_t id_;
};

class ForkGuard {
 public:
  using Leave = void (*)(void* object);

  // `leave(object)` runs in the child of a fork(), before fork() returns there; it may do only what
  // a signal handler may, and may be called again by hand.
  ForkGuard(Leave leave, void* object);
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  ~ForkGuard();

  void give_up() const { leave_(object_); }

 private:
  friend struct ForkGuards;

  Leave leave_;
  void* object_;
  ForkGuard* next_ = nullptr;
  ForkGuard* previous_ = nullptr;
};

// While one is there no thread forks.
class NoFork {
 public:
  NoFork();
  NoFork(const NoFork&) = delete;
  NoFork& operator=(const NoFork&) = delete;
  ~NoFork();
};

// A descriptor that no child keeps, whenever it is forked: where other threads may fork while one
// is being opened or closed.
class OwnDescriptor {
 public:
  OwnDescriptor() = default;
  OwnDescriptor(const OwnDescriptor&) = delete;
  OwnDescriptor& operator=(const OwnDescriptor&) = delete;
  ~OwnDescriptor() { reset(); }

  [[nodiscard]] int get() const { return fd_.get(); }
  [[nodiscard]] bool valid() const { return fd_.valid(); }
  // What open(), which does not wait, returns; negative: none. errno stays as it leaves it.
  template <typename Open>
  bool open(Open open) {
    const NoFork lock;
    fd_.reset(open());
    return fd_.valid();
  }
  // Closes what it has, which does not wait either, and takes one that the caller had to wait for.
  void reset(int fd = -1) {
    const NoFork lock;
    fd_.reset(fd);
  }
  // In a child, where whoever holds the lock may not be there.
  void leave() noexcept { fd_.reset(); }

 private:
  FileDescriptor fd_;
  ForkGuard guard_{[](void* fd) { static_cast<FileDescriptor*>(fd)->reset(); }, &fd_};
};

}  // namespace peal::host
