// SPDX-License-Identifier: BSD-2-Clause
// Workers serve, linger, park;
// the handshakes are those of the rings (say that you sleep, fence, look again).
#include "emulator/nic/copy_pool.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <csignal>
#include <system_error>
#include <tuple>

#include "emulator/common/region_table.h"
#include "emulator/nic/process_memory.h"

namespace peal::nic {
namespace {

constexpr auto kLinger = std::chrono::microseconds(50);
// At the end: longer than any copy that is not stuck.
constexpr auto kStopPatience = std::chrono::milliseconds(500);

// Of pieces that were copied in order until something could not be reached: the first that was not.
uint32_t note_copied(CopyPiece* const* pieces, uint32_t next, uint32_t end, ssize_t copied) {
  for (auto bytes = static_cast<uint64_t>(std::max<ssize_t>(copied, 0));
       next < end && bytes >= pieces[next]->bytes; next++) {
    bytes -= pieces[next]->bytes;
    pieces[next]->ok = true;
  }
  return next;
}

void copy_by_descriptor(CopyPiece* const* pieces, uint32_t count, const iovec* local) {
  const auto copy = pieces[0]->to_card ? preadv : pwritev;
  for (uint32_t next = 0; next < count;) {
    uint32_t end = next;
    uint64_t at = pieces[next]->remote;
    for (; end < count && pieces[end]->remote == at; end++) at += pieces[end]->bytes;
    const ssize_t copied = copy(pieces[0]->memory, local + next, static_cast<int>(end - next),
                                static_cast<off_t>(pieces[next]->remote));
    const uint32_t failed = note_copied(pieces, next, end, copied);
    next = failed < end ? failed + 1 : end;
  }
}

}  // namespace

void copy_pieces(CopyPiece* const* pieces, uint32_t count) {
  assert(count > 0 && count <= CopyLane::kBatch);
  std::array<iovec, CopyLane::kBatch> local;
  std::array<iovec, CopyLane::kBatch> remote;
  for (uint32_t i = 0; i < count; i++) {
    pieces[i]->ok = false;
    local[i] = {pieces[i]->card, pieces[i]->bytes};
  }
  if (pieces[0]->memory != emulator::RegionTable::kByNumber)
    return copy_by_descriptor(pieces, count, local.data());
  for (uint32_t next = 0; next < count; next++) {
    // What lies side by side is one range, whose pages the kernel looks up together.
    uint32_t ranges = 0;
    uint64_t end = 0;
    for (uint32_t i = next; i < count; i++) {
      const CopyPiece& piece = *pieces[i];
      if (ranges == 0 || piece.remote != end) {
        // An address of another process: never a pointer here.
        remote[ranges++] = {reinterpret_cast<void*>(piece.remote), 0};
      }
      remote[ranges - 1].iov_len += piece.bytes;
      end = piece.remote + piece.bytes;
    }
    const auto copy = pieces[0]->to_card ? process_vm_readv : process_vm_writev;
    const ssize_t copied =
        copy(pieces[0]->pid, &local[next], count - next, remote.data(), ranges, 0);
    // The kernel goes on until something cannot be reached, in order.
    next = note_copied(pieces, next, count, copied);
    // pieces[next] is the one that failed.
  }
}

// --- lanes: the loop ---

const CopyPiece* CopyLane::take() {
  if (taken_ != done_.load(std::memory_order_acquire) && (!abandoned_ || taken_ != abandoned_from_))
    return &pieces_[taken_++ % kPieces];
  if (!abandoned_) return nullptr;
  const uint32_t tail = tail_.load(std::memory_order_relaxed);
  if (abandoned_taken_ != tail) {
    CopyPiece& piece = pieces_[abandoned_taken_++ % kPieces];
    piece.ok = false;
    return &piece;
  }
  return nullptr;
}

void CopyLane::abandon() {
  if (abandoned_) return;
  abandoned_ = true;
  abandoned_from_ = claimed_.exchange(tail_.load(std::memory_order_relaxed));
  abandoned_taken_ = abandoned_from_;
}

void CopyLane::reset() {
  const uint32_t tail = tail_.load(std::memory_order_relaxed);
  claimed_.store(tail);
  done_.store(tail);
  taken_ = tail;
  abandoned_ = blocks_ = false;
  there_ = 0;
  hands_ = nullptr;
}

// --- lanes: a worker ---

bool CopyLane::is_there(const CopyPiece& piece) {
  const auto now = std::chrono::steady_clock::now();
  if (piece.pid == there_ && now - looked_ < kNumberLasts) return true;
  if (is_gone(piece.pidfd)) return false;
  there_ = piece.pid;
  looked_ = now;
  return true;
}

bool CopyLane::work() {
  if (!has_work() || busy_.exchange(true, std::memory_order_acquire)) return false;
  bool any = false;
  uint32_t head = claimed_.load(std::memory_order_relaxed);
  uint32_t count = std::min(tail_.load(std::memory_order_acquire) - head, kBatch);
  CopyHands* const hands = count > 0 ? hands_ : nullptr;
  if (hands != nullptr) count = hands->take(count);
  // The loop may have abandoned the lane meanwhile: then there is nothing to claim.
  if (count > 0 && claimed_.compare_exchange_strong(head, head + count)) {
    // All are under way together, so that none waits for another (firmware/port.h).
    std::array<CopyPiece*, kBatch> batch;
    for (uint32_t i = 0; i < count; i++) batch[i] = &pieces_[(head + i) % kPieces];
    const auto end = batch.begin() + count;
    std::sort(batch.begin(), end, [](const CopyPiece* one, const CopyPiece* other) {
      return std::tuple(one->pid, one->memory, one->to_card, one->remote) <
             std::tuple(other->pid, other->memory, other->to_card, other->remote);
    });
    for (auto run = batch.begin(); run != end;) {
      const CopyPiece& first = **run;
      const auto behind = std::find_if(run, end, [&](const CopyPiece* piece) {
        return piece->pid != first.pid || piece->memory != first.memory ||
               piece->to_card != first.to_card;
      });
      if (is_there(first)) copy_pieces(&*run, static_cast<uint32_t>(behind - run));
      run = behind;
    }
    // Before they are done: afterwards the lane may be another card's.
    if (hands != nullptr) hands->give(count);
    done_.store(head + count, std::memory_order_release);
    any = true;
  } else if (hands != nullptr) {
    hands->give(count);
  }
  busy_.store(false, std::memory_order_release);
  return any;
}

// --- the pool ---

CopyPool::CopyPool(uint32_t lanes_max)
    : lanes_max_(lanes_max),
      lanes_(std::make_unique<std::atomic<CopyLane*>[]>(lanes_max)),
      workers_(std::make_unique<std::atomic<Worker*>[]>(lanes_max)),
      event_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

CopyPool::~CopyPool() {
  stop();
  for (uint32_t i = 0; i < worker_count_.load(); i++) {
    Worker* const worker = workers_[i].load();
    worker->thread.join();
    delete worker;
  }
  for (uint32_t i = 0; i < lane_count_.load(); i++) delete lanes_[i].load();
  if (event_fd_ >= 0) close(event_fd_);
}

CopyLane* CopyPool::acquire() {
  const std::lock_guard lock(mutex_);
  if (!free_lanes_.empty()) {
    CopyLane* const lane = free_lanes_.back();
    free_lanes_.pop_back();
    return lane;
  }
  const uint32_t count = lane_count_.load();
  if (count == lanes_max_ || event_fd_ < 0 || !add_worker()) return nullptr;
  auto* const lane = new CopyLane;
  lanes_[count].store(lane);
  lane_count_.store(count + 1, std::memory_order_release);
  return lane;
}

void CopyPool::release(CopyLane* lane) {
  if (lane == nullptr) return;
  // At the end nobody takes what was copied last, and no worker is left (NicLoop).
  assert(lane->outstanding() == 0 || stopping_.load());
  const std::lock_guard lock(mutex_);
  lane->reset();
  free_lanes_.push_back(lane);
}

bool CopyPool::add_worker() {
  // Signals are for the thread that runs the loop.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto worker = std::make_unique<Worker>();
  bool made = true;
  awake_++;
  running_++;
  try {
    worker->thread = std::thread([this, self = worker.get()] { run(*self); });
    pthread_setname_np(worker->thread.native_handle(), "peal-copy");
  } catch (const std::system_error&) {
    awake_--;
    running_--;
    made = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!made) return false;
  const uint32_t count = worker_count_.load();
  workers_[count].store(worker.release());
  worker_count_.store(count + 1, std::memory_order_release);
  return true;
}

void CopyPool::notify() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (awake_.load(std::memory_order_relaxed) > stuck_) return;
  const uint32_t count = worker_count_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; i++) {
    if (unpark(*workers_[i].load(std::memory_order_relaxed))) return;
  }
}

void CopyPool::serve(CopyLane* lane, uint32_t pieces, uint64_t bytes) {
  const bool own = relay_ != nullptr && relay_->may_leave() && !lane->blocks() &&
                   pieces <= CopyLane::kBatch && own_count_ < kOwnLanes &&
                   own_bytes_ + bytes <= kOwnBytes;
  if (!own) return notify();
  own_[own_count_++] = lane;
  own_bytes_ += bytes;
}

bool CopyPool::copy_own() {
  for (; own_next_ < own_count_; own_next_++) {
    CopyLane* const lane = own_[own_next_];
    const uint64_t left = relay_->leave();
    const bool done = lane->work();
    if (!relay_->back(left)) {
      // It was a worker, and looks again before it goes, as they do.
      if (done) tell_loop();
      while (true) {
        while (work_round()) continue;
        awake_--;
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (!has_work()) return false;
        awake_++;
      }
    }
    if (lane->has_work()) notify();
  }
  own_count_ = own_next_ = 0;
  own_bytes_ = 0;
  return true;
}

void CopyPool::resume() {
  if (own_next_ == own_count_) return;
  // Whoever is in it counts as a worker until it comes back.
  awake_++;
  own_[own_next_++]->note_blocks();
  const bool more = own_next_ < own_count_;
  own_count_ = own_next_ = 0;
  own_bytes_ = 0;
  if (more) notify();
}

bool CopyPool::unpark(Worker& worker) {
  if (worker.parked.load(std::memory_order_relaxed) == 0 || worker.parked.exchange(0) == 0)
    return false;
  awake_++;
  unparks_++;
  syscall(SYS_futex, &worker.parked, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  return true;
}

void CopyPool::park(Worker& worker) {
  worker.parked.store(1);
  awake_--;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (has_work() || stopping_.load()) {
    if (worker.parked.exchange(0) == 1) awake_++;
    return;
  }
  while (worker.parked.load() == 1)
    syscall(SYS_futex, &worker.parked, FUTEX_WAIT_PRIVATE, 1, nullptr, nullptr, 0);
}

bool CopyPool::has_work() const {
  const uint32_t count = lane_count_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; i++) {
    if (lanes_[i].load(std::memory_order_relaxed)->has_work()) return true;
  }
  return false;
}

bool CopyPool::work_round() {
  bool any = false;
  const uint32_t count = lane_count_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; i++) {
    if (!lanes_[i].load(std::memory_order_relaxed)->work()) continue;
    // At once: the next lane may be one that does not return.
    tell_loop();
    any = true;
  }
  return any;
}

void CopyPool::tell_loop() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!loop_sleeps_.load(std::memory_order_relaxed) || !loop_sleeps_.exchange(false)) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event_fd_, &one, sizeof(one));
}

void CopyPool::run(Worker& worker) {
  using Clock = std::chrono::steady_clock;
  auto until = Clock::now() + kLinger;
  while (!stopping_.load()) {
    if (work_round()) {
      until = Clock::now() + kLinger;
    } else if (Clock::now() < until) {
      sched_yield();
    } else {
      park(worker);
      until = Clock::now() + kLinger;
    }
  }
  running_--;
}

void CopyPool::set_loop_sleeping(bool sleeping) {
  loop_sleeps_.store(sleeping);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool CopyPool::stop() {
  stopping_.store(true);
  const uint32_t count = worker_count_.load();
  for (uint32_t i = 0; i < count; i++) unpark(*workers_[i].load());
  const auto end = std::chrono::steady_clock::now() + kStopPatience;
  while (running_.load() > 0) {
    if (std::chrono::steady_clock::now() > end) return false;
    for (uint32_t i = 0; i < count; i++) unpark(*workers_[i].load());
    sched_yield();
  }
  return true;
}

}  // namespace peal::nic
