// SPDX-License-Identifier: BSD-2-Clause
// What every rank of a group posts, once.
#pragma once

#include <cstdint>

#include "abi/wire.h"

namespace peal::sim {

struct OperationPlan {
  uint8_t operation = PEAL_OPERATION_BARRIER;
  uint8_t algorithm = PEAL_ALGORITHM_DISSEMINATION;
  bool in_place = false;
  uint32_t block_bytes = 0;
  uint32_t root = 0;           // a rank; 0 where there is none
  uint32_t lengths = 0;        // of parts: by which draw they differ
  bool place_by_rank = false;  // each rank says for itself whether it is in place
  bool operator==(const OperationPlan&) const = default;
};

}  // namespace peal::sim
