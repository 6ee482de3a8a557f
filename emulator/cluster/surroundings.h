// SPDX-License-Identifier: BSD-2-Clause
// What a card of the cluster acts upon: wire, DMA engine, hosts. The cluster is that; a node knows
// no more of it than this.
#pragma once

#include <cstdint>

#include "abi/queue.h"
#include "emulator/cluster/packet_pool.h"
#include "firmware/port.h"

namespace peal::sim {

class Node;

// What a card asks of its DMA engine.
struct DmaRequest {
  DmaTransfer transfer;
  DmaToken token;
  bool writes;        // to host memory
  bool lent = false;  // a read: the bytes may stay where they are
  LenderId who = 0;
  ReadFor whom = ReadFor::kOneCard;
};

// All of it happens within a turn of the node that asks.
class Surroundings {
 public:
  // Takes the packet over, which is the node's no more.
  virtual void transmit(Node& node, SimPacket* packet) = 0;
  // A packet that nobody needs any more.
  virtual void release(SimPacket* packet) = 0;
  // False when the engine's queue is full.
  virtual bool start_dma(Node& node, const DmaRequest& request) = 0;
  virtual void complete(Node& node, uint32_t context, const peal_completion& entry) = 0;
  // Something that must never happen, by the name of the check.
  virtual void violation(const char* check, const char* text) = 0;

 protected:
  ~Surroundings() = default;
};

}  // namespace peal::sim
