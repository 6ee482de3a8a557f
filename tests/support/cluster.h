// SPDX-License-Identifier: BSD-2-Clause
// A few benches wired together: every frame that one card sends is handed to the card it is
// addressed to, in the order of sending, and kept in a trace. The test may lose, repeat or hold
// frames. Time moves only when nothing else can. (Thousands of cards, costs and seeded faults are
// the business of emulator/cluster.)
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/card_bench.h"

namespace peal::test {

struct Completion {
  uint64_t cookie;
  uint32_t status;
  uint32_t failed_rank;
  uint64_t bytes = 0;
  uint64_t tag = 0;
  uint64_t sequence = 0;
};

class Cluster {
 public:
  explicit Cluster(uint32_t ranks, const BenchOptions& options = {});

  // Rank r lives on card r.
  [[nodiscard]] uint32_t ranks() const { return static_cast<uint32_t>(benches_.size()); }
  CardBench& bench(uint32_t rank) { return *benches_.at(rank); }
  [[nodiscard]] const Membership& member(uint32_t rank) const { return members_.at(rank); }

  // How many copies of a frame arrive; 1 where no fate is set.
  std::function<uint32_t(const Frame&)> fate;
  // The card neither hears nor speaks from now on.
  void silence(uint32_t rank) { silent_.at(rank) = true; }

  void barrier(uint32_t rank, uint64_t sequence);
  void destroy(uint32_t rank, uint64_t sequence);
  // The rank's block is the pattern of (sequence, rank). Buffers are registered once per rank and
  // grow as needed; each sequence modulo `buffer_slots` has its own.
  void allgather(uint32_t rank, uint64_t sequence, peal_algorithm algorithm, size_t block_bytes,
                 bool in_place = false);
  // The root's block is the pattern of (sequence, root); only the root has a send buffer that the
  // card may read, only the others a receive buffer.
  void broadcast(uint32_t rank, uint64_t sequence, uint32_t root, size_t block_bytes);
  // Empty when the rank's receive buffer of that broadcast is right, else the first byte that is
  // not.
  std::string check_broadcast(uint32_t rank, uint64_t sequence, uint32_t root, size_t block_bytes);
  // How all-to-alls are carried out.
  peal_algorithm alltoall_algorithm = PEAL_ALGORITHM_BRUCK;
  // The rank's block for another is the pattern of (sequence, rank, other).
  void alltoall(uint32_t rank, uint64_t sequence, size_t block_bytes, bool in_place = false);
  // Empty when the receive buffer of that all-to-all is right, else the first byte that is not.
  std::string check_alltoall(uint32_t rank, uint64_t sequence, size_t block_bytes);
  // Empty when the receive buffer of that allgather is right, else the first byte that is not.
  std::string check_result(uint32_t rank, uint64_t sequence, size_t block_bytes);
  // A request is complete, so its buffers are the user's again: overwritten at once, in the turn of
  // the completion. The result is put aside for its check, which also finds what was written since.
  bool scribble_at_completion = true;

  // Hands over frames and finishes DMA until nothing moves without time.
  void settle();
  // Settles, moving time on where needed, until `done` or no deadline is left within limit_ns.
  // Returns done().
  bool run_until(const std::function<bool()>& done, TimeNs limit_ns);
  // All ranks have this many completions.
  bool run_until_completions(size_t count, TimeNs limit_ns = 10'000'000'000);

  [[nodiscard]] const std::vector<Completion>& completions(uint32_t rank) const {
    return completions_.at(rank);
  }
  // All frames sent so far, in order.
  [[nodiscard]] const std::vector<Frame>& trace() const { return trace_; }
  // When trace()[i] was sent.
  [[nodiscard]] TimeNs sent_at(size_t i) const { return times_.at(i); }
  [[nodiscard]] size_t sent(peal_packet_type type, peal_operation operation) const;
  [[nodiscard]] uint64_t total(peal_counter counter) const;
  // Broken books or rules on any card.
  std::string problems();

 private:
  struct Buffers {
    Memory send;
    Memory receive;
    uint64_t sequence = 0;  // of the operation that has them, or had them last
    bool scribbled = false;
    HostBytes result;  // what the receive buffer held before that
  };
  Buffers& buffers(uint32_t rank, uint64_t sequence, size_t block_bytes, uint32_t send_blocks,
                   uint32_t receive_blocks);
  std::string compare_result(uint32_t rank, uint64_t sequence, size_t block_bytes,
                             const std::vector<uint8_t>& expected);
  void scribble_buffers(uint32_t rank, uint64_t sequence);
  bool move_once();
  void set_time(TimeNs now);

  std::vector<std::unique_ptr<CardBench>> benches_;
  std::vector<Membership> members_;
  std::vector<bool> silent_;
  std::vector<std::vector<Completion>> completions_;
  std::vector<std::vector<Buffers>> buffers_;  // by rank, then by slot
  std::deque<Frame> wire_;
  std::vector<Frame> trace_;
  std::vector<TimeNs> times_;
};

}  // namespace peal::test
