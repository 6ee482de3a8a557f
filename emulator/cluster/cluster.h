// SPDX-License-Identifier: BSD-2-Clause
// N cards in one process on a simulated clock. The cards are the firmware's own objects,
// unmodified; this class is their port, wire, DMA engine and doorbell. A card's processor takes one
// event at a time: what arrives while it is busy waits its turn, in order of arrival, and timers
// run when nothing that has arrived waits (the contract of firmware/card.h's runner). All effects
// are deterministic in the seed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/cluster/cost_model.h"
#include "emulator/cluster/event_queue.h"
#include "emulator/cluster/host_memory.h"
#include "emulator/cluster/observer.h"
#include "emulator/cluster/packet_pool.h"
#include "emulator/cluster/surroundings.h"
#include "emulator/cluster/virtual_wire.h"
#include "emulator/cluster/wire_cut.h"
#include "emulator/common/fault_injector.h"
#include "emulator/common/faulty_wire.h"
#include "firmware/card.h"

namespace peal::sim {

// What the cluster calls when something happens to the hosts. Must not call back into step().
class HostEvents {
 public:
  // A time that was asked for with at().
  virtual void on_host_event(TimeNs now_ns, uint32_t item) = 0;
  // A completion, at the moment when the card writes it; the host sees it completion_ns later.
  virtual void on_completion(TimeNs now_ns, uint32_t card, uint32_t context,
                             const peal_completion& entry) = 0;

 protected:
  ~HostEvents() = default;
};

struct ClusterOptions {
  uint32_t cards = 2;
  uint64_t seed = 1;
  CostModel costs;
  CardTimeouts timeouts = default_timeouts();
  emulator::FaultPlan faults;
  std::vector<WireCut> cuts;
  Checksums checksums = Checksums::kSoftware;
  uint32_t packets_per_card = 4096;  // that a card may hold; arrivals beyond are dropped
  bool lends = false;                // cards leave what is for others where it is
  uint32_t sent_packets = 0;         // besides, that it may keep when it has sent them
  uint32_t dma_per_card = ~0u;       // that its engine queues
  uint32_t dma_batch = 1;            // that it is said to make most of
  uint32_t receive_queue = 1024;     // arrivals that may wait for the card's processor
  bool check_seals = true;           // payloads must not change once sent
};

struct ClusterCounts {
  uint64_t sent = 0;             // frames by cards, before faults
  uint64_t received = 0;         // frames handed to cards
  uint64_t dropped_full = 0;     // card held packets_per_card already
  uint64_t dropped_queue = 0;    // its receive queue was full
  uint64_t dropped_silent = 0;   // card is silent
  uint64_t dropped_unknown = 0;  // destination is no card
  uint64_t dropped_cut = 0;      // the link was cut
  uint64_t dma_refused = 0;      // the engine had dma_per_card already; offered again later
  uint64_t dma_overtaken = 0;    // ended after one that the card had started later
  uint64_t dma_lent = 0;         // reads whose bytes stayed where they were
  uint32_t dma_most = 0;         // under way on a card at a time
  uint64_t events = 0;
};

class Cluster final : private Surroundings {
 public:
  // The options' fault plan must make sense (FaultPlan::problem()), and so many cards must fit the
  // model's network (network_problem()). observer may be null; both
  // outlive the cluster.
  Cluster(const ClusterOptions& options, Observer* observer, HostEvents* hosts);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // --- the run ---
  // Carries out the earliest event. False when nothing is left to do.
  bool step();
  [[nodiscard]] TimeNs now() const { return now_ns_; }
  [[nodiscard]] TimeNs next_event_ns() { return events_.next_ns(); }
  // Host event `item` at the given time.
  void at(TimeNs when_ns, uint32_t item);
  // The wire works from now on, whatever the plan said.
  void heal() { faulty_.heal(); }

  // --- what hosts do: administrative commands as they come over a socket; they take no time ---
  [[nodiscard]] peal_status open_context(uint32_t card, uint32_t* context);
  // The client is gone; the processor of the card sees it now.
  // The context's regions must stay until context_quiet().
  void close_context(uint32_t card, uint32_t context);
  [[nodiscard]] bool context_quiet(uint32_t card, uint32_t context) const;
  [[nodiscard]] peal_status register_memory(uint32_t card, uint32_t context, uint32_t region,
                                            uint64_t bytes, uint32_t access, uint32_t* key);
  [[nodiscard]] peal_status unregister_memory(uint32_t card, uint32_t context, uint32_t key);
  [[nodiscard]] peal_status reserve_group(uint32_t card, uint32_t context,
                                          const peal_reserve_group& request,
                                          peal_peer_address* address);
  // What a connect group has no room for.
  [[nodiscard]] peal_status add_peers(uint32_t card, uint32_t context,
                                      const peal_add_peers& request);
  [[nodiscard]] peal_status connect_group(uint32_t card, uint32_t context,
                                          const peal_connect_group& request);
  [[nodiscard]] peal_status abandon_group(uint32_t card, uint32_t context, uint32_t member);
  // *program is its handle.
  [[nodiscard]] peal_status commit_program(uint32_t card, uint32_t context,
                                           const peal_commit_program& request, uint32_t* program);
  [[nodiscard]] peal_status free_program(uint32_t card, uint32_t context, uint32_t program);
  // A command that no card may grant; which one, `choice` says.
  [[nodiscard]] peal_status ask_nonsense(uint32_t card, uint32_t context, uint32_t choice);
  // Writes an entry to the context's ring; the card looks at it doorbell_ns later. False when the
  // ring is full.
  bool submit(uint32_t card, uint32_t context, const peal_submission& entry);
  // Takes the next completion out of the context's ring; false when there is none.
  [[nodiscard]] bool poll(uint32_t card, uint32_t context, peal_completion* entry);
  // The host asks for a reset of its window, or lets its index run wild: either ends the context.
  void reset_window(uint32_t card, uint32_t context);
  void spoil_window(uint32_t card, uint32_t context);
  // The next operation of a member that has run none is this one, as if it had run all before. A
  // multiple of K.
  void start_at_sequence(uint32_t card, uint32_t member, uint64_t sequence);
  HostMemory& memory() { return memory_; }

  // --- accidents ---
  // The card stops for good: it neither sends nor reacts from now on.
  void silence(uint32_t card);
  // A card that is silent starts again, with nothing in its memory and as another incarnation.
  void restart(uint32_t card);
  // The card's runner is stopped until then: nothing is served, arrivals queue as long as there is
  // room, and are served first when it goes on.
  void freeze(uint32_t card, TimeNs until_ns);
  // A frame from nowhere arrives at a card. frame_bytes below 64 makes it too short for a header.
  void inject(uint32_t card, const peal_wire_header& header, const uint8_t* payload,
              uint32_t payload_bytes, uint32_t frame_bytes);

  // --- what can be asked ---
  [[nodiscard]] uint32_t card_count() const { return static_cast<uint32_t>(nodes_.size()); }
  [[nodiscard]] peal_device device(uint32_t card) const;
  [[nodiscard]] uint64_t counter(uint32_t card, peal_counter counter) const;
  // Sum over all cards.
  [[nodiscard]] uint64_t counter(peal_counter counter) const;
  [[nodiscard]] const ClusterCounts& counts() const { return counts_; }
  [[nodiscard]] const emulator::FaultCounts& faults() const { return faulty_.injector().counts(); }
  [[nodiscard]] Checksums checksums() const { return options_.checksums; }
  // Of every frame sent and every completion, with their times.
  [[nodiscard]] uint64_t trace_hash() const { return trace_hash_; }
  // Frames on the wire now.
  [[nodiscard]] uint64_t frames_under_way() const { return wire_.under_way() + in_torus_; }
  [[nodiscard]] const Torus& torus() const { return torus_; }
  // Packets and DMA that the card has not given back, by the port's own count, and the operations
  // open on it.
  [[nodiscard]] uint32_t packets_held(uint32_t card) const;
  [[nodiscard]] uint32_t dma_under_way(uint32_t card) const;
  [[nodiscard]] CardHolds holds(uint32_t card) const;
  [[nodiscard]] bool silent(uint32_t card) const;
  // Regions of host memory that the card may still reach.
  [[nodiscard]] uint32_t regions_held(uint32_t card);
  [[nodiscard]] const PacketPool& pool() const { return pool_; }

 private:
  struct Dma {
    DmaRequest request;
    uint32_t number;  // of the region, in memory()
    uint32_t boot;    // of the card that asked for it
    uint64_t order;   // of its starts on that card
  };

  // Where a card's memory is, side by side: looked at when all else of the card is in no cache.
  struct CardPlace {
    const Node* node;
    const Card* card;
  };

  void transmit(Node& node, SimPacket* packet) override;
  void release(SimPacket* packet) override;
  bool start_dma(Node& node, const DmaRequest& request) override;
  void complete(Node& node, uint32_t context, const peal_completion& entry) override;
  void violation(const char* check, const char* text) override;

  peal_status execute(uint32_t card, uint32_t context, peal_admin_command* command,
                      peal_admin_reply* reply);
  [[nodiscard]] TimeNs time_of(const SimPacket& packet) const;
  void pass_on(SimPacket* packet);
  void look_ahead();
  void postpone(Node& node, const Event& event);
  [[nodiscard]] bool is_cut(uint32_t from_card, uint32_t to_card, TimeNs now_ns) const;
  void arrive(Node& node, uint32_t item);
  void take_packet(Node& node, SimPacket* packet);
  bool read_host(Node& node, const Dma& dma);
  bool write_lent(Node& node, const DmaTransfer& transfer, Payload& payload);
  bool write_host(Node& node, const DmaTransfer& transfer);
  void finish_dma(Node& node, uint32_t item);
  void run_timer(Node& node, uint32_t item);
  void take_submissions(Node& node);
  void ring_doorbell(uint32_t card);
  // Around every call into the firmware: begin waits for the processor and returns the card's time.
  TimeNs begin_turn(Node& node, TimeNs cost_ns);
  void end_turn(Node& node);

  ClusterOptions options_;
  Observer* observer_;
  HostEvents* hosts_;
  emulator::Random jitter_;
  HostMemory memory_;
  PacketPool pool_;
  EventQueue events_;
  Torus torus_;
  uint64_t in_torus_ = 0;  // frames
  VirtualWire wire_;
  emulator::FaultyWire faulty_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<CardPlace> places_;  // by card
  std::vector<Dma> dmas_;
  std::vector<uint32_t> free_dmas_;
  TimeNs now_ns_ = 0;
  uint64_t trace_hash_ = 0;
  ClusterCounts counts_;
};

}  // namespace peal::sim
