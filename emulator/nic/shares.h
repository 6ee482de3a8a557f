// SPDX-License-Identifier: BSD-2-Clause
// How clients share what there is a fixed amount of: contexts, groups and keys of a card,
// connections, memory that the cards create, and its files.
//
// A client is a user, by the kernel's word: processes of one user can kill and trace each other, so
// no share between them would hold. Each user that is served at all is sure of some of everything,
// whatever the others do; the rest is for whoever comes first, up to what one user may have at
// most. Beside that a single connection has limits, so that one process that runs wild does not
// stop its own user's others.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "emulator/common/admin.h"

namespace peal::nic {

using UserIndex = uint32_t;

// Of one pool.
struct Share {
  uint64_t size = 0;  // of the pool
  uint64_t most = 0;  // that one user may have
  uint64_t sure = 0;  // that is kept for each user; for all together no more than the size

  // Half of the pool is divided up and sure, the other half is free; a user alone may have all.
  // `most` of zero: whatever the others' sure part leaves.
  static Share of(uint64_t size, uint64_t most, uint64_t users);
};

// Safe to use from several threads.
class SharedPool {
 public:
  SharedPool(Share share, uint32_t users) : share_(share), used_(users) {}

  // False, and counted, when the user has what it may have, or when what is left is others'.
  bool take(UserIndex user, uint64_t amount);
  void give(UserIndex user, uint64_t amount);
  [[nodiscard]] uint64_t used() const;
  [[nodiscard]] uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  Share share_;
  mutable std::mutex mutex_;  // held for a few additions
  std::vector<uint64_t> used_;
  std::atomic<uint64_t> refused_{0};
};

// Zero: the default.
struct ShareOptions {
  std::vector<uid_t> admitted;  // served beside our own user and root
  // For a user at most. Contexts, groups and keys: on each card.
  uint64_t user_connections = 0;
  uint64_t user_contexts = 0;
  uint64_t user_groups = 0;
  uint64_t user_keys = 0;
  uint64_t user_memory_bytes = 0;
  // For a connection at most.
  uint64_t connection_groups = 0;
  uint64_t connection_keys = 0;
  uint64_t connection_memory_bytes = 0;
};

struct CardShares {
  SharedPool contexts;
  SharedPool groups;
  SharedPool keys;
};

class Shares {
 public:
  Shares(const ShareOptions& options, uint32_t cards, uint64_t connections, uint64_t memory_bytes);

  // Nothing for a user that is not served.
  [[nodiscard]] std::optional<UserIndex> user(uid_t uid) const;
  [[nodiscard]] bool serves_others() const { return !options_.admitted.empty(); }
  // With every limit filled in.
  [[nodiscard]] const ShareOptions& options() const { return options_; }
  [[nodiscard]] CardShares& card(uint32_t index) { return *cards_[index]; }
  SharedPool& connections() { return *connections_; }
  SharedPool& memory() { return *memory_; }
  // Memory that is shared with a client costs a descriptor, as long as the client has it.
  SharedPool& files() { return *files_; }
  // What was refused, by name: `"name": value` pairs.
  [[nodiscard]] nlohmann::ordered_json counters_json() const;

  std::atomic<uint64_t> refused_connection_groups{0};
  std::atomic<uint64_t> refused_connection_keys{0};
  std::atomic<uint64_t> refused_connection_memory{0};

 private:
  ShareOptions options_;
  std::vector<uid_t> users_;
  std::vector<std::unique_ptr<CardShares>> cards_;
  std::unique_ptr<SharedPool> connections_;
  std::unique_ptr<SharedPool> memory_;
  std::unique_ptr<SharedPool> files_;
};

// What one connection has. It outlives the connection where its memory does. Memory is taken and
// given on the control thread, the rest on the loop.
class Account {
 public:
  Account(std::shared_ptr<Shares> shares, UserIndex user)
      : shares_(std::move(shares)), user_(user) {}

  [[nodiscard]] UserIndex user() const { return user_; }
  bool take_memory(uint64_t bytes);
  void give_memory(uint64_t bytes);
  // And a file.
  bool take_shared_memory(uint64_t bytes);
  void give_shared_memory(uint64_t bytes);
  bool take_context(uint32_t card) { return shares_->card(card).contexts.take(user_, 1); }
  void give_context(uint32_t card) { shares_->card(card).contexts.give(user_, 1); }
  bool take_key(uint32_t card);
  void give_key(uint32_t card);
  bool take_group(uint32_t card);
  void give_group(uint32_t card);

 private:
  std::shared_ptr<Shares> shares_;
  UserIndex user_;
  uint64_t memory_bytes_ = 0;
  uint64_t keys_ = 0;
  uint64_t groups_ = 0;
};

}  // namespace peal::nic
