// SPDX-License-Identifier: BSD-2-Clause
// Context windows in memory that is mapped here: shared with a process, a slice of a BAR, or a
// simulated host's. Everything happens at once.
#pragma once

#include <array>
#include <cstdint>

#include "emulator/common/context_window.h"
#include "emulator/common/windows.h"
#include "firmware/card.h"

namespace peal::emulator {

class MappedWindows final : public Windows {
 public:
  explicit MappedWindows(Card& card) : card_(card) {}
  MappedWindows(const MappedWindows&) = delete;
  MappedWindows& operator=(const MappedWindows&) = delete;

  // Lays out `memory` (kWindowBytes, page-aligned) for a context whose last window was let go of.
  // `capabilities` are PEAL_CAPABILITY_*, for the host to read; the waker may be null.
  void open(ContextId context, void* memory, uint32_t capabilities, HostWaker* waker,
            WindowMemory state = WindowMemory::kUsed);

  void set_owner(WindowOwner* owner) override { owner_ = owner; }
  void end(ContextId context) override;
  [[nodiscard]] bool take_submitted(ContextId context, TimeNs now) override;
  [[nodiscard]] bool let_go(ContextId context) override;
  bool poll(uint32_t limit, TimeNs now) override;
  void complete(ContextId context, const peal_completion& entry) override;
  void flush() override;
  void set_card_sleeping(bool sleeping) override;
  void beat(uint64_t beats, uint32_t interval_us) override;
  [[nodiscard]] bool has_unread() const override { return unread_; }
  [[nodiscard]] bool has_blocked() const override;
  // Entries that were ever given to complete() for an open window, dropped ones included.
  [[nodiscard]] uint64_t completed() const { return completed_; }

 private:
  struct Slot {
    ContextWindow window;
    bool served = false;  // in open_
  };

  uint32_t serve(ContextId context, uint32_t limit, TimeNs now);

  Card& card_;
  WindowOwner* owner_ = nullptr;
  std::array<Slot, kContexts> slots_;
  std::array<ContextId, kContexts> open_{};   // the first open_count_
  std::array<ContextId, kContexts> dirty_{};  // the first dirty_count_
  uint32_t open_count_ = 0;
  uint32_t dirty_count_ = 0;
  bool unread_ = false;
  uint64_t beats_ = 0;
  uint64_t completed_ = 0;
  uint32_t beat_interval_us_ = 0;
};

}  // namespace peal::emulator
