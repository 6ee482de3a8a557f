// SPDX-License-Identifier: BSD-2-Clause
// Carries out administrative commands (abi/admin.h) against one card: contexts, memory keys,
// groups, counters. One class for the Unix socket and the PCI mailbox, so that both check the same
// things in the same order. What differs (where memory comes from, whom to wake) is a
// MemoryProvider.
//
// It also owns what a client leaves behind: a closed context's memory goes when the card says that
// nothing refers to it, a group's channels when the card lets go of them, which may be much later.
// Call housekeeping() now and then. Not thread-safe: everything happens on the card's loop.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "abi/admin.h"
#include "emulator/common/context_window.h"
#include "emulator/common/region_table.h"
#include "firmware/card.h"
#include "peal_config.h"

namespace peal::emulator {

// Where the memory behind a command comes from. One per host interface (and per client where it
// holds that client's identity); it must outlive its contexts: Admin calls back until
// context_gone() was called for each.
class MemoryProvider {
 public:
  // Memory for a window of window_bytes, page-aligned, and whom to wake. On OK, *offset goes into
  // the reply.
  virtual peal_status open_window(ContextId context, uint32_t window_bytes, void** memory,
                                  uint64_t* offset, HostWaker** waker) = 0;
  // The window's memory is the provider's again, and so is everything else of the context.
  virtual void context_gone(ContextId context) = 0;
  // A region for REGISTER_MEMORY, put into `table` with put_*(). kind, access and bytes were
  // checked; whether the kind is one of this interface's, and what the address means, is the
  // provider's to check.
  virtual peal_status make_memory(const peal_register_memory& request, RegionTable& table,
                                  RegionId* region) = 0;
  // A region of `bytes` for the channels of a group.
  virtual peal_status make_channels(const peal_reserve_group& request, uint64_t bytes,
                                    RegionTable& table, RegionId* region) = 0;
  // PEAL_CAPABILITY_* of this interface.
  [[nodiscard]] virtual uint32_t capabilities() const = 0;

 protected:
  ~MemoryProvider() = default;
};

struct AdminCounts {
  uint64_t commands = 0;
  uint64_t refused = 0;
  uint64_t contexts_opened = 0;
  uint64_t contexts_closed = 0;
};

class Admin {
 public:
  static constexpr uint32_t kRingEntries = CONFIG_RING_ENTRIES;
  static constexpr uint32_t kWindowBytes = PEAL_WINDOW_BYTES(kRingEntries);
  // While a group's channels outlive their context they still count here.
  static constexpr uint32_t kContexts = CONFIG_CONTEXTS;

  Admin(Card& card, RegionTable& regions) : card_(card), regions_(regions) {}

  // Carries out one command. `received_bytes` is the length it arrived with. `context` is the
  // caller's own (kNoContext before OPEN_CONTEXT); a socket's connection is at most one context.
  // PCI passes the command's context field after checking nothing: it is checked here. The reply is
  // always complete. Returns the reply's status.
  peal_status execute(const peal_admin_command& command, uint32_t received_bytes, ContextId context,
                      MemoryProvider& provider, TimeNs now, peal_admin_reply* reply);

  // The client is gone (socket closed, guest reset). Its window stops at once.
  void close_context(ContextId context, TimeNs now);

  // Frees what the card has let go of. Cheap when there is nothing. True when it did something.
  bool housekeeping(TimeNs now);

  // The loop's work on windows: polls every running one, `limit` submissions each. True when
  // anything was done.
  bool poll_windows(uint32_t limit, TimeNs now);
  // Port::complete().
  void complete(ContextId context, const peal_completion& entry);
  // After a turn: wakes the hosts that completions wait for.
  void flush_windows();
  void set_card_sleeping(bool sleeping);
  void beat(uint64_t beats, uint32_t interval_us);

  // Context is open and its window runs or is broken.
  [[nodiscard]] bool is_open(ContextId context) const;
  [[nodiscard]] const ContextWindow* window(ContextId context) const;
  [[nodiscard]] uint32_t open_contexts() const { return running_count_; }
  // Nothing is left to be freed of closed contexts.
  [[nodiscard]] bool quiet() const { return closing_count_ == 0; }
  [[nodiscard]] const AdminCounts& counts() const { return counts_; }

 private:
  enum class SlotState : uint8_t { kFree, kOpen, kClosing };

  struct Slot {
    ContextWindow window;
    MemoryProvider* provider = nullptr;
    SlotState state = SlotState::kFree;
  };

  peal_status dispatch(const peal_admin_command& command, ContextId context,
                       MemoryProvider& provider, TimeNs now, peal_admin_reply* reply);
  peal_status open(MemoryProvider& provider, peal_open_context_reply* reply, TimeNs now);
  peal_status register_memory(ContextId context, const peal_register_memory& request,
                              peal_register_memory_reply* reply);
  peal_status unregister_memory(ContextId context, const peal_unregister_memory& request);
  peal_status reserve_group(ContextId context, const peal_reserve_group& request, TimeNs now,
                            peal_reserve_group_reply* reply);
  peal_status read_counters(const peal_read_counters& request, peal_read_counters_reply* reply);
  void finish_close(ContextId context);

  Card& card_;
  RegionTable& regions_;
  std::array<Slot, kContexts> slots_;
  std::array<ContextId, kContexts> running_{};  // the first running_count_ are open
  std::array<ContextId, kContexts> dirty_{};
  uint32_t running_count_ = 0;
  uint32_t dirty_count_ = 0;
  uint32_t closing_count_ = 0;
  AdminCounts counts_;
};

inline constexpr ContextId kNoContext = ~0u;

}  // namespace peal::emulator
