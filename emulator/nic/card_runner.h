// SPDX-License-Identifier: BSD-2-Clause
// One card of the process: the firmware's Port over DPDK and shared memory, and the card's part of
// a turn. A DMA of shared memory is a copy, made at once; its completion is handed over in the next
// turn, as the firmware expects of an engine. Memory of a process is copied by others
// (copy_pool.h), in the lane of its context, and a client whose memory cannot be reached in time is
// ended.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "emulator/common/admin.h"
#include "emulator/common/host_copies.h"
#include "emulator/common/mapped_windows.h"
#include "emulator/common/region_table.h"
#include "emulator/common/zeroed_memory.h"
#include "emulator/nic/copy_pool.h"
#include "emulator/nic/engine_queues.h"
#include "emulator/nic/frame_switch.h"
#include "emulator/nic/host_interface.h"
#include "emulator/nic/lent_memory.h"
#include "emulator/nic/packet_pool.h"
#include "firmware/card.h"
#include "peal_config.h"

namespace peal::nic {

struct CopyOptions {
  CopyPool* pool = nullptr;  // none: process memory cannot be reached
  TimeNs deadline_ns = 2'000'000'000;
};

class CardPort final : public Port, public CopyLanes {
 public:
  CardPort(uint32_t card_index, PacketPool& pool, FrameSwitch& frame_switch,
           emulator::RegionTable& regions, emulator::HostCopies& mapped, Checksums checksums,
           const CopyOptions& copies)
      : index_(card_index),
        checksums_(checksums),
        pool_(pool),
        switch_(frame_switch),
        regions_(regions),
        mapped_(mapped),
        engines_(CONFIG_TRANSMIT_ENGINES),
        may_lend_(checksums == Checksums::kSkipped && frame_switch.carries_as_they_are()),
        copies_(copies) {
    regions_.set_before_free(
        [this](const uint8_t* base, uint64_t bytes) { lent_.take_back_from(base, bytes); });
  }
  ~CardPort() {
    regions_.set_before_free({});
    engines_.drain([this](Packet* packet) { pool_.release(packet); });
  }
  CardPort(const CardPort&) = delete;
  CardPort& operator=(const CardPort&) = delete;
  void set_windows(emulator::Windows* windows) { windows_ = windows; }

  Packet* allocate_packet() override { return pool_.allocate(); }
  Packet* share_packet(Packet* packet) override { return pool_.share(packet); }
  void release_packet(Packet* packet) override { pool_.release(packet); }
  void send(Packet* packet, uint32_t engine) override {
    if constexpr (CONFIG_TRANSMIT_ENGINES == 1) {
      switch_.send(index_, packet);
    } else if (switch_.lcores() != nullptr) {
      switch_.send(index_, packet, engine);
    } else {
      engines_.push(engine, packet);
    }
  }
  // What the engines have to send leaves.
  void transmit() {
    engines_.drain([this](Packet* packet) { switch_.send(index_, packet); });
  }
  [[nodiscard]] uint32_t packet_buffers() const override { return pool_.buffers_per_card(); }
  [[nodiscard]] uint32_t sent_packets() const override { return pool_.sent_per_card(); }
  // A system call for what is under way of a lane costs more than to copy two packets (0030).
  [[nodiscard]] uint32_t dma_batch() const override { return 32; }
  [[nodiscard]] Checksums checksums() const override { return checksums_; }
  bool dma_read(const DmaTransfer& transfer, DmaToken token) override;
  bool dma_write(const DmaTransfer& transfer, DmaToken token) override;
  bool dma_read_lent(const DmaTransfer& transfer, DmaToken token, LenderId who,
                     ReadFor whom) override;
  void take_back(LenderId who) override { lent_.take_back(who); }
  [[nodiscard]] bool is_delivered(const Packet* packet) const override {
    return LentMemory::is_delivered(packet);
  }
  void complete(ContextId context, const peal_completion& entry) override {
    windows_->complete(context, entry);
  }

  struct DmaDone {
    DmaToken token;
    bool ok;
  };
  // Completions of the turn before this one. Valid until the next call.
  uint32_t take_done(const DmaDone** done);
  [[nodiscard]] bool has_done() const;

  // CopyLanes
  void attach_lane(ContextId context, CopyLane* lane) override {
    lane->set_hands(&hands_);
    lanes_[context].lane = lane;
  }
  void detach_lane(ContextId context) override { lanes_[context] = {}; }
  // Some copy is under way that may yet be late: look again soon.
  [[nodiscard]] bool copies_under_way() const;
  // Time that passes while there are none is held against nobody.
  void nothing_to_tend(TimeNs now) { tended_ns_ = now; }
  // After each turn: gives workers their work, and another worker where one is stuck. Returns a
  // context whose copies are overdue, or kNoContext.
  ContextId tend_lanes(TimeNs now);

 private:
  // What the loop knows about a lane.
  struct LaneState {
    CopyLane* lane = nullptr;
    bool active = false;    // in active_
    bool stuck = false;     // counted in the pool
    uint32_t progress = 0;  // when last looked at
    TimeNs age_ns = 0;      // that a worker has had the same pieces in its hands
    TimeNs wait_ns = 0;     // that pieces have waited for a worker
    uint32_t added = 0;     // pieces, since it was last tended
    uint64_t added_bytes = 0;
  };

  bool write_mapped(uint8_t* memory, const DmaTransfer& transfer);
  bool copy(const DmaTransfer& transfer, DmaToken token, bool to_card);
  void push_done(DmaToken token, bool ok);
  void collect_copies();
  bool tend(LaneState& state, TimeNs passed_ns);
  void set_stuck(LaneState& state, bool stuck);

  static constexpr uint32_t kQueue = CONFIG_DMA_RECORDS;
  using Queue = std::array<DmaDone, kQueue>;

  uint32_t index_;
  Checksums checksums_;
  PacketPool& pool_;
  FrameSwitch& switch_;
  emulator::RegionTable& regions_;
  emulator::HostCopies& mapped_;
  emulator::Windows* windows_ = nullptr;
  Queue queues_[2];
  uint32_t filling_ = 0;  // which queue new completions enter
  uint32_t pending_count_ = 0;
  EngineQueues engines_;
  LentMemory lent_;
  bool may_lend_;  // nobody between two cards looks into packets, or sends one twice
  CopyOptions copies_;
  std::array<LaneState, emulator::kContexts> lanes_;
  std::array<ContextId, emulator::kContexts> active_{};  // the first active_count_
  uint32_t active_count_ = 0;
  CopyHands hands_;
  TimeNs tended_ns_ = 0;
};

// How far a card goes in a turn, before the others have theirs.
struct TurnShare {
  uint32_t bursts;      // of packets
  uint32_t dma_rounds;  // of copies that follow from one another
};
// Where other loops' cards wait for what this one's send.
inline constexpr TurnShare kShortShare = {.bursts = 1, .dma_rounds = 2};
// Where one loop serves all: its cards wait for each other anyway. What a card copies for a rank is
// copied at a stretch, and its rank looks at it while the loop serves others. docs/decisions/0067
inline constexpr TurnShare kLongShare = {.bursts = 2, .dma_rounds = 8};

class CardRunner {
 public:
  CardRunner(uint32_t index, PacketPool& pool, FrameSwitch& frame_switch,
             emulator::HostCopies& mapped, Checksums checksums, const CardTimeouts& timeouts,
             uint32_t incarnation, const CopyOptions& copies = {});
  CardRunner(const CardRunner&) = delete;
  CardRunner& operator=(const CardRunner&) = delete;

  // A turn has two halves, and every card has its first before any has its second: a peer's answer
  // may wait in the queue of a card that comes later.
  //
  // What has arrived (finished DMA, packets, submissions), as far as its share goes.
  // True when anything was done.
  bool serve(TimeNs now);
  // From its next turn on.
  void set_share(TurnShare share) { share_ = share; }
  // What is due. Timers decide that somebody is silent, so they wait until everything is served
  // that had arrived when the first of them fell due; what arrives later holds them up no more, or
  // a flood would stop them. `quiet`: no frame waits for any card.
  void run_timers(TimeNs now, bool quiet);
  // Behind both: copies of process memory. True when a client was ended.
  bool tend_copies(TimeNs now);
  // The card was called from outside a turn: it may have sent, and its next deadline be earlier.
  void refresh() {
    port_.transmit();
    deadline_ns_ = card_next_deadline(*card_);
  }
  // What its engines have to send leaves.
  void transmit() { port_.transmit(); }
  [[nodiscard]] TimeNs deadline() const { return deadline_ns_; }
  [[nodiscard]] uint32_t index() const { return index_; }
  [[nodiscard]] bool has_frames() const { return switch_.has_frames(index_); }

  [[nodiscard]] Card& card() { return *card_; }
  [[nodiscard]] const Card& card() const { return *card_; }
  [[nodiscard]] emulator::Admin& admin() { return admin_; }
  [[nodiscard]] const emulator::Admin& admin() const { return admin_; }
  [[nodiscard]] emulator::Windows& windows() { return windows_; }
  [[nodiscard]] const emulator::Windows& windows() const { return windows_; }
  // How many ends of operations its hosts were ever told of.
  [[nodiscard]] uint64_t ends() const { return windows_.completed(); }
  [[nodiscard]] const emulator::RegionTable& regions() const { return regions_; }
  [[nodiscard]] CardHost host() { return {card_, &admin_, &windows_, &regions_, &port_, index_}; }
  [[nodiscard]] bool copies_under_way() const { return port_.copies_under_way(); }
  // Bytes of card memory.
  static size_t memory_bytes() { return card_bytes(); }

 private:
  // DMA that is done. False: none was.
  bool serve_dma(TimeNs now);
  // A burst of packets. False: none waits.
  bool serve_packets(TimeNs now);
  [[nodiscard]] uint32_t turns_to_serve() const;
  static Card* start(void* memory, Port& port, uint32_t index, uint32_t incarnation,
                     const CardTimeouts& timeouts);

  uint32_t index_;
  FrameSwitch& switch_;
  emulator::RegionTable regions_;
  CardPort port_;
  emulator::ZeroedMemory memory_;
  Card* card_;
  emulator::MappedWindows windows_;
  emulator::Admin admin_;
  TimeNs deadline_ns_ = kNever;
  bool served_ = false;     // anything, in this turn
  bool cut_short_ = false;  // a burst limit ended the first half
  TurnShare share_ = kShortShare;
  uint32_t patience_ = 0;  // turns that timers which are due still wait
};

}  // namespace peal::nic
