// SPDX-License-Identifier: BSD-2-Clause
// Blocks of an all-to-all broadcast that are sent again: the nearest copy, and what is owed to
// those who asked. docs/decisions/0026
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::broadcast_all {

// Are the blocks of others that have come in the user's memory, or on their way there, and may the
// card read it? Until the operation is over it is the card's; and where nothing more is to come the
// end is not put off for those who ask.
bool reads_result(const Scope& scope);
// Is no block of the piece on its way there?
bool has_landed(const Operation& operation, const Piece& piece);
// Sends the origin's block to the child that asked, if this card has it and may. False if not.
bool repair_block(const Scope& scope, uint32_t number, Rank origin, const peal_peer_address& child);
// Sends what is owed and has landed meanwhile to the children that asked for it. What cannot be
// sent now (no packet, too many repairs) is tried again.
void settle_landed(const Scope& scope);

}  // namespace peal::broadcast_all
