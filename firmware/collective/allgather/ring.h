// SPDX-License-Identifier: BSD-2-Clause
// Allgather by a ring (allgather over RDMA, section 3: Mamidala, Vishnu, Panda; allgather paper,
// section 3): every block goes from its origin to the right neighbour, and on from card to card
// N - 1 times, each packet as it arrives. N(N-1) packets a piece, all of them between neighbours:
// two links a card, whatever N is. docs/decisions/0024
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::ring {

extern const AlgorithmFunctions kFunctions;

}  // namespace peal::ring
