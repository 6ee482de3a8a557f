// SPDX-License-Identifier: BSD-2-Clause
// A world of its own, as small as can be: the cards' memory is copied back before every run. DMA is
// done at once, in order.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "emulator/cluster/blocks.h"
#include "firmware/card.h"
#include "firmware/payload.h"
#include "tests/cluster/explore/plan.h"

namespace peal::explore {

using sim::BlockName;
using sim::Blocks;

struct Flight {
  uint32_t to;
  bool chosen;   // what happens to it is an act
  bool copy;     // it was delivered before
  uint64_t key;  // of a chosen one: equal for equal packets to the same card
  peal_wire_header header;
  std::vector<uint8_t> payload;
};

enum class Act : uint8_t { kDeliver, kLose, kTwice, kTimer };

struct Choice {
  Act act;
  uint32_t to;
  uint64_t key;
  bool operator==(const Choice&) const = default;
};

// Whether it is the same which of them comes first.
bool independent(const Choice& a, const Choice& b);

struct Buffer : Packet {
  peal_wire_header header_bytes;
  uint8_t bytes[kPayloadBytes];
};

class World;

class Wire final : public Port {
 public:
  Wire(World& world, uint32_t card) : world_(world), card_(card) {}
  Packet* allocate_packet() override;
  Packet* share_packet(Packet* packet) override;
  void release_packet(Packet* packet) override;
  void send(Packet* packet, uint32_t engine) override;
  [[nodiscard]] uint32_t packet_buffers() const override;
  [[nodiscard]] uint32_t sent_packets() const override;
  [[nodiscard]] uint32_t dma_batch() const override { return 1; }
  [[nodiscard]] Checksums checksums() const override { return Checksums::kSkipped; }
  [[nodiscard]] bool dma_read(const DmaTransfer& transfer, DmaToken token) override;
  [[nodiscard]] bool dma_write(const DmaTransfer& transfer, DmaToken token) override;
  void complete(ContextId context, const peal_completion& entry) override;

 private:
  World& world_;
  uint32_t card_;
};

inline constexpr RegionId kChannels = 2;

struct Machine {
  std::unique_ptr<Wire> wire;
  std::vector<uint64_t> memory;  // of the card
  std::vector<uint64_t> fresh;   // the same when the group had been made
  Card* card = nullptr;
  ContextId context = 0;
  peal_peer_address address{};
  uint32_t send_key = 0;
  uint32_t receive_key = 0;
  std::vector<uint8_t> regions[kChannels + 1];  // send, receive, channels
  std::vector<sim::Extent> kept;                // written to the channels in this run
  std::deque<DmaToken> dma;
  uint32_t posted = 0;
  uint32_t completed = 0;
  uint64_t ended = 0;   // bit per sequence
  uint32_t before = 0;  // packets sent before those
  uint32_t sent = 0;    // packets whose fate is chosen
};

class World {
 public:
  explicit World(const Plan& plan) : plan_(plan) { make_group(); }

  // Runs with these choices first, and whatever comes first where they end. The nodes on the way
  // get what could have been chosen.
  struct Node {
    std::vector<Choice> choices;  // all, those that sleep left out
    std::vector<Choice> sleep;
    size_t taken = 0;
  };
  // Empty, or what went wrong.
  std::string run(std::vector<Node>* path);
  [[nodiscard]] const std::vector<std::string>& story() const { return story_; }
  bool tell = false;

 private:
  friend class Wire;

  void make_group();
  void reset();
  // False, and the run has failed, when they do not.
  bool lies_inside(const Machine& machine, const HostAddress& host, uint32_t bytes);
  [[nodiscard]] sim::Extent receive_extent(uint32_t rank, uint32_t sequence) const;
  void write_garbage(uint32_t rank, uint32_t sequence);
  [[nodiscard]] bool has_garbage(uint32_t rank, uint32_t sequence) const;
  [[nodiscard]] std::string check_result(uint32_t rank, uint32_t sequence) const;
  static void name_parts(Machine& machine, const Blocks& blocks, uint32_t sequence,
                         peal_submission* entry);
  void post(uint32_t rank);
  void post_all(uint32_t rank);
  void settle(uint32_t card);
  void deliver(const Flight& flight);
  bool run_timer();
  [[nodiscard]] TimeNs next_deadline(uint32_t* card) const;
  [[nodiscard]] std::vector<Choice> enabled(uint32_t timers_left) const;
  void carry_out(const Choice& choice);
  std::string end_well();
  [[nodiscard]] bool done() const;
  [[nodiscard]] bool choosing() const;
  void deliver_first();
  void fail(const std::string& text) {
    if (problem_.empty()) problem_ = text;
  }
  void fail_of_garbage(uint32_t rank, uint32_t sequence) {
    fail("rank " + std::to_string(rank) + ": the receive buffer of sequence " +
         std::to_string(sequence) + " was written while it was the user's");
  }

  const Plan& plan_;
  std::vector<Machine> machines_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<Buffer*> free_;
  std::deque<Flight> flights_;
  TimeNs now_ = 0;
  bool counting_ = false;
  uint64_t steps_ = 0;
  std::string problem_;
  std::vector<std::string> story_;
};

}  // namespace peal::explore
