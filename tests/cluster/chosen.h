// SPDX-License-Identifier: BSD-2-Clause
// An operation as libpeal would post it when nobody names an algorithm.
#pragma once

#include <cstdint>

#include "emulator/cluster/operation_plan.h"

namespace peal::sim {

// By the default table, for a group of so many ranks and blocks of so many bytes (at most, where
// they differ). A broadcast is from rank 0.
[[nodiscard]] OperationPlan chosen(peal_operation operation, uint32_t ranks, uint32_t bytes);

}  // namespace peal::sim
