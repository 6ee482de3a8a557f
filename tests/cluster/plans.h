// SPDX-License-Identifier: BSD-2-Clause
// Small scenarios to start from: one group, one rank per card, everything at its default.
#pragma once

#include <cstdint>

#include "emulator/cluster/run.h"
#include "emulator/cluster/scenario.h"

namespace peal::sim {

inline constexpr OperationPlan kBarrier = {PEAL_OPERATION_BARRIER, PEAL_ALGORITHM_DISSEMINATION,
                                           false, 0};

// Allgathers by all-to-all broadcast and by recursive doubling; broadcasts; all-to-alls.
[[nodiscard]] OperationPlan broadcast(uint32_t bytes, bool in_place = false);
[[nodiscard]] OperationPlan doubling(uint32_t bytes, bool in_place = false);
[[nodiscard]] OperationPlan root_broadcast(uint32_t bytes, uint32_t root);
[[nodiscard]] OperationPlan alltoall(uint32_t bytes, bool in_place = false);
[[nodiscard]] OperationPlan direct(uint32_t bytes, bool in_place = false);
[[nodiscard]] OperationPlan direct_allgather(uint32_t bytes, bool in_place = false);
[[nodiscard]] OperationPlan ring(uint32_t bytes, bool in_place = false);
// Blocks of at most so many bytes.
[[nodiscard]] OperationPlan allgatherv(uint32_t bytes, bool in_place = false);
[[nodiscard]] OperationPlan alltoallv(uint32_t bytes, bool in_place = false);
[[nodiscard]] OperationPlan stepped_alltoallv(uint32_t bytes, bool in_place = false);
// `count` times the operation on `cards` cards with the given depth.
[[nodiscard]] Scenario plan(uint32_t cards, const OperationPlan& operation, uint32_t count,
                            uint32_t depth = 1);
// The same, and the group is left as it is: only the operations' own packets are sent.
[[nodiscard]] Scenario bare_plan(uint32_t cards, const OperationPlan& operation, uint32_t count);
// Sum of the counter over all cards.
[[nodiscard]] uint64_t counted(const Report& report, const char* counter);
// Runs it and gives all findings as text: empty when every check passed.
[[nodiscard]] std::string failures(const Report& report);

// What the cards are built with, from the card itself.
[[nodiscard]] peal_device device();
// Bytes of a piece in a group of that size (docs: P = min(MTU, CHANNEL_BYTES / 2W / N), a multiple
// of 8).
[[nodiscard]] uint32_t piece_bytes(uint32_t ranks);

}  // namespace peal::sim
