// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/node.h"

#include <cstring>

#include "emulator/cluster/mix.h"
#include "emulator/common/packet_text.h"

namespace peal::sim {

Node::Node(Cluster& owner, uint32_t card_index)
    : cluster(owner), index(card_index), card_memory(card_bytes()) {
  CardIdentity identity{};
  emulator::card_mac(index, identity.mac);
  identity.incarnation = static_cast<uint32_t>(mix(owner.options_.seed, 3, index)) | 1;
  identity.index = static_cast<uint16_t>(index);
  card = card_start(card_memory.data(), *this, identity, owner.options_.timeouts);
}

Packet* Node::allocate_packet() {
  if (packets_held >= cluster.options_.packets_per_card) return nullptr;
  packets_held++;
  SimPacket* packet = cluster.pool_.allocate();
  packet->holds = 0;
  return packet;
}

Packet* Node::share_packet(Packet* packet) {
  if (packets_held >= cluster.options_.packets_per_card) return nullptr;
  packets_held++;
  auto* source = static_cast<SimPacket*>(packet);
  cluster.pool_.seal(source, source->payload_bytes);
  SimPacket* shared = cluster.pool_.share(source);
  shared->holds = 0;
  return shared;
}

void Node::release_packet(Packet* packet) {
  packets_held--;
  cluster.release(static_cast<SimPacket*>(packet));
}

void Node::send(Packet* packet) {
  packets_held--;
  cluster.transmit(*this, static_cast<SimPacket*>(packet));
}

Checksums Node::checksums() const { return cluster.options_.checksums; }

bool Node::dma_read(HostAddress from, uint8_t* to, uint32_t bytes, DmaToken token) {
  return cluster.start_dma(*this, {from.region, from.offset, to, nullptr, bytes, token});
}

bool Node::dma_write(const uint8_t* from, HostAddress to, uint32_t bytes, DmaToken token) {
  return cluster.start_dma(*this, {to.region, to.offset, nullptr, from, bytes, token});
}

void Node::complete(ContextId context, const peal_completion& entry) {
  cluster.complete(*this, context, entry);
}

}  // namespace peal::sim
