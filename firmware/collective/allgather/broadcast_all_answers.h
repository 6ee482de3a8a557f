// SPDX-License-Identifier: BSD-2-Clause
// What becomes of a question for blocks of an all-to-all broadcast: they are sent again, or owed,
// or "not yet" is said; and where this card has them no more it asks the parent.
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::broadcast_all {

// Of AlgorithmFunctions.
peal_counter on_nack(const Scope& scope, const peal_wire_header& header, const peal_nack& nack);

}  // namespace peal::broadcast_all
