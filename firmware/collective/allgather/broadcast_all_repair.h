// SPDX-License-Identifier: BSD-2-Clause
// What becomes of a question for blocks of an all-to-all broadcast: the nearest copy is sent again,
// or the question goes on to the parent. docs/decisions/0026
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::broadcast_all {

// Are the blocks of others that have come in the user's memory, or on their way there, and may the
// card read it? Until the operation is over it is the card's; and where nothing more is to come the
// end is not put off for those who ask.
bool reads_result(const Scope& scope);
// Sends what is owed and has landed meanwhile to the children that asked for it. What cannot be
// sent now (no packet, too many repairs) is tried again.
void settle_landed(const Scope& scope);
// Of AlgorithmFunctions.
peal_counter on_nack(const Scope& scope, const peal_wire_header& header, const peal_nack& nack);

}  // namespace peal::broadcast_all
