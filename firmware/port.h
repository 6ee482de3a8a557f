// SPDX-License-Identifier: BSD-2-Clause
// The port: the only way out of the firmware. Whoever runs a card (unit test, virtual-time cluster,
// DPDK emulator, DPU image) implements it; nothing in firmware/ knows which. Calls are made only
// from within the card's own entry points (card.h), on the caller's thread, and must not call back
// into the card.
#pragma once

#include <cstdint>

#include "abi/queue.h"
#include "abi/wire.h"

namespace peal {

using TimeNs = uint64_t;  // nanoseconds on the runner's clock; never goes back
inline constexpr TimeNs kNever = ~TimeNs{0};

using ContextId = uint32_t;
using RegionId = uint32_t;  // a stretch of host memory, named by the runner
using LenderId = uint32_t;  // whose host memory was lent: the card's own names for these
using DmaToken = uint32_t;  // names a DMA of the firmware's; handed back in on_dma_done

// A packet is a header of its own and a payload that several packets may share (reference-counted
// by the port). The payload is written only between allocate_packet() and the first send() or
// share_packet(); after that nobody writes it. A port that puts frames on a real wire sends header
// and payload as one frame.
struct Packet {
  peal_wire_header* header;  // 64 bytes, this packet's own
  uint8_t* payload;          // room for kPayloadBytes (payload.h) in packets from allocate_packet()
  uint32_t payload_bytes;    // received: bytes in the frame behind the header
  uint32_t holds;  // the firmware's own count of uses; the port hands packets out with zero
};

struct HostAddress {
  RegionId region;
  uint64_t offset;  // bytes
};

// Between host memory and the card's.
struct DmaTransfer {
  HostAddress host;
  uint8_t* card;   // a payload, a header or staging; not written to in a write
  Packet* packet;  // of which it is, and which stays until the transfer is done; or null
  uint32_t bytes;
};

enum class Checksums : uint8_t {
  kSoftware,  // the firmware computes and verifies CRC32C
  kHardware,  // the port does, and delivers only packets that pass (it counts the others itself)
  kSkipped,   // in-process wire without fault injector: nobody does
};

// To how many cards go packets of what was read?
enum class ReadFor : uint8_t { kOneCard, kSeveralCards };

class Port {
 public:
  // Packets. Null when the pool is empty. The header of a new packet is undefined.
  virtual Packet* allocate_packet() = 0;
  // A new header for the first payload_bytes of the same payload, which need not have more; the
  // header is not copied. Null when the pool is empty.
  virtual Packet* share_packet(Packet* packet) = 0;
  virtual void release_packet(Packet* packet) = 0;
  // Sends header and header->length bytes of payload to header->destination; takes the packet over,
  // whatever happens to it on the wire. The destination may be this very card.
  // Order is not guaranteed. `engine`, below CONFIG_TRANSMIT_ENGINES: by which it leaves; what
  // leaves by one does not wait for what leaves by another.
  virtual void send(Packet* packet, uint32_t engine) = 0;
  // How many packets the card may have at a time, roughly; 0: it is not known. Asked once, when the
  // card starts.
  [[nodiscard]] virtual uint32_t packet_buffers() const = 0;
  // So many packets besides, that it allocated or that came, the card may keep to send what is in
  // them again without a copy in host memory (group/sent_blocks.h). 0: it has no memory for these.
  // Asked once, when the card starts.
  [[nodiscard]] virtual uint32_t sent_packets() const = 0;
  // Who takes care of CRC32C. Asked once, when the card starts.
  [[nodiscard]] virtual Checksums checksums() const = 0;

  // DMA. Ranges were checked against the memory key. The transfer is asked for during the call; the
  // card's memory that it names stays valid, and is not changed, until on_dma_done(token, ok) is
  // called, always in a later turn, also when the copy was made at once. False: the engine's queue
  // is full; nothing was started. Completions may come in any order.
  [[nodiscard]] virtual bool dma_read(const DmaTransfer& transfer, DmaToken token) = 0;
  [[nodiscard]] virtual bool dma_write(const DmaTransfer& transfer, DmaToken token) = 0;

  // As dma_read(), into the packet's payload, of host memory that is lent: the host does not change
  // it before take_back(). The port may leave the bytes there, and copy them when a card that the
  // packet was sent to writes them to host memory, and not before: where nobody sums
  // (Checksums::kSkipped). The firmware does not look at what is in such a packet, nor in those
  // that share its payload; and these go to one card, if it says so.
  [[nodiscard]] virtual bool dma_read_lent(const DmaTransfer& transfer, DmaToken token, LenderId,
                                           ReadFor) {
    return dma_read(transfer, token);
  }
  // What this one lent may change from now on: what packets have of it is in them, or delivered.
  virtual void take_back(LenderId) {}
  // The packet's bytes were lent for one card, and are in host memory where they were sent to, and
  // not in the packet: nobody can lack them, and it cannot be sent again.
  [[nodiscard]] virtual bool is_delivered(const Packet*) const { return false; }

  // Of how many transfers at once the port makes most. 1: an engine that carries out one after the
  // other, so that the next one waits for all before it. More: to ask costs about as much as to
  // copy (a system call), and what is under way together is asked for once. Asked once, when the
  // card starts.
  [[nodiscard]] virtual uint32_t dma_batch() const = 0;

  // Writes one completion entry (its phase byte is the port's). There is always room: the runner
  // takes a submission from a context only while completions outstanding plus one fit its ring.
  virtual void complete(ContextId context, const peal_completion& entry) = 0;

 protected:
  ~Port() = default;
};

}  // namespace peal
