// SPDX-License-Identifier: BSD-2-Clause
// Copies between cards and the memory of processes that merely registered it. process_vm_readv and
// process_vm_writev (preadv and pwritev for another user's: process_memory.h) may block for as long
// as the process likes (a page behind userfaultfd, a mapping that is locked). So long ones are made
// by workers. Short ones are made by the loop, between turns, as long as another thread stands by
// to go on as the loop (relay.h): they take less time than a worker takes to begin. Whose memory
// blocked it once has nothing copied by it any more.
//
// A client has a lane: a queue of pieces, taken in order by one thread at a time and handed back in
// that order, many pieces to a system call. Whoever blocks, blocks his lane and one worker; there
// are as many workers as lanes, and one that is stuck is replaced after a moment. Usually one of
// them does all the work and the others are parked.
//
// A lane belongs to the loop but for `claimed` and `done`, which say how far the workers are.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "emulator/nic/relay.h"
#include "firmware/port.h"
#include "peal_config.h"

namespace peal::nic {

struct CopyPiece {
  pid_t pid;
  int pidfd;   // tells whether that number still means the same process
  int memory;  // its memory, or what else RegionTable::put_process() takes
  uint64_t remote;
  uint8_t* card;
  uint32_t bytes;
  DmaToken token;
  bool to_card;
  bool ok;  // set by the worker
};

// Carries out `count` pieces of one process, which is there, one `memory` and one direction, and
// says of each whether it was copied: one system call, and one more behind each piece that cannot
// be reached. By a descriptor, one for what lies side by side.
void copy_pieces(CopyPiece* const* pieces, uint32_t count);

// What workers have in their hands of one card's pieces, all its lanes together. What is stuck with
// them stays taken after its client was ended: so the more they hold, the less each takes at once,
// and however many are stuck, the card begins DMA for others (firmware/dma/dma.h).
class CopyHands {
 public:
  // But for a least share of each lane, so that each gets on: together as much again.
  static constexpr uint32_t kMost = CONFIG_DMA_RECORDS / 4;
  static constexpr uint32_t kLeast =
      std::max(uint32_t{(CONFIG_DMA_RECORDS / 2 - kMost) / CONFIG_CONTEXTS}, 1u);
  static_assert(kMost + CONFIG_CONTEXTS * kLeast <= CONFIG_DMA_RECORDS / 2,
                "CONFIG_DMA_RECORDS must be four times CONFIG_CONTEXTS, or more");

  // Takes at most `wanted` pieces, which is not zero. Half of what is left: with 1024 records the
  // first three get a batch each; and kLeast at least.
  uint32_t take(uint32_t wanted) {
    uint32_t held = held_.load(std::memory_order_relaxed);
    while (true) {
      const uint32_t left = kMost - std::min(held, kMost);
      const uint32_t count = std::min(wanted, std::max(left / 2, kLeast));
      if (held_.compare_exchange_weak(held, held + count, std::memory_order_relaxed)) return count;
    }
  }
  void give(uint32_t count) { held_.fetch_sub(count, std::memory_order_relaxed); }

 private:
  std::atomic<uint32_t> held_{0};
};

class CopyLane {
 public:
  // A card has no more DMA under way than this, so a lane is never full.
  static constexpr uint32_t kPieces = std::bit_ceil(uint32_t{CONFIG_DMA_RECORDS});
  // At most so many are taken by a worker at once: what is stuck with it stays taken.
  static constexpr uint32_t kBatch = std::min(uint32_t{64}, kPieces / 2);

  // Numbers are given to new processes in turn, and there are 32,768 at least: whose number means
  // the same process now is not another's before this has passed.
  static constexpr auto kNumberLasts = std::chrono::milliseconds(1);

  // --- loop ---
  // Of which card the pieces are that come. Without, workers take as much at once as they like.
  // The same each time, as long as pieces are outstanding: they read it.
  void set_hands(CopyHands* hands) {
    if (hands_ != hands) hands_ = hands;
  }
  void add(const CopyPiece& piece) {
    pieces_[tail_.load(std::memory_order_relaxed) % kPieces] = piece;
    tail_.fetch_add(1, std::memory_order_release);
  }
  // The next piece that is done, or null. Valid until the next add().
  const CopyPiece* take();
  // Whatever no worker has begun fails now, and take() hands it over.
  void abandon();
  // Pieces added and not handed over by take().
  [[nodiscard]] uint32_t outstanding() const {
    const uint32_t tail = tail_.load(std::memory_order_relaxed);
    return abandoned_ ? abandoned_from_ - taken_ + tail - abandoned_taken_ : tail - taken_;
  }
  // take() would return something.
  [[nodiscard]] bool has_done() const {
    return taken_ != done_.load(std::memory_order_relaxed) ||
           (abandoned_ && abandoned_taken_ != tail_.load(std::memory_order_relaxed));
  }
  // A worker has some pieces in its hands.
  [[nodiscard]] bool in_hand() const {
    const uint32_t end = abandoned_ ? abandoned_from_ : claimed_.load(std::memory_order_relaxed);
    return end != done_.load(std::memory_order_relaxed);
  }
  // Some wait for one.
  [[nodiscard]] bool waits() const {
    return claimed_.load(std::memory_order_relaxed) != tail_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool abandoned() const { return abandoned_; }
  // The loop copies nothing of it: it blocked once.
  [[nodiscard]] bool blocks() const { return blocks_; }
  void note_blocks() { blocks_ = true; }
  // Grows as a worker finishes pieces.
  [[nodiscard]] uint32_t progress() const { return done_.load(std::memory_order_relaxed); }
  // For a new client; nothing is outstanding.
  void reset();

  // --- worker ---
  // Pieces wait, and no worker is at it. (Who is at it looks again.)
  [[nodiscard]] bool has_work() const {
    return claimed_.load(std::memory_order_relaxed) != tail_.load(std::memory_order_acquire) &&
           !busy_.load(std::memory_order_relaxed);
  }
  // One batch, unless another worker is at it. True when it did something.
  bool work();

 private:
  // The number of the piece's process still means it.
  bool is_there(const CopyPiece& piece);

  std::atomic<uint32_t> tail_{0};
  uint32_t taken_ = 0;
  bool abandoned_ = false;
  bool blocks_ = false;
  uint32_t abandoned_from_ = 0;
  uint32_t abandoned_taken_ = 0;
  CopyHands* hands_ = nullptr;
  alignas(64) std::atomic<bool> busy_{false};
  std::atomic<uint32_t> claimed_{0};
  std::atomic<uint32_t> done_{0};
  pid_t there_ = 0;  // whom is_there() found last, and when
  std::chrono::steady_clock::time_point looked_;
  alignas(64) std::array<CopyPiece, kPieces> pieces_;
};

class CopyPool {
 public:
  explicit CopyPool(uint32_t lanes_max);
  // All workers must have ended: see stop().
  ~CopyPool();
  CopyPool(const CopyPool&) = delete;
  CopyPool& operator=(const CopyPool&) = delete;

  // A descriptor that becomes readable when a copy is done while the loop sleeps.
  [[nodiscard]] int event_fd() const { return event_fd_; }

  // --- any thread but the loop's: makes memory and threads ---
  // Null when there are no more.
  CopyLane* acquire();
  // Nothing is outstanding any more; or stop() returned true, and nobody takes.
  void release(CopyLane* lane);

  // --- loop ---
  // Who copies what was added to a lane in this turn: a worker, or the loop itself, where it is
  // little and may be. Pieces in a lane on which a worker is already are as well with that one.
  void serve(CopyLane* lane, uint32_t pieces, uint64_t bytes);
  // Pieces wait for a worker.
  void notify();
  // The loop has something to copy.
  [[nodiscard]] bool has_own() const { return own_count_ > 0; }
  // Behind each turn: copies that. False: it was found blocked, and another thread is the loop now.
  bool copy_own();
  // Before run(): who goes on when the loop is blocked. Without, it copies nothing itself.
  void set_relay(Relay* relay) { relay_ = relay; }
  // A thread goes on as the loop that was relieved of a copy.
  void resume();
  // One of the workers is stuck, or no more so.
  void count_stuck(bool stuck) { stuck_ += stuck ? 1 : -1; }
  // Before the loop sleeps (true; it looks once more in between) and after.
  void set_loop_sleeping(bool sleeping);

  // Ends the workers. False when one is stuck: then the memory it copies from or into must stay,
  // and the process can only end as a whole.
  bool stop();

  [[nodiscard]] uint64_t unparks() const { return unparks_; }
  // Workers that are not parked.
  [[nodiscard]] int awake() const { return awake_.load(); }

 private:
  struct alignas(64) Worker {
    std::atomic<uint32_t> parked{0};
    std::thread thread;
  };

  bool add_worker();
  void run(Worker& worker);
  bool work_round();
  [[nodiscard]] bool has_work() const;
  void tell_loop();
  void park(Worker& worker);
  bool unpark(Worker& worker);

  uint32_t lanes_max_;
  std::unique_ptr<std::atomic<CopyLane*>[]> lanes_;
  std::atomic<uint32_t> lane_count_{0};  // made so far; they are used again, and never go
  std::unique_ptr<std::atomic<Worker*>[]> workers_;
  std::atomic<uint32_t> worker_count_{0};
  std::mutex mutex_;  // acquire and release
  std::vector<CopyLane*> free_lanes_;
  int event_fd_;
  std::atomic<bool> loop_sleeps_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<int> awake_{0};    // workers that are not parked
  std::atomic<int> running_{0};  // threads that have not ended
  int stuck_ = 0;                // of those awake; the loop's count
  uint64_t unparks_ = 0;

  // The loop's own, of one turn.
  static constexpr uint32_t kOwnLanes = 64;
  static constexpr uint64_t kOwnBytes = 512 * 1024;  // of all lanes
  Relay* relay_ = nullptr;
  std::array<CopyLane*, kOwnLanes> own_{};
  uint32_t own_count_ = 0;
  uint32_t own_next_ = 0;  // the one that is being copied
  uint64_t own_bytes_ = 0;
};

}  // namespace peal::nic
