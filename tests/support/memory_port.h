// SPDX-License-Identifier: BSD-2-Clause
// The in-memory home of a card: a real small port. Packets come from a counted pool with shared
// payloads, host memory is a few named regions, DMA is held until the test lets it finish. Every
// effect is one line of text. It watches the firmware's side of the bargain (port.h) and keeps a
// list of what was broken; the test's end asks for it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "firmware/port.h"
#include "tests/support/frame.h"
#include "tests/support/host_bytes.h"

namespace peal::test {

// Lets `skip` more requests pass, then turns down `count`.
struct Knob {
  uint64_t skip = 0;
  uint64_t count = 0;

  bool hit();
};

inline constexpr uint64_t kAlways = ~uint64_t{0};

struct HeldDma {
  bool write;
  HostAddress host;
  uint8_t* card;
  uint32_t bytes;
  DmaToken token;
  bool ok;
  std::vector<uint8_t>
      snapshot;  // of card memory when a write began: it may not change until the end
};

class MemoryPort final : public Port {
 public:
  MemoryPort(uint32_t packet_buffers, uint32_t mtu_bytes, Checksums checksums);
  ~MemoryPort();
  MemoryPort(const MemoryPort&) = delete;
  MemoryPort& operator=(const MemoryPort&) = delete;

  // --- knobs ---
  Knob fail_allocations;  // allocate_packet() and share_packet()
  Knob refuse_dmas;       // dma_read() and dma_write() return false
  Knob fault_dmas;        // they start, and finish with ok = false
  bool log_dma = true;
  bool lends = false;      // dma_read_lent() and take_back() are told apart in the log
  bool delivered = false;  // what was lent has been delivered

  // --- host memory ---
  RegionId add_region(const std::string& name, size_t bytes);
  // The memory is gone (unregistered, or its process died):
  // a DMA that touches it from now on is a problem.
  void remove_region(RegionId region);
  HostBytes& bytes(RegionId region);

  // --- what came out ---
  // The effects since the last call, one per line.
  std::string take_log();
  // The packets sent since the last call. The pool gets them back.
  std::vector<Frame> take_sent();
  std::vector<std::pair<ContextId, peal_completion>> take_completions();

  // --- what goes in ---
  // A received packet, from the pool; null when it is empty (the wire then loses the frame).
  Packet* receive(const Frame& frame);
  [[nodiscard]] size_t dma_count() const { return held_.size(); }
  [[nodiscard]] const HeldDma& dma(size_t index) const { return held_[index]; }
  // Carries out and forgets the DMA; the caller passes token and ok to card_on_dma_done().
  HeldDma finish_dma(size_t index);

  // --- leak checks ---
  [[nodiscard]] uint32_t packets_in_use() const { return in_use_; }
  [[nodiscard]] uint32_t packets_unsent() const {  // held by the card
    return in_use_ - static_cast<uint32_t>(sent_.size());
  }
  // Everything that the firmware did and port.h forbids; empty when all is well.
  [[nodiscard]] const std::string& problems() const { return problems_; }

  // --- Port ---
  Packet* allocate_packet() override;
  Packet* share_packet(Packet* packet) override;
  void release_packet(Packet* packet) override;
  void send(Packet* packet, uint32_t engine) override;
  // What the card is told; most tests want what comes early to go to the channel.
  [[nodiscard]] uint32_t packet_buffers() const override { return told_buffers; }
  [[nodiscard]] uint32_t dma_batch() const override { return told_batch; }
  [[nodiscard]] uint32_t sent_packets() const override { return told_sent; }
  uint32_t told_buffers = 0;
  uint32_t told_sent = 0;
  uint32_t told_batch = 1;
  [[nodiscard]] Checksums checksums() const override { return checksums_; }
  [[nodiscard]] bool dma_read(const DmaTransfer& transfer, DmaToken token) override;
  [[nodiscard]] bool dma_write(const DmaTransfer& transfer, DmaToken token) override;
  [[nodiscard]] bool dma_read_lent(const DmaTransfer& transfer, DmaToken token, LenderId who,
                                   ReadFor whom) override;
  void take_back(LenderId who) override;
  [[nodiscard]] bool is_delivered(const Packet*) const override { return delivered; }
  void complete(ContextId context, const peal_completion& entry) override;

 private:
  struct Payload;
  struct Buffer;
  struct Region {
    std::string name;
    size_t size;
    HostBytes bytes;  // from the first touch on: most channels never are
    bool live;
  };

  Buffer* take_buffer();
  Buffer* own_buffer(Packet* packet, const char* where);
  void put_back(Buffer* buffer);
  void freeze(Payload& payload, size_t bytes);
  void check_frozen(const Payload& payload);
  bool start_dma(bool write, const DmaTransfer& transfer, DmaToken token);
  [[nodiscard]] std::string address_text(HostAddress host) const;
  void problem(const std::string& text);

  uint32_t packet_buffers_;
  uint32_t mtu_bytes_;
  Checksums checksums_;
  // Made as they are wanted, up to the pool's size, for which there is room: none ever moves.
  std::vector<Buffer> buffers_;
  std::vector<Payload> payloads_;  // as many
  std::vector<Payload*> free_payloads_;
  std::vector<Buffer*> free_;
  uint32_t in_use_ = 0;
  std::deque<Buffer*> sent_;
  std::deque<HeldDma> held_;
  std::vector<Region> regions_;
  std::vector<std::pair<ContextId, peal_completion>> completions_;
  std::string log_;
  std::string problems_;
};

}  // namespace peal::test
