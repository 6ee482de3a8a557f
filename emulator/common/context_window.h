// SPDX-License-Identifier: BSD-2-Clause
// The card's side of one context window (abi/window.h, abi/ring.h): lays out the card page, copies
// submissions into the card, writes completions, and answers resets. Whoever owns the memory (a
// sealed memfd, a slice of a BAR) gives it in and takes it back; the window itself is a few
// pointers.
//
// Nothing that the host writes into it is trusted: a wild index is counted in the page's `faults`,
// and stops this context (and only this one) until the client goes away.
#pragma once

#include <cstdint>

#include "abi/ring.h"
#include "firmware/card.h"

namespace peal::emulator {

class ContextWindow;

// Tells a sleeping host that completions wait: MSI-X, a futex, an eventfd. Called on the card's
// loop; must not block.
class HostWaker {
 public:
  virtual void wake_host(ContextWindow& window) = 0;

 protected:
  ~HostWaker() = default;
};

enum class WindowState : uint8_t {
  kFree,      // no window here
  kRunning,   // submissions are taken
  kBroken,    // an index ran wild: nothing is taken or written any more; to be closed
  kDraining,  // a reset was asked for: waits until nothing is outstanding
};

class ContextWindow {
 public:
  // Lays out `memory` (PEAL_WINDOW_BYTES(entries) long, page-aligned) for the context; it is zeroed
  // first.
  void open(void* memory, uint32_t entries, const Card& card, ContextId context,
            uint32_t capabilities, HostWaker* waker);
  // Forgets the memory; the window is free again.
  void close();

  // Takes at most `limit` submissions, as long as their completions are sure to fit. Answers a
  // reset request. True when it did anything.
  bool poll(Card& card, uint32_t limit, TimeNs now);
  // The port's complete(): writes one entry. Entries for a window that is not running are dropped;
  // after a reset or a wild index nobody reads them.
  void complete(const peal_completion& entry);
  // After a turn that completed something: wakes the host if it sleeps.
  void flush();

  // Before the loop sleeps (true) and after (false); the caller polls once more in between.
  void set_card_sleeping(bool sleeping);
  void beat(uint64_t beats, uint32_t interval_us);

  [[nodiscard]] WindowState state() const { return state_; }
  [[nodiscard]] ContextId context() const { return context_; }
  [[nodiscard]] uint64_t faults() const { return faults_; }
  [[nodiscard]] bool dirty() const { return dirty_; }
  [[nodiscard]] void* memory() const { return memory_; }

 private:
  void fault();
  bool poll_reset(Card& card);
  void lay_out_directory(uint32_t window_bytes);

  peal_card_ring ring_{};
  void* memory_ = nullptr;
  HostWaker* waker_ = nullptr;
  uint64_t faults_ = 0;
  uint32_t reset_epoch_ = 0;
  ContextId context_ = 0;
  WindowState state_ = WindowState::kFree;
  bool dirty_ = false;  // completions written since the last flush()
};

}  // namespace peal::emulator
