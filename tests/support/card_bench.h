// SPDX-License-Identifier: BSD-2-Clause
// One real card on the test's bench: card, in-memory port, one open context, a clock the test
// moves. A protocol test calls one entry point and compares the text of what came out. Several
// benches wired together are cluster.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/common/zeroed_memory.h"
#include "firmware/card.h"
#include "peal_config.h"
#include "tests/support/memory_port.h"

namespace peal::test {

inline constexpr uint64_t kGroupId = 0x1234'5678'0000'6702;
inline constexpr uint32_t kChoiceHash = 0xc401ce;

struct BenchOptions {
  uint32_t index = 0;  // of the card: its address is card_mac(index), its incarnation index + 1000
  uint32_t packet_buffers = CONFIG_PACKET_BUFFERS;
  Checksums checksums = Checksums::kSoftware;
  CardTimeouts timeouts = default_timeouts();
  bool tables = false;        // members get a table of all ranks' addresses
  bool keeps_early = false;   // packets that come early stay on the card, where there is room
  uint32_t told_buffers = 0;  // of how many packets the port speaks then; 0: of as many as it has
  uint32_t sent_packets = 0;  // that the card may keep when it has sent them
  uint32_t dma_batch = 1;     // of how many transfers at once the port makes most
};

// One registered buffer.
struct Memory {
  RegionId region = 0;
  uint32_t key = 0;
};

// A membership of the bench's card, as the test knows it.
struct Membership {
  uint32_t ranks = 0;
  uint32_t rank = 0;
  uint64_t group = kGroupId;
  ContextId context = 0;
  RegionId channels = 0;
  peal_peer_address address{};
  std::vector<peal_peer_address> everybody;  // by rank
  Memory table;                              // of addresses in host memory, if there is one
  uint64_t table_offset = 0;

  [[nodiscard]] uint32_t handle() const { return address.member; }
};

class CardBench {
 public:
  explicit CardBench(const BenchOptions& options = {});
  CardBench(const CardBench&) = delete;
  CardBench& operator=(const CardBench&) = delete;

  MemoryPort port;
  TimeNs now = 1'000'000;

  [[nodiscard]] Card& card() { return *card_; }
  [[nodiscard]] ContextId context() const { return context_; }
  [[nodiscard]] uint32_t index() const { return options_.index; }
  [[nodiscard]] uint32_t incarnation() const { return options_.index + 1000; }

  // --- setting up; anything refused throws std::runtime_error with the status ---
  ContextId open_context();
  Memory add_memory(const std::string& name, size_t bytes,
                    uint32_t access = PEAL_ACCESS_READ | PEAL_ACCESS_WRITE);
  Memory add_memory_of(ContextId context, const std::string& name, size_t bytes, uint32_t access);
  // First half of joining: the member has an address, no peers yet.
  Membership reserve(uint32_t ranks, uint32_t rank);
  Membership reserve_in(ContextId context, uint32_t ranks, uint32_t rank);
  peal_status connect(Membership& membership, const std::vector<peal_peer_address>& everybody,
                      uint64_t group = kGroupId);
  // Puts the addresses into registered memory, for connect() to name.
  void add_table(Membership& membership, const std::vector<peal_peer_address>& everybody);
  // Both halves, with peers that only the test plays:
  // rank r lives on card r with incarnation r + 1000.
  Membership join(uint32_t ranks, uint32_t rank, uint64_t group = kGroupId) {
    return join_in(context_, ranks, rank, group);
  }
  Membership join_in(ContextId context, uint32_t ranks, uint32_t rank, uint64_t group);
  static peal_peer_address played_address(uint32_t rank);

  // --- events; each stamps the bench's time ---
  void submit(const peal_submission& entry) { submit_in(context_, entry); }
  void submit_in(ContextId context, const peal_submission& entry);
  // False when the port's pool was empty and the wire lost the frame.
  bool deliver(const Frame& frame);
  bool deliver_raw(const Frame& frame, uint32_t frame_bytes);
  void finish_dma(size_t index = 0);
  // Until none is held.
  void finish_all_dma();
  // Moves the clock on and fires what is due, deadline by deadline.
  void advance(TimeNs by_ns);
  // From now on the card can send only so many packets again.
  void spend_repairs(uint32_t left = 0);
  // Moves the clock to the card's next deadline and fires it; false when there is none.
  bool advance_to_deadline();

  // --- looking ---
  [[nodiscard]] uint64_t counter(peal_counter which) const;
  [[nodiscard]] std::vector<uint64_t> counters() const;
  // "+1 drop_version" and the like: what grew since `before`.
  [[nodiscard]] std::string counter_changes(const std::vector<uint64_t>& before) const;
  std::string take_log() { return port.take_log(); }
  // The log without DMA: sends and completions.
  std::string take_wire_log();
  // What is wrong with the books now: packets or DMA records that nobody accounts for, broken rules
  // of the port.
  [[nodiscard]] std::string problems();

 private:
  BenchOptions options_;
  emulator::ZeroedMemory memory_;
  Card* card_;
  ContextId context_ = 0;
};

// Submissions, complete but for what a test wants different.
peal_submission barrier_entry(const Membership& member, uint64_t sequence, uint64_t cookie);
peal_submission destroy_entry(const Membership& member, uint64_t sequence, uint64_t cookie);
peal_submission allgather_entry(const Membership& member, uint64_t sequence, uint64_t cookie,
                                peal_algorithm algorithm, uint64_t block_bytes, uint32_t send_key,
                                uint32_t receive_key);
peal_submission broadcast_entry(const Membership& member, uint64_t sequence, uint64_t cookie,
                                uint32_t root, uint64_t block_bytes, uint32_t send_key,
                                uint32_t receive_key);
peal_submission alltoall_entry(const Membership& member, uint64_t sequence, uint64_t cookie,
                               uint64_t block_bytes, uint32_t send_key, uint32_t receive_key);

}  // namespace peal::test
