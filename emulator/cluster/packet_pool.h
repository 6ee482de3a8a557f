// SPDX-License-Identifier: BSD-2-Clause
// Packets of the simulated wire. A packet has a header of its own and shares its payload by a count
// of references; every packet and payload is counted, so that a leak shows at the end. Payloads are
// sealed at the first send or share and, when asked for, compared when they are let go: nobody may
// have written to them meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "abi/wire.h"
#include "emulator/common/zeroed_memory.h"
#include "firmware/port.h"

namespace peal::sim {

// CRC32C of every fourth word each, side by side: each waits for the one before it only, so that
// four take no longer than one. What one sum of all would find is found by one of them.
struct SealSums {
  uint32_t lanes[4];
  bool operator==(const SealSums&) const = default;
};

// Host memory in place of a payload's bytes (lent_payloads.h).
struct LentBytes {
  const uint8_t* source;
  uint32_t bytes;
  LenderId who;
  ReadFor whom;
  // Where that is: a card, and a region of the simulated machine.
  uint32_t card;
  uint32_t region;
  uint64_t offset;
};

struct Payload {
  uint32_t references;
  bool sealed;
  bool delivered;  // lent for one card, and written by that
  uint32_t sealed_bytes;
  SealSums sealed_sums;            // of that many bytes
  uint8_t* bytes;                  // one MTU
  std::vector<Payload*>* lent_in;  // its lender's list; null: they are here, or were delivered
  LentBytes lent;                  // while or since they were
};

inline constexpr uint32_t kNoHolder = ~0u;

struct SimPacket : Packet {
  alignas(8) peal_wire_header header_bytes;
  Payload* shared;
  uint32_t index;   // in the pool
  uint32_t holder;  // the card that has it, or kNoHolder
  uint8_t engine;   // sent: of the sender's, and by the same it comes to the receiver
  bool in_use;
  // On its way through a torus.
  uint32_t from_card;
  uint32_t at_card;
  TimeNs sent_ns;
};

class PacketPool {
 public:
  // With check_seals every payload is summed at its seal and at its end.
  PacketPool(uint32_t mtu_bytes, bool check_seals);
  // The memory of its payloads is kept for the thread's next object (spare_memory.h).
  ~PacketPool();
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  // A packet with a payload of its own.
  SimPacket* allocate();
  // A packet of its own header (not copied) and the payload of `packet`.
  SimPacket* share(SimPacket* packet);
  // A packet with copies of header and payload, which may be damaged.
  SimPacket* copy(const SimPacket* packet);
  // False when the payload changed after its seal.
  [[nodiscard]] bool release(SimPacket* packet);
  // From here on nobody may write the first `bytes` of the payload.
  void seal(SimPacket* packet, uint32_t bytes) {
    const Payload& payload = *packet->shared;
    const bool here = payload.lent_in == nullptr && !payload.delivered;
    if (check_seals_ && here && !payload.sealed) seal(*packet->shared, bytes);
  }

  [[nodiscard]] SimPacket* at(uint32_t index) const {
    return &packet_chunks_[index / kChunk][index % kChunk];
  }
  // How many there are: at() takes any number below.
  [[nodiscard]] uint32_t size() const {
    return static_cast<uint32_t>(packet_chunks_.size() * kChunk);
  }
  [[nodiscard]] uint64_t packets_in_use() const { return packets_in_use_; }
  [[nodiscard]] uint64_t payloads_in_use() const { return payloads_in_use_; }

 private:
  static constexpr uint32_t kChunk = 256;

  SimPacket* take_packet(Payload* payload);
  Payload* take_payload();
  void seal(Payload& payload, uint32_t bytes) const;
  [[nodiscard]] static SealSums sum(const Payload& payload);

  uint32_t mtu_bytes_;
  bool check_seals_;
  std::vector<std::unique_ptr<SimPacket[]>> packet_chunks_;
  std::vector<std::unique_ptr<Payload[]>> payload_chunks_;
  std::vector<emulator::ZeroedMemory>
      byte_chunks_;  // touched where a packet has bytes, and no further
  std::vector<SimPacket*> free_packets_;
  std::vector<Payload*> free_payloads_;
  uint64_t packets_in_use_ = 0;
  uint64_t payloads_in_use_ = 0;
};

}  // namespace peal::sim
