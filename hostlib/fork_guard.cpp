// SPDX-License-Identifier: BSD-2-Clause
// The list of all guards, and what happens to them in a child; see fork_guard.h.
#include "hostlib/fork_guard.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <mutex>

namespace peal::host {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr pid_t kNoProcess = 0;

// Null when this kernel cannot wipe pages.
pid_t* make_wiped_page() {
  void* page =
      mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  if (madvise(page, kPageBytes, MADV_WIPEONFORK) == 0) return static_cast<pid_t*>(page);
  munmap(page, kPageBytes);
  return nullptr;
}

pid_t* wiped_page() {
  static pid_t* const page = make_wiped_page();
  return page;
}

}  // namespace

// All guards of the process. Never destroyed: other static objects may own contexts.
struct ForkGuards {
  std::mutex mutex;  // held across every fork(), so that a child finds the list whole
  ForkGuard* first = nullptr;

  static ForkGuards& all() {
    static ForkGuards& guards = make();
    return guards;
  }
  void add(ForkGuard& guard) {
    const std::lock_guard<std::mutex> lock(mutex);
    guard.next_ = first;
    if (first != nullptr) first->previous_ = &guard;
    first = &guard;
  }
  void remove(ForkGuard& guard) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (guard.next_ != nullptr) guard.next_->previous_ = guard.previous_;
    (guard.previous_ != nullptr ? guard.previous_->next_ : first) = guard.next_;
  }

 private:
  static ForkGuards& make() {
    auto* guards = new ForkGuards;
    pthread_atfork([] { all().mutex.lock(); }, [] { all().mutex.unlock(); }, [] { leave_all(); });
    return *guards;
  }
  static void leave_all() {
    // Where an emulated kernel only says that it wipes pages.
    if (wiped_page() != nullptr) __atomic_store_n(wiped_page(), 0, __ATOMIC_RELAXED);
    for (ForkGuard* guard = all().first; guard != nullptr; guard = guard->next_) {
      guard->give_up();
    }
    all().mutex.unlock();
  }
};

pid_t current_process() {
  pid_t* const page = wiped_page();
  if (page == nullptr) return getpid();
  pid_t process = __atomic_load_n(page, __ATOMIC_RELAXED);
  if (process == 0) {
    process = getpid();
    __atomic_store_n(page, process, __ATOMIC_RELAXED);
  }
  return process;
}

OwnerProcess::OwnerProcess()
    : current_(wiped_page() != nullptr ? wiped_page() : &kNoProcess), id_(current_process()) {}

bool OwnerProcess::is_own() const { return current_ == &kNoProcess && id_ == current_process(); }

ForkGuard::ForkGuard(Leave leave, void* object) : leave_(leave), object_(object) {
  ForkGuards::all().add(*this);
}

ForkGuard::~ForkGuard() { ForkGuards::all().remove(*this); }

NoFork::NoFork() { ForkGuards::all().mutex.lock(); }

NoFork::~NoFork() { ForkGuards::all().mutex.unlock(); }

}  // namespace peal::host
