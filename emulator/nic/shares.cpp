// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/shares.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <nlohmann/json.hpp>

namespace peal::nic {
namespace {

// For one connection: most of what there is, and not all.
uint64_t three_quarters(uint64_t size) { return size - size / 4; }

void fill_in(uint64_t* limit, uint64_t value) {
  if (*limit == 0) *limit = value;
}

std::vector<uid_t> users_of(const std::vector<uid_t>& admitted) {
  std::vector<uid_t> users = {geteuid(), 0};
  users.insert(users.end(), admitted.begin(), admitted.end());
  std::sort(users.begin(), users.end());
  users.erase(std::unique(users.begin(), users.end()), users.end());
  return users;
}

}  // namespace

Share Share::of(uint64_t size, uint64_t most, uint64_t users) {
  Share share;
  share.size = size;
  share.sure = users > 1 ? size / (2 * users) : 0;
  share.most = most == 0 ? size : std::min(most, size);
  share.sure = std::min(share.sure, share.most);
  return share;
}

bool SharedPool::take(UserIndex user, uint64_t amount) {
  const std::lock_guard lock(mutex_);
  // Everybody's use, and what is kept for those who use less than is theirs.
  uint64_t spoken_for = 0;
  for (UserIndex i = 0; i < used_.size(); i++)
    spoken_for += i == user ? used_[i] : std::max(used_[i], share_.sure);
  if (amount > share_.most || used_[user] > share_.most - amount ||
      amount > share_.size - std::min(share_.size, spoken_for)) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  used_[user] += amount;
  return true;
}

void SharedPool::give(UserIndex user, uint64_t amount) {
  const std::lock_guard lock(mutex_);
  assert(used_[user] >= amount);
  used_[user] -= amount;
}

uint64_t SharedPool::used() const {
  const std::lock_guard lock(mutex_);
  uint64_t total = 0;
  for (const uint64_t each : used_) total += each;
  return total;
}

Shares::Shares(const ShareOptions& options, uint32_t cards, uint64_t connections,
               uint64_t memory_bytes)
    : options_(options), users_(users_of(options.admitted)) {
  fill_in(&options_.connection_groups, three_quarters(CONFIG_CARD_MEMBERS));
  fill_in(&options_.connection_keys, three_quarters(CONFIG_MEMORY_KEYS));
  fill_in(&options_.connection_memory_bytes, three_quarters(memory_bytes));
  // Where nobody was admitted there is only root beside us, who needs no share.
  const uint64_t sharers = options.admitted.empty() ? 1 : users_.size();
  const auto users = static_cast<uint32_t>(users_.size());
  const auto pool = [&](uint64_t size, uint64_t most) { return Share::of(size, most, sharers); };
  for (uint32_t i = 0; i < cards; i++) {
    cards_.push_back(std::unique_ptr<CardShares>(
        new CardShares{{pool(CONFIG_CONTEXTS, options.user_contexts), users},
                       {pool(CONFIG_CARD_MEMBERS, options.user_groups), users},
                       {pool(CONFIG_MEMORY_KEYS, options.user_keys), users}}));
  }
  connections_ = std::make_unique<SharedPool>(pool(connections, options.user_connections), users);
  memory_ = std::make_unique<SharedPool>(pool(memory_bytes, options.user_memory_bytes), users);
  // One for each key and each window.
  const uint64_t files = uint64_t{cards} * (CONFIG_MEMORY_KEYS + CONFIG_CONTEXTS);
  files_ = std::make_unique<SharedPool>(pool(files, 0), users);
}

std::optional<UserIndex> Shares::user(uid_t uid) const {
  const auto found = std::find(users_.begin(), users_.end(), uid);
  if (found == users_.end()) return std::nullopt;
  return static_cast<UserIndex>(found - users_.begin());
}

nlohmann::ordered_json Shares::counters_json() const {
  uint64_t contexts = 0;
  uint64_t groups = 0;
  uint64_t keys = 0;
  for (const auto& card : cards_) {
    contexts += card->contexts.refused();
    groups += card->groups.refused();
    keys += card->keys.refused();
  }
  return {{"refused_user_connections", connections_->refused()},
          {"refused_user_contexts", contexts},
          {"refused_user_groups", groups},
          {"refused_user_keys", keys},
          {"refused_user_memory", memory_->refused()},
          {"refused_user_files", files_->refused()},
          {"refused_connection_groups", refused_connection_groups.load()},
          {"refused_connection_keys", refused_connection_keys.load()},
          {"refused_connection_memory", refused_connection_memory.load()},
          {"memory_bytes", memory_->used()}};
}

bool Account::take_memory(uint64_t bytes) {
  const uint64_t most = shares_->options().connection_memory_bytes;
  if (bytes > most || memory_bytes_ > most - bytes) {
    shares_->refused_connection_memory++;
    return false;
  }
  if (!shares_->memory().take(user_, bytes)) return false;
  memory_bytes_ += bytes;
  return true;
}

void Account::give_memory(uint64_t bytes) {
  memory_bytes_ -= bytes;
  shares_->memory().give(user_, bytes);
}

bool Account::take_shared_memory(uint64_t bytes) {
  if (!take_memory(bytes)) return false;
  if (shares_->files().take(user_, 1)) return true;
  give_memory(bytes);
  return false;
}

void Account::give_shared_memory(uint64_t bytes) {
  shares_->files().give(user_, 1);
  give_memory(bytes);
}

bool Account::take_key(uint32_t card) {
  if (keys_ >= shares_->options().connection_keys) {
    shares_->refused_connection_keys++;
    return false;
  }
  if (!shares_->card(card).keys.take(user_, 1)) return false;
  keys_++;
  return true;
}

void Account::give_key(uint32_t card) {
  keys_--;
  shares_->card(card).keys.give(user_, 1);
}

bool Account::take_group(uint32_t card) {
  if (groups_ >= shares_->options().connection_groups) {
    shares_->refused_connection_groups++;
    return false;
  }
  if (!shares_->card(card).groups.take(user_, 1)) return false;
  groups_++;
  return true;
}

void Account::give_group(uint32_t card) {
  groups_--;
  shares_->card(card).groups.give(user_, 1);
}

}  // namespace peal::nic
