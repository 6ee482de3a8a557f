// SPDX-License-Identifier: BSD-2-Clause
// Which algorithm carries out an allgather. Every rank must choose alike from what all ranks know,
// so the table's hash is compared when a group is made, and goes into the signature of every
// packet.
#pragma once

#include <cstdint>

#include "abi/wire.h"
#include "peal/peal.h"

namespace peal::host {

// What a caller may ask for, and what the card then does; its name is the card's (abi/wire.h).
struct AllgatherChoice {
  peal_allgather_algorithm wanted;
  peal_algorithm algorithm;
};
inline constexpr AllgatherChoice kAllgatherChoices[] = {
    {PEAL_ALLGATHER_ALL_TO_ALL_BROADCAST, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST},
    {PEAL_ALLGATHER_RECURSIVE_DOUBLING, PEAL_ALGORITHM_RECURSIVE_DOUBLING}};

struct ChoiceTable {
  uint32_t size = 0;  // ranks
  // AUTO: by the block's size, below.
  peal_allgather_algorithm forced = PEAL_ALLGATHER_AUTO;
  // Blocks up to this many bytes go by recursive doubling: N log2 N packets instead of N (N-1).
  // Larger blocks go by all-to-all broadcast, whose packets are forwarded without touching the
  // host.
  uint64_t doubling_max_bytes = 0;

  [[nodiscard]] peal_algorithm allgather(uint64_t block_bytes) const;
  [[nodiscard]] uint32_t hash() const;
};

// From the parameter, else from `environment` ($PEAL_ALLGATHER_ALGORITHM, may be null), else the
// default table.
peal_error make_choice_table(uint32_t size, peal_allgather_algorithm wanted,
                             const char* environment, ChoiceTable* table);

}  // namespace peal::host
