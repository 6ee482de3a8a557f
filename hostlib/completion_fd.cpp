// SPDX-License-Identifier: BSD-2-Clause
// A completion descriptor for epoll. The card announces completions by a futex word or the driver's
// eventfd; a thread of our own turns that into an eventfd that belongs to the context, one
// announcement per peal_arm(). It exists only once asked for, and sleeps while the context is not
// armed.
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "hostlib/handles.h"
#include "hostlib/rings.h"
#include "hostlib/wait.h"

namespace peal::host {
namespace {

constexpr int kSleepMs = 100;

void announce(peal_context& context) {
  context.armed = false;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(context.event_fd.get(), &one, sizeof(one));
}

void watch(peal_context& context) {
  Lock lock(context.mutex);
  while (!context.stopping) {
    if (!context.armed) {
      context.rearmed.wait(lock);
    } else if (context.completed != context.completed_seen || context.broken != PEAL_OK) {
      announce(context);
    } else {
      (void)sleep_once(context, kSleepMs, lock);
      check_card(context, now_ns());
    }
  }
}

peal_error make_completion_fd(peal_context& context, int* fd) {
  const Lock lock(context.mutex);
  if (!context.event_fd.valid()) {
    FileDescriptor made(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!made.valid()) return fail_errno(PEAL_ERR_SYSTEM, "eventfd");
    // It waits for the lock; without it nobody would ever write the descriptor.
    context.watcher = std::thread([&context] { watch(context); });
    context.event_fd.reset(made.release());
  }
  *fd = context.event_fd.get();
  return PEAL_OK;
}

peal_error arm(peal_context& context, int* ready) {
  const Lock lock(context.mutex);
  if (!context.event_fd.valid()) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_arm: call peal_completion_fd() first");
  }
  uint64_t announced = 0;
  [[maybe_unused]] const ssize_t got = read(context.event_fd.get(), &announced, sizeof(announced));
  drain(context);
  check_card(context, now_ns());
  *ready = context.completed != context.completed_seen || context.broken != PEAL_OK ? 1 : 0;
  context.completed_seen = context.completed;
  context.armed = *ready == 0;
  if (context.armed) context.rearmed.notify_all();
  return PEAL_OK;
}

}  // namespace
}  // namespace peal::host

using peal::host::fail;

extern "C" peal_error peal_completion_fd(peal_context* context, int* fd) {
  if (context == nullptr || fd == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_completion_fd: an argument is null");
  }
  *fd = -1;
  return peal::host::guarded(*context, "peal_completion_fd",
                             [&] { return peal::host::make_completion_fd(*context, fd); });
}

extern "C" peal_error peal_arm(peal_context* context, int* ready) {
  if (context == nullptr || ready == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_arm: an argument is null");
  }
  *ready = 0;
  return peal::host::guarded(*context, "peal_arm",
                             [&] { return peal::host::arm(*context, ready); });
}
