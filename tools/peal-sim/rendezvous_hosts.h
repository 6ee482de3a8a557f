// SPDX-License-Identifier: BSD-2-Clause
// What the paper's zero-copy allgather is compared with: recursive doubling whose every exchange is
// an MPI message with a rendezvous (RTS, CTS, data by RDMA write, FIN), all of it done by hosts, a
// rank a card. A host has one processor, which pays for each message sent and received, and for
// registering memory where that is not kept.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/cluster/one_group.h"

namespace peal::sim {

class RendezvousHosts final : private HostEvents {
 public:
  enum class Registration : uint8_t {
    kKept,         // from an earlier call
    kEachMessage,  // both ends of each message, and given back after it
  };

  // `ranks` is a power of two. Throws std::runtime_error where it is not, or a card refuses.
  RendezvousHosts(const ClusterOptions& options, uint64_t block_bytes, Registration registration);

  // One allgather; how long until the last host is through. Messages carry nothing but their kind:
  // where others' buffers are is known. Throws std::runtime_error where a host is told of bytes
  // that are not there, or it does not end.
  TimeNs run();

 private:
  enum Kind : uint8_t { kRequest, kClear, kFinished, kData, kKinds };
  struct Rank {
    RankProcess process;
    uint32_t memory = 0;  // region of the result, and its key
    uint32_t key = 0;
    uint32_t step = 0;
    uint32_t open = 0;  // what the step still waits for: the partner's data, the own put's end
    TimeNs busy_until = 0;
  };
  // What a host posts once its processor has come so far.
  struct Action {
    uint32_t rank = 0;
    std::vector<peal_submission> entries;
    bool next_step = false;
  };

  void on_host_event(TimeNs now_ns, uint32_t action) override;
  void on_completion(TimeNs now_ns, uint32_t card, uint32_t context,
                     const peal_completion& entry) override;
  // The processor is busy for so long from `now_ns` on, or from when it is free; then that happens.
  void work(TimeNs now_ns, TimeNs cost_ns, Action action);
  void begin_step(TimeNs now_ns, uint32_t rank);
  void answer(TimeNs now_ns, uint32_t rank);
  // One of what the step waits for has come; the last one leads to the next step.
  void close_one(TimeNs now_ns, TimeNs cost_ns, Action action);
  void expect_data(uint32_t rank);
  [[nodiscard]] uint64_t bytes_of(uint32_t step) const { return block_bytes_ << step; }
  // Offset of what this rank holds when the step begins.
  [[nodiscard]] uint64_t held_at(uint32_t rank, uint32_t step) const {
    return (rank >> step << step) * block_bytes_;
  }
  [[nodiscard]] uint64_t tag(uint32_t step, Kind kind) const {
    return (round_ * steps_ + step) * kKinds + kind;
  }
  [[nodiscard]] peal_submission entry(uint32_t rank, uint32_t step, Kind kind) const;
  [[nodiscard]] peal_submission receive(uint32_t rank, uint32_t step, Kind kind) const;
  [[nodiscard]] TimeNs register_ns(uint64_t bytes) const;
  [[nodiscard]] TimeNs give_back_ns() const;
  [[nodiscard]] uint8_t byte_of(uint32_t rank, uint64_t i) const;

  Cluster cluster_;
  CostModel costs_;
  uint64_t block_bytes_;
  Registration registration_;
  uint32_t steps_ = 0;
  uint64_t round_ = 0;
  std::vector<Rank> ranks_;
  std::vector<Action> actions_;
};

// What registering so many bytes costs a host.
[[nodiscard]] TimeNs registering_ns(const CostModel& model, uint64_t bytes);

}  // namespace peal::sim
