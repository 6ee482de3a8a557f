// SPDX-License-Identifier: BSD-2-Clause
// One connection to the Unix socket, at most one context, and where that context's memory comes
// from. Two threads touch it, never at once: the control thread prepares what a command will need
// (memfds, mappings: slow work) and hands the command to the loop; while the loop carries it out,
// the control thread waits. Only context_gone() comes unasked; it leaves a flag.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "emulator/common/admin.h"
#include "emulator/nic/admin_message.h"
#include "emulator/nic/copy_pool.h"
#include "emulator/nic/detached_work.h"
#include "emulator/nic/host_interface.h"
#include "emulator/nic/process_memory.h"
#include "emulator/nic/shared_memory.h"
#include "emulator/nic/shares.h"
#include "emulator/nic/wake_helper.h"

namespace peal::nic {

// How the memory of clients' processes is reached.
struct MemoryAccess {
  // By a descriptor, which is opened when it is registered; else by the process' number.
  std::function<bool(uid_t user)> is_opened = may_reach_more_than;
  std::function<OpenedMemory(pid_t pid, int pidfd, uid_t user, gid_t group)> open =
      open_process_memory;
};

// What all clients of a server share.
struct ClientServices {
  LoopServices* loop = nullptr;
  WakeHelper* helper = nullptr;
  CopyPool* copies = nullptr;
  WakeSlot control_slot = kNoWakeSlot;  // makes the control thread look for flags
  int control_fd = -1;                  // the same for who is no loop: an eventfd
  MappingBin* bin = nullptr;
  const MemoryAccess* memory = nullptr;
  DetachedWork* openings = nullptr;
  uint32_t capabilities = 0;
};

// Who is at the other end, by the kernel's word.
struct PeerIdentity {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  UserIndex user = 0;
  int pidfd = -1;  // owned by the client
};

class SocketClient final : public emulator::MemoryProvider, public emulator::HostWaker {
 public:
  // `place` is what the connection takes of its user's share of connections.
  SocketClient(int fd, PeerIdentity peer, std::shared_ptr<Account> account,
               std::shared_ptr<void> place, uint64_t accepted_ms, ClientServices& services);
  ~SocketClient();
  SocketClient(const SocketClient&) = delete;
  SocketClient& operator=(const SocketClient&) = delete;

  // --- control thread ---
  // Sets aside what the command will need; on failure the status to refuse it with. Values that
  // make no sense are left to Admin, which refuses them. Afterwards opens() may be true.
  peal_status prepare(const peal_admin_command& command, pid_t sender);
  // Memory of its process is being opened, which may take as long as its user likes; the command
  // waits for that.
  [[nodiscard]] bool opens() const { return opening_ != nullptr; }
  // It is open, or known not to be reached: the control thread has been told.
  [[nodiscard]] bool has_opened() const;
  // The rest of prepare(). `not_as_user`: we may not become its user, so it is not reached.
  peal_status take_opened(bool* not_as_user);
  AdminMessage asked = {};  // the command that waits, and since when
  uint64_t asked_ms = 0;
  // After execute(): what the loop did not take is given back, and descriptors for the reply are
  // collected (at most three; they stay the client's until clear_reply_fds()).
  void finish(const peal_admin_command& command, const peal_admin_reply& reply);
  [[nodiscard]] const std::vector<int>& reply_fds() const { return reply_fds_; }
  void clear_reply_fds();
  // Hangs up: the other side learns it now. The descriptor is the caller's to close, where that may
  // take its time; the object lives until its context is gone.
  int release_connection();
  // What it takes of its user's share; an opening that is under way holds it, too.
  std::shared_ptr<void> release_place() { return std::move(place_); }
  [[nodiscard]] bool connected() const { return fd_ >= 0; }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] const PeerIdentity& peer() const { return peer_; }
  [[nodiscard]] uint64_t accepted_ms() const { return accepted_ms_; }
  [[nodiscard]] bool has_context() const {
    return context_.load(std::memory_order_acquire) != emulator::kNoContext;
  }
  // The loop took the context away (wild index, reset, close): true once per context. To be asked
  // before take_fault(), which then is known.
  bool take_gone() { return gone_.exchange(false, std::memory_order_acq_rel); }
  // What the client did that the loop ended the context for; kHost: nothing. It may not be gone for
  // a long time. Said once.
  emulator::EndReason take_fault() {
    return fault_.exchange(emulator::EndReason::kHost, std::memory_order_acq_rel);
  }
  uint32_t strikes = 0;      // malformed messages
  bool had_context = false;  // once opened, a connection is not half-open

  // --- loop ---
  void set_card(uint32_t card) { card_ = card; }
  [[nodiscard]] uint32_t card() const { return card_; }
  [[nodiscard]] ContextId context() const { return context_.load(std::memory_order_relaxed); }
  peal_status open_window(ContextId context, uint64_t* offset) override;
  void context_gone(ContextId context) override;
  void context_ending(ContextId context, emulator::EndReason reason) override;
  peal_status make_memory(const peal_register_memory& request, RegionId* region) override;
  peal_status make_channels(const peal_reserve_group& request, RegionId* region) override;
  [[nodiscard]] ClientId client() const override { return account_->user(); }
  void wake_host(emulator::ContextWindow& window) override;

 private:
  struct Opening;

  peal_status prepare_context();
  peal_status prepare_process_memory(pid_t sender);
  peal_status begin_opening();
  peal_status prepare_shared(const char* name, uint64_t bytes);
  peal_status prepare_private(uint64_t bytes);
  void close_prepared();
  peal_status make_allocated(const peal_register_memory& request, RegionId* region);
  peal_status make_process(const peal_register_memory& request, RegionId* region);
  // Run on the loop when a region is freed.
  emulator::RegionTable::Release key_freed(Mapping* mapping);
  emulator::RegionTable::Release group_freed(Mapping* mapping);

  ClientServices& services_;
  int fd_;
  PeerIdentity peer_;
  std::shared_ptr<Account> account_;
  std::shared_ptr<void> place_;
  uint64_t accepted_ms_;
  // The page whose word this client sleeps on. Nobody else's sleepers are there: a futex that one
  // can read one can also requeue, together with all who wait on it.
  Mapping* broadcast_ = nullptr;
  int broadcast_fd_ = -1;
  WakeSlot broadcast_slot_ = kNoWakeSlot;
  int kick_fd_ = -1;
  uint32_t card_ = 0;
  Mapping* window_ = nullptr;  // of the open context; the loop's
  // Set aside for the command under way.
  Mapping* prepared_ = nullptr;
  int prepared_fd_ = -1;
  int prepared_memory_ = emulator::RegionTable::kByNumber;  // of the process
  std::shared_ptr<Opening> opening_;                        // what will be it
  std::vector<int> reply_fds_;
  std::atomic<ContextId> context_{emulator::kNoContext};
  std::atomic<bool> gone_{false};
  std::atomic<emulator::EndReason> fault_{emulator::EndReason::kHost};
  CopyLane* lane_ = nullptr;  // of process memory; from the first registration on
};

}  // namespace peal::nic
