// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/relay.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>
#include <thread>

namespace peal::nic {
namespace {

// Who stands by looks so many times without seeing anybody leave before it rests.
constexpr int kLooks = 50;
// At the end, for who is away.
constexpr auto kEndPatience = std::chrono::milliseconds(500);

// A thread of this process that waits for something, and not for a processor.
bool is_blocked(pid_t thread) {
  const std::string path = "/proc/self/task/" + std::to_string(thread) + "/stat";
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return true;
  char text[256];
  const size_t length = std::fread(text, 1, sizeof(text) - 1, file);
  std::fclose(file);
  text[length] = '\0';
  // "NUMBER (NAME) STATE ..."
  const char* const name_end = std::strrchr(text, ')');
  return name_end == nullptr || name_end[1] == '\0' || name_end[2] != 'R';
}

}  // namespace

uint64_t Relay::leave() {
  const uint64_t left = away_.fetch_add(1, std::memory_order_acq_rel) + 1;
  wake_who_rests();
  return left;
}

bool Relay::back(uint64_t left) {
  return away_.compare_exchange_strong(left, left + 1, std::memory_order_acq_rel);
}

// After what it is woken for. The notice looks for waiters: exchanges are ordered before that look,
// stores would not be.
void Relay::wake_who_rests() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (resting_.load(std::memory_order_relaxed) == 0) return;
  resting_.exchange(0, std::memory_order_seq_cst);
  resting_.notify_all();
}

// Until somebody leaves or it is over.
void Relay::rest(uint64_t seen) {
  resting_.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (away_.load(std::memory_order_acquire) == seen && !over_.load(std::memory_order_acquire)) {
    resting_.wait(1);
  }
  resting_.store(0, std::memory_order_relaxed);
}

// True: it serves now. False: it is over, or another one stands by.
bool Relay::stand_by() {
  if (ready_.exchange(true, std::memory_order_acq_rel)) return false;
  uint64_t seen = away_.load(std::memory_order_acquire);
  int looks = kLooks;
  while (!over_.load(std::memory_order_acquire)) {
    if (looks++ == kLooks) {
      // Whoever is away, perhaps since before the first look, wakes nobody any more.
      if ((seen & 1) == 0) rest(seen);
      looks = 0;
    }
    std::this_thread::sleep_for(kPatience);
    const uint64_t away = away_.load(std::memory_order_acquire);
    const bool since_before = away == seen && (away & 1) != 0;
    if (away != seen) looks = 0;
    seen = away;
    if (!since_before || !is_blocked(serving_.load(std::memory_order_relaxed))) continue;
    ready_.store(false, std::memory_order_relaxed);
    uint64_t expected = away;
    if (away_.compare_exchange_strong(expected, away + 1, std::memory_order_acq_rel)) {
      reliefs_.fetch_add(1, std::memory_order_relaxed);
      return true;
    }
    ready_.store(true, std::memory_order_release);
  }
  return false;
}

void Relay::live(Part part) {
  prctl(PR_SET_NAME, "peal-loop");
  while (true) {
    (*place_)(part);
    if (part == Part::kStandsBy) {
      if (!stand_by()) break;
      // Whoever it relieved may be away for long.
      start(Part::kStandsBy);
      part = Part::kServes;
      continue;  // to its place first
    }
    serving_.store(gettid(), std::memory_order_relaxed);
    if ((*serve_)()) {
      over_.exchange(true, std::memory_order_seq_cst);
      over_.notify_all();
      wake_who_rests();
      break;
    }
    part = Part::kStandsBy;
  }
  living_.fetch_sub(1, std::memory_order_release);
}

// Signals are for the thread that calls run().
bool Relay::start(Part part) {
  if (living_.fetch_add(1, std::memory_order_relaxed) < kThreads) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = true;
    try {
      std::thread([this, part] { live(part); }).detach();
    } catch (const std::system_error&) {
      started = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (started) return true;
  }
  living_.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

bool Relay::run(const std::function<bool()>& serve, const std::function<void(Part)>& place) {
  serve_ = &serve;
  place_ = &place;
  if (!start(Part::kServes)) {
    // Nobody stands by, so that nobody is relieved.
    place(Part::kServes);
    return serve();
  }
  start(Part::kStandsBy);
  over_.wait(false);
  const auto end = std::chrono::steady_clock::now() + kEndPatience;
  while (living_.load(std::memory_order_acquire) > 0) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace peal::nic
