// SPDX-License-Identifier: BSD-2-Clause
// What a child of fork() inherits and must not use: a context's registrations mean its parent's
// memory, its rings have one writer, and a connection that the child holds open hides the parent's
// death. So whoever owns such a thing keeps a guard: in a child it says inherited(), and there the
// owner's descriptors are closed at once.
#pragma once

#include <sys/types.h>

namespace peal::host {

// The calling process.
pid_t current_process();

class ForkGuard {
 public:
  using Leave = void (*)(void* object);

  // `leave(object)` runs in the child of a fork(), before fork() returns there; it may do only what
  // a signal handler may, and may be called again by hand.
  ForkGuard(Leave leave, void* object);
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  ~ForkGuard();

  // For the price of a load: the process stands in a page that the kernel wipes in every child,
  // however it was forked.
  [[nodiscard]] bool inherited() const { return !seems_own() && !is_own(); }
  // False where it is inherited, and where this kernel cannot wipe pages: inherited() says which.
  [[nodiscard]] bool seems_own() const {
    return owner_ == __atomic_load_n(process_, __ATOMIC_RELAXED);
  }
  [[nodiscard]] pid_t owner() const { return owner_; }
  void give_up() const { leave_(object_); }

 private:
  friend struct ForkGuards;

  // Asks the kernel where its pages do not say.
  [[nodiscard, gnu::cold]] bool is_own() const;

  pid_t owner_;
  const pid_t* process_;  // of no process where this kernel cannot wipe pages
  Leave leave_;
  void* object_;
  ForkGuard* next_ = nullptr;
  ForkGuard* previous_ = nullptr;
};

}  // namespace peal::host
