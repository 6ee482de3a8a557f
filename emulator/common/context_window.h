// SPDX-License-Identifier: BSD-2-Clause
// The card's side of one context window (abi/window.h, abi/ring.h): lays out the card page, copies
// submissions into the card, writes completions. Whoever owns the memory (a sealed memfd, a slice
// of a BAR) lends it.
//
// Nothing that the host writes into it is trusted. An index that runs wild is counted in the page's
// `faults` and ends this context, and only this one. A reset request ends it too;
// `acknowledge_reset` tells the host when the card has let go of everything.
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
  kFree,     // no window here
  kRunning,  // submissions are taken
  kBroken,   // an index ran wild: nothing is taken or written any more
  kReset,    // the host asked for a reset: nothing is taken or written any more
};

// What lies in the memory of a new window.
enum class WindowMemory : uint8_t {
  kUsed,    // whatever somebody left there
  kZeroed,  // nothing: it need not be touched before it is used
};

class ContextWindow {
 public:
  // Lays out `memory` (PEAL_WINDOW_BYTES(entries) long, page-aligned) for the context; what was
  // used is zeroed first.
  void open(void* memory, uint32_t entries, const Card& card, ContextId context,
            uint32_t capabilities, HostWaker* waker, WindowMemory state = WindowMemory::kUsed);
  // Forgets the memory; the window is free again.
  void close();

  // Entries wait because their completions would not fit. Nobody tells the card when there is room
  // again, so it has to look. (A tail without its entry is another matter: whoever writes the entry
  // rings the doorbell.)
  [[nodiscard]] bool waits_for_room() const { return waits_for_room_ && has_news(); }
  // Whether poll() would find anything: two loads.
  [[nodiscard]] bool has_news() const {
    return __atomic_load_n(&ring_.host->indices.submission_tail, __ATOMIC_RELAXED) !=
               ring_.submission_head ||
           __atomic_load_n(&ring_.host->reset_epoch.value, __ATOMIC_RELAXED) != reset_epoch_;
  }
  // Takes at most `limit` submissions, and each only when its completion is sure to fit. Returns
  // how many. Afterwards the state may be kBroken or kReset.
  uint32_t poll(Card& card, uint32_t limit, TimeNs now);
  // The port's complete(). An entry for a window that does not run is dropped: nobody reads it.
  void complete(const peal_completion& entry);
  // After a turn that completed something: wakes the host if it sleeps.
  void flush();

  // Before the loop sleeps (true) and after (false); the caller looks once more in between.
  void set_card_sleeping(bool sleeping);
  void beat(uint64_t beats, uint32_t interval_us);
  void acknowledge_reset();

  [[nodiscard]] WindowState state() const { return state_; }
  [[nodiscard]] ContextId context() const { return context_; }
  [[nodiscard]] void* memory() const { return memory_; }
  // Completions were written since the last flush().
  [[nodiscard]] bool dirty() const { return dirty_; }

 private:
  void fault();
  void lay_out(uint32_t window_bytes);

  peal_card_ring ring_{};
  void* memory_ = nullptr;
  HostWaker* waker_ = nullptr;
  uint64_t reset_epoch_ = 0;
  uint64_t reset_request_ = 0;
  ContextId context_ = 0;
  WindowState state_ = WindowState::kFree;
  bool dirty_ = false;
  bool waits_for_room_ = false;
};

}  // namespace peal::emulator
