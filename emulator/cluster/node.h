// SPDX-License-Identifier: BSD-2-Clause
// One card of the cluster: the firmware's object, the port it sees, and the times at which its
// processor, link and DMA engine are free again.
#pragma once

#include <cstdint>

#include "emulator/cluster/cluster.h"
#include "emulator/cluster/host_memory.h"
#include "firmware/card.h"
#include "firmware/port.h"

namespace peal::sim {

class Node final : public Port {
 public:
  Node(Cluster& cluster, uint32_t index);
  ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Packet* allocate_packet() override;
  Packet* share_packet(Packet* packet) override;
  void release_packet(Packet* packet) override;
  void send(Packet* packet) override;
  [[nodiscard]] Checksums checksums() const override;
  [[nodiscard]] bool dma_read(HostAddress from, uint8_t* card, uint32_t bytes,
                              DmaToken token) override;
  [[nodiscard]] bool dma_write(const uint8_t* card, HostAddress to, uint32_t bytes,
                               DmaToken token) override;
  void complete(ContextId context, const peal_completion& entry) override;

  Cluster& cluster;
  const uint32_t index;
  Mapping card_memory;
  Card* card = nullptr;
  TimeNs turn_ns = 0;  // the processor's time within a turn
  TimeNs busy_until_ns = 0;
  TimeNs link_out_free_ns = 0;
  TimeNs link_in_free_ns = 0;
  TimeNs dma_free_ns = 0;
  TimeNs timer_at_ns = kNever;  // when the timer event that counts is due
  uint32_t timer_item = 0;      // and its number; others are out of date
  uint32_t packets_held = 0;
  uint32_t dma_under_way = 0;
  TimeNs frozen_until_ns = 0;
  uint32_t frozen_arrivals = 0;  // that queue while it is frozen
  bool silent = false;
};

}  // namespace peal::sim
