// SPDX-License-Identifier: BSD-2-Clause
// Point-to-point as a seed draws it, among collectives, and how each request must end. A plan is a
// list of transfers, each with a place of its own in the sender's and in the receiver's memory, and
// of posts: which rank asks for its half of which transfer, and when. Messages of a pair of ranks
// have few tags, so that many have the same: they are matched in the order in which they are sent.
#pragma once

#include <cstdint>
#include <vector>

#include "abi/queue.h"
#include "emulator/cluster/sim_time.h"
#include "emulator/common/random.h"

namespace peal::sim {

class MessagePlan {
 public:
  static constexpr size_t kPlaceBytes = 30'000;
  static constexpr uint32_t kNobody = ~0u;

  // What is wrong with it on purpose: too little room, or a name that is nobody's.
  enum class Flaw : uint8_t { kNone, kRoom, kKey, kBounds };
  struct Transfer {
    peal_operation operation;  // SEND stands for both halves of a message
    uint32_t from;             // of a broadcast: the root
    uint32_t to;               // of a fence: PEAL_NO_RANK: all
    uint32_t bytes;
    uint64_t tag;
    bool any_tag;
    Flaw flaw;
  };
  struct Post {
    TimeNs at;
    uint32_t rank;
    uint32_t transfer;
    uint64_t sequence;  // of a collective
    peal_operation operation;
  };

  explicit MessagePlan(uint64_t seed);

  [[nodiscard]] uint32_t ranks() const { return ranks_; }
  [[nodiscard]] size_t bytes() const { return transfers_.size() * kPlaceBytes; }
  [[nodiscard]] const std::vector<Transfer>& transfers() const { return transfers_; }
  // In the order of their times.
  [[nodiscard]] const std::vector<Post>& posts() const { return posts_; }
  // Whose card falls silent, and when; kNobody.
  [[nodiscard]] uint32_t victim() const { return victim_; }
  [[nodiscard]] TimeNs death_ns() const { return death_ns_; }
  // How that post ends where nobody dies.
  [[nodiscard]] peal_status status_of(const Post& post) const;
  // What place `transfer` holds at its sender, and at its receiver once it is over well.
  [[nodiscard]] uint8_t byte_of(uint32_t transfer, size_t i) const;

 private:
  uint64_t below(uint64_t limit) { return random_.below(limit); }
  void draw_transfer();
  // What every rank's card has records for, were all posted at once.
  [[nodiscard]] bool has_room(const Transfer& transfer);
  void draw_posts();
  void keep_order();

  uint64_t seed_;
  emulator::Random random_;
  uint32_t ranks_ = 0;
  uint32_t victim_ = kNobody;
  TimeNs death_ns_ = 0;
  uint32_t collectives_ = 0;
  std::vector<uint32_t> requests_;  // by rank: of point-to-point
  std::vector<bool> any_;           // by pair: its receives take any tag
  std::vector<Transfer> transfers_;
  std::vector<Post> posts_;
};

}  // namespace peal::sim
