// SPDX-License-Identifier: BSD-2-Clause
// The Unix-socket host interface: SOCK_SEQPACKET, one 512-byte command per message, one reply each.
// A control thread does everything slow or blocking (accept, receive, memory, replies); the loop
// only carries commands out, one a turn. Who a client is, the kernel says (SO_PEERCRED): the same
// user, root, or one of those who were admitted; each has a share (shares.h).
//
// Bounds: connections, half-open time, malformed messages per connection, memory. What is refused
// is counted, and whoever is closed for it is named on standard error.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "emulator/nic/admin_message.h"
#include "emulator/nic/closer.h"
#include "emulator/nic/host_interface.h"
#include "emulator/nic/loop_call.h"
#include "emulator/nic/notice_log.h"
#include "emulator/nic/socket_client.h"
#include "emulator/nic/unix_listener.h"
#include "emulator/nic/wake_helper.h"

namespace peal::nic {

struct SocketOptions {
  std::string path;
  uint64_t memory_budget_bytes = uint64_t{4} << 30;
  ShareOptions shares;
  uint32_t capabilities = 0;         // PEAL_CAPABILITY_* of the wire
  uint32_t clients_max = 0;          // 0: as many as there are contexts, and some
  uint64_t half_open_ms = 10'000;    // a connection without a context is closed after this
  uint64_t copy_deadline_ms = 2000;  // and one whose memory cannot be opened after this
  MemoryAccess memory;
  ClockMs now_ms = monotonic_ms;
  std::vector<int> control_cpus;  // where the control thread may run; empty: anywhere
};

struct SocketCounts {
  std::atomic<uint64_t> accepted{0};
  std::atomic<uint64_t> closed{0};
  std::atomic<uint64_t> refused_user{0};         // another user
  std::atomic<uint64_t> refused_too_many{0};     // connections
  std::atomic<uint64_t> refused_descriptors{0};  // connections whose message carried descriptors
  std::atomic<uint64_t> refused_process{0};      // memory of a process that did not connect
  std::atomic<uint64_t> refused_size{0};         // messages that are no command
  std::atomic<uint64_t> refused_card{0};         // no such card
  std::atomic<uint64_t> refused_context{0};      // context field is not zero
  std::atomic<uint64_t> no_memory{0};            // share, budget or system has none left
  std::atomic<uint64_t> half_open_closed{0};
  std::atomic<uint64_t> strikes_closed{0};  // too many malformed messages
  std::atomic<uint64_t> overdue_closed{0};  // its memory could not be reached in time
  std::atomic<uint64_t> wild_index_closed{0};
  std::atomic<uint64_t> slow_reader_closed{0};  // reply did not fit its socket buffer
};

// The loop's threads that a server uses.
struct LoopHelpers {
  WakeHelper& wakes;
  CopyPool& copies;
};

class SocketServer final : public HostInterface {
 public:
  // Null on failure, with *error saying what was wrong and what to do.
  static std::unique_ptr<SocketServer> create(const SocketOptions& options, LoopServices& loop,
                                              const LoopHelpers& helpers, std::string* error);
  ~SocketServer() override;
  SocketServer(const SocketServer&) = delete;
  SocketServer& operator=(const SocketServer&) = delete;

  bool poll(TimeNs now) override;
  bool prepare_to_sleep() override { return true; }
  void awake(TimeNs) override {}
  void beat(uint64_t, uint32_t) override {}
  void shut_down(TimeNs now) override;
  [[nodiscard]] nlohmann::ordered_json counters_json() const override;

 private:
  // What the control thread asks of the loop.
  struct Call {
    enum class Kind : uint8_t { kExecute, kClose } kind;
    SocketClient* client;
    const peal_admin_command* command;
    uint32_t received_bytes;
    peal_admin_reply* reply;
  };

  SocketServer(const SocketOptions& options, LoopServices& loop, const LoopHelpers& helpers);
  std::string open();

  // Control thread.
  void control();
  void accept_client();
  void refuse_connection_without_descriptor();
  // Until accept_again(): whoever connects meanwhile waits.
  void stop_accepting();
  void accept_again();
  void refuse_connection(int fd, std::atomic<uint64_t>& count);
  // Of a connection that was accepted; its share of connections comes back once it is closed.
  void close_connection(SocketClient& client);
  void serve(SocketClient& client);
  void take(SocketClient& client, const AdminMessage& message);
  // The command waits until memory is open, and nothing more is taken from the client.
  void wait_for_memory(SocketClient& client, const AdminMessage& message);
  void go_on(SocketClient& client);
  void tell_unreached(const PeerIdentity& peer);
  // `status` of what was prepared.
  void execute(SocketClient& client, const AdminMessage& message, peal_status status);
  peal_status check_message(const AdminMessage& message);
  bool send_reply(SocketClient& client, const peal_admin_reply& reply);
  void disconnect(SocketClient& client);
  void expel(SocketClient& client, std::atomic<uint64_t>& count, const char* why);
  void sweep(uint64_t now_ms);
  void look_after_what_ends(uint64_t now_ms);
  [[nodiscard]] int sweep_timeout_ms() const;

  SocketOptions options_;
  LoopServices& loop_;
  WakeHelper& helper_;
  CopyPool& copies_;
  LoopCall<Call> call_;
  std::shared_ptr<Shares> shares_;
  MappingBin bin_;
  ClientServices services_;
  SocketCounts counts_;
  UnixListener listener_;
  Closer closer_;    // of clients' sockets
  Closer refusals_;  // of connections that are nobody's; they have no place, so they are counted
  DetachedWork openings_;
  NoticeLog log_;
  std::vector<UserIndex> unreached_;  // users whom we may not become; said of each
  int epoll_fd_ = -1;
  int control_fd_ = -1;  // eventfd: look for flags
  int spare_fd_ = -1;    // given up for a moment to refuse a client when descriptors have run out
  bool accepting_ = false;
  uint64_t looked_ms_ = 0;
  std::atomic<bool> stopping_{false};
  std::unordered_map<SocketClient*, std::unique_ptr<SocketClient>> clients_;
  std::thread thread_;
};

}  // namespace peal::nic
