// SPDX-License-Identifier: BSD-2-Clause
// One card of the cluster: the firmware's object, the port it sees, what its runner has of its own
// (windows, administration, the table of memory regions: those of the emulator, emulator/common),
// and the times at which its processor, link and DMA engine are free again. What takes time or
// concerns others (wire, DMA, completions) it leaves to its surroundings: the cluster.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "abi/ring.h"
#include "emulator/cluster/host_memory.h"
#include "emulator/cluster/lent_payloads.h"
#include "emulator/cluster/packet_pool.h"
#include "emulator/cluster/surroundings.h"
#include "emulator/common/admin.h"
#include "emulator/common/mapped_windows.h"
#include "emulator/common/region_table.h"
#include "firmware/card.h"
#include "firmware/port.h"
#include "peal_config.h"

namespace peal::sim {

struct NodeOptions {
  uint64_t seed = 1;
  CardTimeouts timeouts = default_timeouts();
  uint32_t packets = 4096;  // that the card may hold
  uint32_t sent = 0;        // and those that it may keep when it has sent them
  Checksums checksums = Checksums::kSoftware;
  bool lends = false;  // memory of its hosts, where nobody sums it
  uint32_t dma_batch = 1;
};

// When the turns begin that wait for a card's processor, in their order.
class WaitingTurns {
 public:
  void add(TimeNs begin_ns) { begins_ns_.push_back(begin_ns); }
  void clear() { begins_ns_.clear(), begun_ = 0; }
  // Those that have not begun by then, which is no earlier than when it was asked before.
  size_t count(TimeNs now_ns) {
    while (begun_ < begins_ns_.size() && begins_ns_[begun_] <= now_ns) begun_++;
    if (2 * begun_ >= begins_ns_.size()) forget_begun();
    return begins_ns_.size() - begun_;
  }

 private:
  void forget_begun() {
    begins_ns_.erase(begins_ns_.begin(), begins_ns_.begin() + static_cast<ptrdiff_t>(begun_));
    begun_ = 0;
  }

  std::vector<TimeNs> begins_ns_;
  size_t begun_ = 0;
};

class Node final : public Port, public emulator::MemoryProvider {
 public:
  // Surroundings, pool and memory outlive the node.
  Node(uint32_t index, const NodeOptions& options, Surroundings& surroundings, PacketPool& pool,
       HostMemory& memory);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // A card with empty memory, and an incarnation that it never had. What the one before held is
  // nobody's any more.
  void boot();
  // The region of the simulated machine behind one of the table's, or kNoRegionNumber when the
  // table has no such bytes.
  [[nodiscard]] uint32_t number_of(RegionId region, uint64_t offset, uint64_t bytes) const;
  // One command of a client whose own context that is; the reply's status.
  peal_status execute(peal_admin_command* command, uint32_t context, TimeNs now_ns,
                      peal_admin_reply* reply);

  Packet* allocate_packet() override;
  Packet* share_packet(Packet* packet) override;
  void release_packet(Packet* packet) override;
  void send(Packet* packet, uint32_t engine) override;
  [[nodiscard]] uint32_t packet_buffers() const override { return options_.packets; }
  [[nodiscard]] uint32_t sent_packets() const override { return options_.sent; }
  [[nodiscard]] uint32_t dma_batch() const override { return options_.dma_batch; }
  [[nodiscard]] Checksums checksums() const override;
  [[nodiscard]] bool dma_read(const DmaTransfer& transfer, DmaToken token) override;
  [[nodiscard]] bool dma_write(const DmaTransfer& transfer, DmaToken token) override;
  [[nodiscard]] bool dma_read_lent(const DmaTransfer& transfer, DmaToken token, LenderId who,
                                   ReadFor whom) override;
  void take_back(LenderId who) override { lent.take_back(who); }
  [[nodiscard]] bool is_delivered(const Packet* packet) const override {
    return static_cast<const SimPacket*>(packet)->shared->delivered;
  }
  void complete(ContextId context, const peal_completion& entry) override;

  peal_status open_window(ContextId context, uint64_t* offset) override;
  void context_gone(ContextId context) override;
  peal_status make_memory(const peal_register_memory& request, RegionId* region) override;
  peal_status make_channels(const peal_reserve_group& request, RegionId* region) override;

  // A context as its host sees it.
  struct Window {
    emulator::ZeroedMemory memory;
    peal_host_ring ring{};
    bool gone = true;  // the card has let go of everything
  };

  const uint32_t index;
  LentPayloads lent;
  emulator::ZeroedMemory card_memory;
  Card* card = nullptr;
  std::unique_ptr<emulator::RegionTable> regions;
  std::unique_ptr<emulator::MappedWindows> card_windows;
  std::unique_ptr<emulator::Admin> admin;
  std::array<Window, emulator::kContexts> windows;
  std::vector<uint32_t> region_numbers;  // by index in the table
  uint32_t boots = 0;
  TimeNs turn_ns = 0;  // the processor's time within a turn
  TimeNs busy_until_ns = 0;
  WaitingTurns waiting;                                               // of arrivals
  std::array<TimeNs, CONFIG_TRANSMIT_ENGINES> link_out_free_ns = {};  // of each engine
  std::array<TimeNs, CONFIG_TRANSMIT_ENGINES> link_in_free_ns = {};
  TimeNs dma_free_ns = 0;        // both ways, or from host memory
  TimeNs dma_write_free_ns = 0;  // to host memory, where that does not wait for the other
  TimeNs timer_at_ns = kNever;   // when the timer event that counts is due
  uint32_t timer_item = 0;       // and its number; others are out of date
  bool timer_gave_way = false;   // to what arrived while the processor was busy
  uint32_t packets_held = 0;
  // So many it may hold: those that it keeps when it has sent them are besides.
  [[nodiscard]] uint32_t room() const {
    return options_.packets + (options_.sent > 0 ? card_sent_blocks(*card) : 0);
  }
  uint32_t dma_under_way = 0;
  uint64_t dma_started = 0;
  uint64_t dma_newest_done = 0;  // the last started of those that have ended
  uint32_t doorbells = 0;        // rung, and not yet answered
  TimeNs frozen_until_ns = 0;
  uint32_t frozen_arrivals = 0;  // that queue while it is frozen
  bool silent = false;
  bool completed = false;  // something, in this turn

 private:
  void stop();
  static void give_window(Window& window);
  RegionId put(uint32_t number, uint64_t bytes, emulator::RegionTable::Release release);

  const NodeOptions options_;
  Surroundings& surroundings_;
  PacketPool& pool_;
  HostMemory& memory_;
};

}  // namespace peal::sim
