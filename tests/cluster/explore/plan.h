// SPDX-License-Identifier: BSD-2-Clause
// What is explored: an operation or a few, and how many packets' fates are chosen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "abi/queue.h"
#include "emulator/cluster/blocks.h"

namespace peal::explore {

inline constexpr uint32_t kCardsMax = 4;

inline bool is_in_place(const peal_submission& entry) {
  return (entry.flags & PEAL_SUBMIT_IN_PLACE) != 0;
}

struct Plan {
  std::string name;
  uint32_t cards;
  std::vector<peal_submission> operations;  // opcode, algorithm, flags and block_bytes of each
  uint8_t explore_from;                     // packets count from the first of this operation on
  bool late;                    // the last rank posts when nothing is in flight any more
  uint32_t packets;             // of each card
  uint32_t last;                // of the last card: those, or fewer
  uint32_t timers;              // acts that let time pass, at most
  bool whole;                   // the first packets, however many runs it takes
  uint32_t sent_packets = 0;    // that a card may keep when it has sent them
  uint32_t packet_buffers = 0;  // what its port says
  uint32_t before = 0;          // packets that a card sends before those, and that all arrive

  [[nodiscard]] sim::Blocks blocks(uint32_t sequence, uint32_t rank) const {
    sim::OperationPlan plan;
    plan.operation = operations[sequence].operation;
    plan.in_place = is_in_place(operations[sequence]);
    plan.root = operations[sequence].root;
    plan.block_bytes = static_cast<uint32_t>(operations[sequence].block_bytes);
    return {plan, cards, rank};
  }
  [[nodiscard]] uint32_t packets_of(uint32_t card) const {
    return card + 1 == cards ? std::min(packets, last) : packets;
  }
};

// All of them; without the number of packets, which grows. Deep: also those of millions of runs.
std::vector<Plan> plans(bool deep);

}  // namespace peal::explore
