// SPDX-License-Identifier: BSD-2-Clause
// The out-of-band server: collects one block per rank and round, and hands all of them to all. Run
// by pealrun, or by rank 0 in a thread of its own. A rank that goes away fails the rounds that need
// it, for everybody, by name.
//
// Whoever has not proved to know the job's token is a stranger: refused by name, counted, and
// bounded in number, bytes and time, so that strangers can neither take a rank's place nor its
// turn.
#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <memory_resource>
#include <string>
#include <vector>

#include "base/clock.h"
#include "hostlib/fork_guard.h"
#include "hostlib/oob_protocol.h"

namespace peal::host {

struct OobLimits {
  size_t strangers_max = 64;    // at once; the oldest makes room for the next
  uint64_t patience_ms = 5000;  // until a stranger has proved itself
  ClockMs now_ms = monotonic_ms;
  // Where all ranks' blocks gather: a parameter, so that a test can have none.
  std::pmr::memory_resource* memory = std::pmr::new_delete_resource();
};

class OobServer {
 public:
  // A Unix socket needs no token, since the kernel says whose the other end is.
  OobServer(uint32_t size, const std::optional<OobToken>& token, const OobLimits& limits = {});
  OobServer(const OobServer&) = delete;
  OobServer& operator=(const OobServer&) = delete;
  ~OobServer();

  // Listens; false with *error. Unix: the path must not exist yet, and is removed at the end.
  bool listen(const OobAddress& address, std::string* error);
  // Serves until stop(), which any thread may call.
  void run();
  void stop();
  // Whoever has started this rank says that it has ended: if it has not connected by then it is
  // missing. Once for each rank; any thread, before run() too.
  void ended(uint32_t rank);

  // How many were refused so far, for that reason. Any thread.
  [[nodiscard]] uint64_t refused(OobRefusal reason) const;
  // "3 strangers refused: 2 wrong token, 1 too slow", or "" when there were none.
  [[nodiscard]] std::string refused_text() const;

 private:
  enum class Phase : uint8_t { kHello, kProof, kRank };

  struct Client {
    OwnDescriptor fd;  // of a client that a child holds open rank 0's death would be hidden
    Phase phase = Phase::kHello;
    uint32_t rank = kNobody;  // said so; proved in phase kRank
    uint32_t size = 0;
    OobTicket ticket = {};
    OobNonce challenge = {};
    uint64_t until_ms = 0;   // until then it must have proved itself
    bool has_block = false;  // of the current round
    std::string input;
    std::string output;                              // what is short, and for this one alone
    std::shared_ptr<const std::pmr::string> result;  // behind it: of a round, for all
    size_t result_sent = 0;
  };

  [[nodiscard]] bool is_stranger(const Client& client) const {
    return client.phase != Phase::kRank;
  }
  // False when it is to stop. `waits` is only kept from turn to turn.
  bool take_turn(std::vector<pollfd>& waits);
  void give_up();
  void accept_clients();
  void take_in(std::list<Client> stranger);
  void make_room();
  bool read_from(Client& client);
  bool take_messages(Client& client);
  bool take_hello(Client& client);
  bool take_proof(Client& client);
  bool take_block(Client& client, const OobMessage& message);
  bool write_to(Client& client);
  bool refuse(Client& client, OobRefusal reason);
  void send_to(Client& client, OobMessage message, const void* data, size_t bytes);
  void drop(Client& client);
  void wake();
  void miss_ended();
  void miss(uint32_t rank);
  void drop_slow();
  [[nodiscard]] int poll_timeout_ms() const;
  void finish_round();
  void fail_waiters(uint32_t missing);
  void send_failure(Client& client, uint32_t missing);

  uint32_t size_;
  bool has_token_;
  OobToken token_ = {};
  OobLimits limits_;
  bool tcp_ = false;
  OwnDescriptor listener_;
  OwnDescriptor wake_;  // eventfd: the next two have changed
  std::atomic<bool> stopped_ = false;
  std::vector<std::atomic<bool>> ended_;  // by rank
  bool full_ = false;                     // no descriptor is left: try again later
  std::string path_;
  std::list<Client> clients_;
  std::vector<bool> seen_;      // rank said hello at some time
  uint32_t missing_ = kNobody;  // first rank that went away
  uint64_t round_ = 0;
  uint32_t block_bytes_ = 0;
  uint32_t blocks_ = 0;
  std::shared_ptr<std::pmr::string> blocks_data_;  // behind room for the result's head
  std::array<std::atomic<uint64_t>, size_t{static_cast<uint32_t>(OobRefusal::kCount)}> refused_ =
      {};
};

}  // namespace peal::host
