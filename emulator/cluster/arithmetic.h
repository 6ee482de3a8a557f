// SPDX-License-Identifier: BSD-2-Clause
// How many packets an operation takes when nothing is lost, late or asked for twice, from the
// algorithms alone (docs/wire-format.md): what the packets of a run are measured by.
#pragma once

#include <cstdint>
#include <vector>

#include "abi/window.h"
#include "emulator/cluster/scenario.h"

namespace peal::sim {

// What of a card's sizes decides it.
struct CardShape {
  uint32_t mtu_bytes = 0;
  uint32_t image_bytes = 0;
  uint32_t channels = 0;      // K
  uint32_t piece_window = 0;  // W
};
// The channels are 2W images each; behind those of all lies a page for short ones.
[[nodiscard]] CardShape shape_of(const peal_device& device);

// By which algorithms an operation is done; first, what is taken when nobody says.
[[nodiscard]] std::vector<uint32_t> algorithms_of(uint32_t operation);
// Those that may be in a group of so many ranks.
[[nodiscard]] std::vector<uint32_t> algorithms_of(uint32_t operation, uint32_t ranks);
[[nodiscard]] bool may_run(uint32_t operation, uint32_t algorithm, uint32_t ranks);
[[nodiscard]] uint32_t remembered_addresses();     // of ranks, on a card
[[nodiscard]] uint32_t parked_operations();        // of a group, on a card, beside the K that run
[[nodiscard]] uint32_t requests_at_once();         // of point-to-point, by a card's hosts
[[nodiscard]] uint32_t program_counters();         // of a program, on a card
[[nodiscard]] uint32_t program_starts();           // that may be outstanding, of a program
[[nodiscard]] uint32_t rounds_of(uint32_t ranks);  // ceil(log2(ranks))
// Of the whole group together.
[[nodiscard]] uint64_t needed_packets(const CardShape& card, uint32_t ranks,
                                      const OperationPlan& operation);
// Who sends without having heard anything: all ranks, where it is complete only where every rank
// has started it, or one, its root.
inline constexpr uint32_t kEverybody = ~uint32_t{0};
[[nodiscard]] uint32_t beginner_of(const OperationPlan& operation);
// Of recycling, when operations are over that these begin. An epoch in whose second half one is
// everybody's takes none; any other a packet of each rank but the root of its last, which hears of
// all, and one for each but it again where another begins the epoch after next.
[[nodiscard]] uint64_t recycling_packets(const CardShape& card, uint32_t ranks,
                                         const std::vector<uint32_t>& beginners);

}  // namespace peal::sim
