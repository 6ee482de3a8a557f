// SPDX-License-Identifier: BSD-2-Clause
// Hosts of the virtual-time cluster that carry out a plan of messages, puts, gets, fences and
// collectives, and look at each completion when it comes: that it is the one it must be, that the
// bytes are in memory by then, and, by writing into it, that a buffer is its owner's again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/cluster/group_hosts.h"
#include "emulator/cluster/message_plan.h"

namespace peal::sim {

class MessageHosts final : private GroupHosts {
 public:
  // The observer may be null.
  MessageHosts(const ClusterOptions& options, const MessagePlan& plan,
               Observer* observer = nullptr);

  // Until all requests of those who live are over, or nothing happens any more.
  void run();
  // What was not as the plan says, and what the cards have not given back; "" when all is well.
  [[nodiscard]] std::string problems();
  // Something never ended, and nothing else was wrong; after problems().
  [[nodiscard]] bool only_stuck() const { return only_stuck_; }
  [[nodiscard]] uint64_t trace_hash() const { return cluster_.trace_hash(); }
  [[nodiscard]] uint32_t told_of_a_death() const { return told_of_a_death_; }
  [[nodiscard]] const ClusterCounts& counts() const { return cluster_.counts(); }
  [[nodiscard]] uint64_t frames_lost() const { return cluster_.faults().lost; }

 private:
  struct Memory {
    uint32_t send = 0;  // regions, and their keys
    uint32_t receive = 0;
    uint32_t send_key = 0;
    uint32_t receive_key = 0;
  };

  void on_host_event(TimeNs now_ns, uint32_t item) override;
  void on_completion(TimeNs now_ns, uint32_t card, uint32_t context,
                     const peal_completion& entry) override;
  [[nodiscard]] peal_submission entry_of(uint32_t number) const;
  void name_buffers(const MessagePlan::Transfer& transfer, const MessagePlan::Post& post,
                    peal_submission* entry) const;
  void check(const MessagePlan::Post& post, const peal_completion& entry);
  void note_come(const MessagePlan::Post& post, uint32_t rank);
  void check_fence(uint32_t number);
  // Of the receiver's place: what is in it.
  [[nodiscard]] bool has_come(uint32_t transfer, uint32_t rank);
  [[nodiscard]] bool is_untouched(uint32_t transfer, uint32_t rank);
  void scribble(uint32_t transfer, uint32_t rank);
  // Posts of the living that never ended.
  [[nodiscard]] std::string unended() const;
  // What lies in memory and must not, and what must and does not: of the dead, and where something
  // never ended, only what was there once.
  void check_memory(bool all_over);
  void wrong(const MessagePlan::Post& post, const std::string& what);

  const MessagePlan& plan_;
  std::vector<Memory> memory_;
  std::vector<uint8_t> ended_;  // by post: how often
  std::vector<bool> came_;      // by transfer and rank: its bytes were there once
  uint64_t pending_ = 0;        // of those who live
  uint32_t told_of_a_death_ = 0;
  std::string trouble_;
  bool only_stuck_ = false;
};

}  // namespace peal::sim
