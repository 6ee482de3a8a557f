// SPDX-License-Identifier: BSD-2-Clause
// What everything costs in virtual time, in the manner of LogGP (Alexandrov et al.: latency,
// overhead, gap per message, gap per byte), with the card's processor and its DMA engine added. A
// model is a JSON file of these names; tools/peal-sim/models/ holds some.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "emulator/cluster/sim_time.h"
#include "emulator/cluster/torus.h"

namespace peal::sim {

struct CostModel {
  // The wire.
  TimeNs wire_latency_ns = 600;     // L: first bit in to first bit out, switch included
  TimeNs packet_gap_ns = 20;        // g: least distance of two packets on a link
  uint64_t byte_gap_ps = 80;        // G: 100 Gbit/s
  uint32_t frame_extra_bytes = 24;  // preamble, frame check sequence, gap between frames
  // Between the cards: a switch without limits of its own, or a torus of so many cards in each
  // dimension, whose links are as fast as those of the cards.
  Torus::Size torus = {};
  TimeNs hop_ns = 0;  // from link to link
  // The card's processor: one event at a time, first come, first served.
  TimeNs packet_ns = 100;      // o: a packet taken in
  TimeNs send_ns = 50;         // o: a packet sent
  TimeNs submission_ns = 100;  // an entry read and checked
  TimeNs dma_event_ns = 50;    // a finished DMA looked at
  TimeNs timer_ns = 50;        // a timer run
  // The DMA engine: one transfer at a time, or, where it is duplex, one each way; completions out
  // of order by up to the jitter.
  TimeNs dma_latency_ns = 400;
  TimeNs dma_gap_ns = 10;
  uint64_t dma_byte_gap_ps = 60;
  TimeNs dma_jitter_ns = 0;
  uint64_t dma_duplex = 0;  // 1: reads and writes do not wait for each other
  // The host.
  TimeNs doorbell_ns = 300;    // from the store to the card's reading the entry
  TimeNs completion_ns = 300;  // from the card's write to the host's seeing it
  TimeNs post_ns = 100;        // between two posts of one process
  // What its processor pays, where hosts are played that take part; cards do not look at these.
  TimeNs message_ns = 0;        // o: a message sent, or one received
  TimeNs register_ns = 0;       // a registration of memory,
  TimeNs register_page_ns = 0;  // and each of its pages of 4 KiB
  TimeNs deregister_ns = 0;     // given back
  TimeNs enqueue_ns = 0;        // a descriptor written by the host, where it writes them anew
};

// Reads a model from JSON text; names that it does not hold keep their values. Empty on success,
// else what was wrong.
[[nodiscard]] std::string parse_cost_model(std::string_view json, CostModel* model);
// Whether so many cards fit the model's network; empty if so.
[[nodiscard]] std::string network_problem(const CostModel& model, uint64_t cards);
[[nodiscard]] std::string load_cost_model(const std::string& path, CostModel* model);

}  // namespace peal::sim
