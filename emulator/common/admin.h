// SPDX-License-Identifier: BSD-2-Clause
// Carries out administrative commands (abi/admin.h) against one card: contexts, memory keys,
// groups, counters. One class for the Unix socket and the PCI mailbox, so that both check the same
// things in the same order. What differs (where memory comes from, whom to wake) is a
// MemoryProvider.
//
// It also owns what a client leaves behind: a closed context's memory goes when the card says that
// nothing refers to it, a group's channels when the card lets go of them, which may be much later.
// Not thread-safe: everything happens on the card's loop.
#pragma once

#include <array>
#include <cstdint>

#include "abi/admin.h"
#include "emulator/common/regions.h"
#include "emulator/common/windows.h"
#include "firmware/card.h"
#include "firmware/channels.h"
#include "peal_config.h"

namespace peal::emulator {

inline constexpr ContextId kNoContext = ~0u;

// Keys, and channels that may outlive their member until it is buried.
inline constexpr uint32_t kRegionsPerCard = CONFIG_MEMORY_KEYS + 4 * CONFIG_CARD_MEMBERS;

// Why a context ends.
enum class EndReason : uint8_t {
  kHost,         // its host closed it, or is gone
  kWildIndex,    // an impossible index in its window
  kReset,        // its host asked for a reset
  kCopyOverdue,  // its memory could not be reached in time
};

// Where the memory behind commands comes from: one per client, or one per guest. It knows what kind
// of memory that is, and so the card's own tables; Admin knows only that they are there. It must
// outlive its contexts: Admin calls back until context_gone() was called for each.
class MemoryProvider {
 public:
  // Opens the context's window of kWindowBytes in the card's windows. *offset goes into the reply.
  virtual peal_status open_window(ContextId context, uint64_t* offset) = 0;
  // Nothing refers to the context's memory any more, its window included: the window is the
  // provider's again. Called whoever ended the context: the client, a wild index, a reset.
  virtual void context_gone(ContextId context) = 0;
  // The context ends; context_gone() follows, now or (while a DMA is under way) much later.
  virtual void context_ending(ContextId /*context*/, EndReason /*reason*/) {}
  // A region for REGISTER_MEMORY, put into the card's regions. Access flags and bytes were checked;
  // which kinds there are and what the address means is the provider's to check.
  virtual peal_status make_memory(const peal_register_memory& request, RegionId* region) = 0;
  // A region of kChannelsBytes for the channels of a group.
  virtual peal_status make_channels(const peal_reserve_group& request, RegionId* region) = 0;
  // Who is behind the contexts, of those that the card serves: what their ended groups leave behind
  // for a while keeps no other client's out. Zero where there is only one.
  [[nodiscard]] virtual ClientId client() const { return 0; }

 protected:
  ~MemoryProvider() = default;
};

struct AdminCounts {
  uint64_t commands = 0;
  uint64_t refused = 0;
  uint64_t contexts_opened = 0;
  uint64_t contexts_closed = 0;
  uint64_t windows_broken = 0;
  uint64_t windows_reset = 0;
  uint64_t copies_overdue = 0;  // contexts ended because their memory could not be reached in time
};

class Admin final : private WindowOwner {
 public:
  // All outlive it. The windows tell it when one ends by itself.
  Admin(Card& card, Regions& regions, Windows& windows)
      : card_(card), regions_(regions), windows_(windows) {
    windows_.set_owner(this);
  }
  Admin(const Admin&) = delete;
  Admin& operator=(const Admin&) = delete;

  // Carries out one command of `received_bytes` (the message's length) for `context`, which must be
  // the caller's own; kNoContext before OPEN_CONTEXT and for it. The caller has checked
  // command.context (zero on a socket, the context itself over PCI). The reply is always complete;
  // its status is returned.
  //
  // CLOSE_CONTEXT and UNREGISTER_MEMORY answer BUSY while the card still refers to the memory: the
  // close has begun all the same; ask again until OK or CLOSED before the memory is taken away.
  // What the host has submitted before it asks to take back memory or a program counts as taken.
  peal_status execute(const peal_admin_command& command, uint32_t received_bytes, ContextId context,
                      MemoryProvider& provider, TimeNs now, peal_admin_reply* reply);
  // A reply that refuses a command, for what is wrong before execute() (an unreadable message, a
  // foreign context).
  static void refuse(const peal_admin_command& command, peal_status status,
                     peal_admin_reply* reply);

  // The client is gone (socket closed, guest reset). Its window stops at once; context_gone()
  // follows, now or later.
  void close_context(ContextId context, TimeNs now, EndReason reason = EndReason::kHost);

  // Frees what the card has let go of. Cheap when there is nothing. True when it did something.
  bool housekeeping();

  // Open, and not closing.
  [[nodiscard]] bool is_open(ContextId context) const {
    return context < kContexts && slots_[context].state == SlotState::kOpen;
  }
  [[nodiscard]] uint32_t open_contexts() const { return open_count_; }
  [[nodiscard]] uint32_t closing_contexts() const { return closing_count_; }
  [[nodiscard]] const AdminCounts& counts() const { return counts_; }

 private:
  enum class SlotState : uint8_t { kFree, kOpen, kClosing };

  struct Slot {
    MemoryProvider* provider = nullptr;
    SlotState state = SlotState::kFree;
  };

  peal_status dispatch(const peal_admin_command& command, ContextId context,
                       MemoryProvider& provider, TimeNs now, peal_admin_reply* reply);
  peal_status open_context(MemoryProvider& provider, TimeNs now, peal_open_context_reply* reply);
  peal_status close_for(ContextId context, TimeNs now);
  peal_status register_memory(ContextId context, const peal_register_memory& request,
                              MemoryProvider& provider, peal_register_memory_reply* reply);
  peal_status unregister_memory(ContextId context, const peal_unregister_memory& request);
  peal_status reserve_group(ContextId context, const peal_reserve_group& request,
                            MemoryProvider& provider, TimeNs now, peal_reserve_group_reply* reply);
  peal_status read_counters(const peal_read_counters& request, peal_read_counters_reply* reply);
  void window_ended(ContextId context, WindowEnd why, TimeNs now) override;
  bool finish_close(ContextId context);

  Card& card_;
  Regions& regions_;
  Windows& windows_;
  std::array<Slot, kContexts> slots_;
  uint32_t open_count_ = 0;
  uint32_t closing_count_ = 0;
  AdminCounts counts_;
};

}  // namespace peal::emulator
