// SPDX-License-Identifier: BSD-2-Clause
// The context windows of one card: where submissions come from and completions go to. Its runner
// polls them; administration ends them, and is told when one ends by itself.
//
// Nobody here presumes that a ring can be loaded from and stored to. A card that reaches its host
// by RDMA posts a read of a ring in one poll() and takes the entries in a later one; complete() may
// be a write that is posted, and an ended window is let go of when nothing is under way any more.
// Rings that are mapped here: mapped_windows.h.
#pragma once

#include <cstdint>

#include "abi/queue.h"
#include "abi/window.h"
#include "firmware/port.h"
#include "peal_config.h"

namespace peal::emulator {

inline constexpr uint32_t kContexts = CONFIG_CONTEXTS;
inline constexpr uint32_t kRingEntries = CONFIG_RING_ENTRIES;
inline constexpr uint32_t kWindowBytes = PEAL_WINDOW_BYTES(kRingEntries);

enum class WindowEnd : uint8_t {
  kWildIndex,  // an impossible index
  kReset,      // the host asked for it
};

class WindowOwner {
 public:
  // From within poll(). Nothing more is taken from the window or written into it.
  virtual void window_ended(ContextId context, WindowEnd why, TimeNs now) = 0;

 protected:
  ~WindowOwner() = default;
};

class Windows {
 public:
  // --- administration; how a window opens depends on where it lies ---
  // Who is told of ends. Set once, before any window opens.
  virtual void set_owner(WindowOwner* owner) = 0;
  // From now on nothing is taken from the window or written into it. It may have ended by itself.
  virtual void end(ContextId context) = 0;
  // Hands over whatever the host had submitted by now, as far as completions are sure to fit.
  // False: some of it may be left, ask again.
  [[nodiscard]] virtual bool take_submitted(ContextId context, TimeNs now) = 0;
  // When the card has let go of all that the ended context gave it: acknowledges the reset, if that
  // was the end. True when the window's memory is its provider's again; false: ask again.
  [[nodiscard]] virtual bool let_go(ContextId context) = 0;

  // --- the card's runner ---
  // Hands submissions that have come to the card, `limit` at most of each window, and only as many
  // as completions are sure to fit. True when anything was done.
  virtual bool poll(uint32_t limit, TimeNs now) = 0;
  // Port::complete(). An entry for a window that has ended is dropped.
  virtual void complete(ContextId context, const peal_completion& entry) = 0;
  // After a turn: wakes the hosts that sleep and have completions.
  virtual void flush() = 0;
  // Before the runner sleeps (true) and after (false); it polls once more in between.
  virtual void set_card_sleeping(bool sleeping) = 0;
  // A window that opens shows the last beat at once.
  virtual void beat(uint64_t beats, uint32_t interval_us) = 0;
  // The limit of the last poll() left submissions behind.
  [[nodiscard]] virtual bool has_unread() const = 0;
  // Some window has submissions that wait for room in its completion ring: look again soon.
  [[nodiscard]] virtual bool has_blocked() const = 0;

 protected:
  ~Windows() = default;
};

}  // namespace peal::emulator
