// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/packet_pool.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "emulator/cluster/spare_memory.h"
#include "firmware/base/crc32c_blocks.h"

namespace peal::sim {

PacketPool::PacketPool(uint32_t mtu_bytes, bool check_seals)
    : mtu_bytes_((mtu_bytes + 63) & ~63u), check_seals_(check_seals) {}

PacketPool::~PacketPool() {
  for (emulator::ZeroedMemory& chunk : byte_chunks_)
    give_memory(std::move(chunk), emulator::Touched::kSparsely, size_t{kChunk} * mtu_bytes_);
}

SimPacket* PacketPool::take_packet(Payload* payload) {
  if (free_packets_.empty()) {
    const auto first = static_cast<uint32_t>(packet_chunks_.size() * kChunk);
    packet_chunks_.push_back(std::make_unique<SimPacket[]>(kChunk));
    for (uint32_t i = kChunk; i-- > 0;) {
      SimPacket* packet = &packet_chunks_.back()[i];
      packet->index = first + i;
      packet->in_use = false;
      free_packets_.push_back(packet);
    }
  }
  SimPacket* packet = free_packets_.back();
  free_packets_.pop_back();
  packets_in_use_++;
  packet->header = &packet->header_bytes;
  packet->payload = payload->bytes;
  packet->payload_bytes = 0;
  packet->shared = payload;
  packet->holder = kNoHolder;
  packet->engine = 0;
  packet->in_use = true;
  return packet;
}

Payload* PacketPool::take_payload() {
  if (free_payloads_.empty()) {
    payload_chunks_.push_back(std::make_unique<Payload[]>(kChunk));
    byte_chunks_.push_back(take_memory(size_t{kChunk} * mtu_bytes_, emulator::Touched::kSparsely));
    for (uint32_t i = kChunk; i-- > 0;) {
      Payload* payload = &payload_chunks_.back()[i];
      payload->bytes = byte_chunks_.back().data() + size_t{i} * mtu_bytes_;
      free_payloads_.push_back(payload);
    }
  }
  Payload* payload = free_payloads_.back();
  free_payloads_.pop_back();
  payloads_in_use_++;
  payload->references = 1;
  payload->sealed = payload->delivered = false;
  payload->lent_in = nullptr;
  return payload;
}

SimPacket* PacketPool::allocate() { return take_packet(take_payload()); }

SimPacket* PacketPool::share(SimPacket* packet) {
  packet->shared->references++;
  SimPacket* other = take_packet(packet->shared);
  other->payload_bytes = packet->payload_bytes;
  other->engine = packet->engine;
  return other;
}

SimPacket* PacketPool::copy(const SimPacket* packet) {
  SimPacket* other = take_packet(take_payload());
  const Payload& payload = *packet->shared;
  if (payload.lent_in != nullptr) {
    std::memcpy(other->shared->bytes, payload.lent.source, payload.lent.bytes);
  } else {
    std::memcpy(other->shared->bytes, payload.bytes, mtu_bytes_);
  }
  other->header_bytes = packet->header_bytes;
  other->payload_bytes = packet->payload_bytes;
  other->engine = packet->engine;
  return other;
}

// (Without a call: what the simulator sums is not the firmware's work, which tools/firmware-cost
// counts by its functions.)
PEAL_CRC_TARGET [[gnu::flatten]] SealSums PacketPool::sum(const Payload& payload) {
  using crc32c_steps::step8;
  using crc32c_steps::word_at;
  const uint8_t* at = payload.bytes;
  size_t rest = payload.sealed_bytes;
  uint64_t first = 0;
  uint64_t second = 0;
  uint64_t third = 0;
  uint64_t fourth = 0;
  const auto add = [&](const uint8_t* from) {
    first = step8(first, word_at(from));
    second = step8(second, word_at(from + 8));
    third = step8(third, word_at(from + 16));
    fourth = step8(fourth, word_at(from + 24));
  };
  for (const uint8_t* const end = at + (rest & ~size_t{63}); at != end; at += 64) {
    add(at);
    add(at + 32);
  }
  rest &= 63;
  first = crc32c_steps::sum_bytes(first, at, rest);
  const auto lane = [](uint64_t sum) { return static_cast<uint32_t>(sum); };
  return {{lane(first), lane(second), lane(third), lane(fourth)}};
}

void PacketPool::seal(Payload& payload, uint32_t bytes) const {
  payload.sealed = true;
  payload.sealed_bytes = std::min(bytes, mtu_bytes_);
  payload.sealed_sums = sum(payload);
}

bool PacketPool::release(SimPacket* packet) {
  assert(packet->in_use);
  packet->in_use = false;
  Payload* payload = packet->shared;
  bool intact = true;
  if (--payload->references == 0) {
    if (payload->lent_in != nullptr) std::erase(*payload->lent_in, payload);
    intact = !payload->sealed || sum(*payload) == payload->sealed_sums;
    payloads_in_use_--;
    free_payloads_.push_back(payload);
  }
  packets_in_use_--;
  free_packets_.push_back(packet);
  return intact;
}

}  // namespace peal::sim
