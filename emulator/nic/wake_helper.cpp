// SPDX-License-Identifier: BSD-2-Clause
// The helper's life: serve, linger, park. Parking is the same handshake as in the rings: say that
// you sleep, fence, look again.
#include "emulator/nic/wake_helper.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <system_error>

namespace peal::nic {
namespace {

constexpr auto kAwakeFor = std::chrono::microseconds(50);
// A write that has not happened by then waits for somebody.
constexpr long kWriteNs = 1'000'000;

void futex_wait(std::atomic<uint32_t>* word, uint32_t value) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

int interrupt_signal() { return SIGRTMIN + 3; }

// Without SA_RESTART, so that the signal ends the call it arrives in.
void ignore_interrupts() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigemptyset(&action.sa_mask);
  sigaction(interrupt_signal(), &action, nullptr);
}

}  // namespace

void futex_wake_all(uint32_t* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

WakeHelper::WakeHelper(uint32_t slots)
    : slots_(slots),
      pending_(std::make_unique<std::atomic<uint64_t>[]>((slots + kBits - 1) / kBits)),
      targets_(std::make_unique<Target[]>(slots)) {}

std::string WakeHelper::start() {
  ignore_interrupts();
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return std::string("cannot start the thread that wakes hosts: ") + error.what();
  }
  pthread_setname_np(thread_.native_handle(), "peal-wake");
  return {};
}

void WakeHelper::run_on(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<size_t>(cpu), &set);
  pthread_setaffinity_np(thread_.native_handle(), sizeof(set), &set);
}

void WakeHelper::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true);
  unpark();
  thread_.join();
  for (uint32_t i = 0; i < slots_; i++) clear(targets_[i]);
}

void WakeHelper::clear(Target& target) {
  if (target.fd >= 0) close(target.fd);
  target = Target{};
}

WakeSlot WakeHelper::add(Target target) {
  const std::lock_guard lock(mutex_);
  for (uint32_t i = 0; i < slots_; i++) {
    if (targets_[i].used) continue;
    targets_[i] = target;
    targets_[i].used = true;
    pending_[i / kBits].fetch_and(~(uint64_t{1} << (i % kBits)), std::memory_order_relaxed);
    if (i / kBits >= high_words_.load(std::memory_order_relaxed))
      high_words_.store(i / kBits + 1, std::memory_order_release);
    return i;
  }
  if (target.fd >= 0) close(target.fd);
  return kNoWakeSlot;
}

WakeSlot WakeHelper::add_eventfd(int fd) {
  Target target;
  target.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  return target.fd < 0 ? kNoWakeSlot : add(target);
}

WakeSlot WakeHelper::add_futex(uint32_t* word) {
  Target target;
  target.word = word;
  return add(target);
}

void WakeHelper::remove(WakeSlot slot) {
  if (slot >= slots_) return;
  const std::lock_guard lock(mutex_);
  if (serving_ == slot) {
    targets_[slot].leaving = true;
  } else {
    clear(targets_[slot]);
  }
}

bool WakeHelper::serve() {
  bool any = false;
  const uint32_t words = high_words_.load(std::memory_order_acquire);
  for (uint32_t word = 0; word < words; word++) {
    if (pending_[word].load(std::memory_order_relaxed) == 0) continue;
    uint64_t bits = pending_[word].exchange(0, std::memory_order_acq_rel);
    for (; bits != 0; bits &= bits - 1)
      any |= wake(word * kBits + static_cast<uint32_t>(std::countr_zero(bits)));
  }
  return any;
}

bool WakeHelper::wake(WakeSlot slot) {
  Target target;
  {
    const std::lock_guard lock(mutex_);
    target = targets_[slot];
    if (!target.used || target.leaving) return false;
    serving_ = slot;
  }
  wakes_.fetch_add(1, std::memory_order_relaxed);
  bool blocks = false;
  if (target.word != nullptr) {
    futex_wake_all(target.word);
  } else if (target.fd >= 0) {
    blocks = !write_soon(target.fd);
  }
  const std::lock_guard lock(mutex_);
  serving_ = kNoWakeSlot;
  Target& served = targets_[slot];
  if (blocks) {
    blocked_.fetch_add(1, std::memory_order_relaxed);
    close(served.fd);
    served.fd = -1;  // the slot stays its owner's, and silent
  }
  if (served.leaving) clear(served);
  return true;
}

// False when the write had to be interrupted. A full counter that does not let writers wait is
// readable already: nothing is lost.
bool WakeHelper::write_soon(int fd) {
  // Again and again, because the first may come before the write.
  constexpr itimerspec kArmed = {{0, kWriteNs}, {0, kWriteNs}};
  constexpr itimerspec kDisarmed = {};
  if (has_timer_) timer_settime(timer_, 0, &kArmed, nullptr);
  const uint64_t one = 1;
  const bool interrupted = write(fd, &one, sizeof(one)) < 0 && errno == EINTR;
  if (has_timer_) timer_settime(timer_, 0, &kDisarmed, nullptr);
  return !interrupted;
}

void WakeHelper::park() {
  parked_.store(1);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (serve() || stopping_.load()) {
    parked_.store(0);
    return;
  }
  while (parked_.load() == 1) futex_wait(&parked_, 1);
}

void WakeHelper::unpark() {
  if (parked_.exchange(0) == 0) return;
  unparks_.fetch_add(1, std::memory_order_relaxed);
  syscall(SYS_futex, &parked_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void WakeHelper::run() {
  using Clock = std::chrono::steady_clock;
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = interrupt_signal();
#ifdef sigev_notify_thread_id
  event.sigev_notify_thread_id = gettid();
#else
  event._sigev_un._tid = gettid();
#endif
  has_timer_ = timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
  auto until = Clock::now();
  while (!stopping_.load()) {
    if (serve()) {
      until = Clock::now() + kAwakeFor;
    } else if (Clock::now() < until) {
      sched_yield();
    } else {
      park();
      until = Clock::now() + kAwakeFor;
    }
  }
  if (has_timer_) timer_delete(timer_);
}

}  // namespace peal::nic
