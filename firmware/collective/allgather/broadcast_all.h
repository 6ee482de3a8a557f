// SPDX-License-Identifier: BSD-2-Clause
// Allgather by concurrent all-to-all broadcast (allgather paper, section 4.1.2): every block
// travels down its origin's binomial tree as a hopping packet, forwarded by the cards without
// touching a host. N(N-1) packets a piece.
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::broadcast_all {

extern const AlgorithmFunctions kFunctions;

}  // namespace peal::broadcast_all
