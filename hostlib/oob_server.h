// SPDX-License-Identifier: BSD-2-Clause
// The out-of-band server: collects one block per rank and round, and hands all of them to all. Run
// by pealrun, or by rank 0 in a thread of its own. A rank that goes away fails the rounds that need
// it, for everybody, by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hostlib/oob_protocol.h"

namespace peal::host {

class OobServer {
 public:
  explicit OobServer(uint32_t size);
  OobServer(const OobServer&) = delete;
  OobServer& operator=(const OobServer&) = delete;
  ~OobServer();

  // Listens; false with *error. Unix: the path must not exist yet, and is removed at the end.
  bool listen(const OobAddress& address, std::string* error);
  // Serves until stop(), which any thread may call.
  void run();
  void stop();

 private:
  struct Client {
    int fd = -1;
    uint32_t rank = kNobody;  // until its hello
    bool has_block = false;   // of the current round
    std::string input;
    std::string output;
  };

  void accept_clients();
  bool read_from(Client& client);
  bool take_messages(Client& client);
  bool take_hello(Client& client, const OobMessage& message);
  bool write_to(Client& client);
  void drop(Client& client);
  void finish_round();
  void fail_waiters(uint32_t missing);
  void send_failure(Client& client, uint32_t missing);

  uint32_t size_;
  int listener_ = -1;
  int stop_ = -1;  // eventfd
  std::string path_;
  std::vector<Client> clients_;
  std::vector<bool> seen_;      // rank said hello at some time
  uint32_t missing_ = kNobody;  // first rank that went away
  uint64_t round_ = 0;
  uint32_t block_bytes_ = 0;
  uint32_t blocks_ = 0;
  std::string blocks_data_;
};

}  // namespace peal::host
