// SPDX-License-Identifier: BSD-2-Clause
// Allgather by concurrent all-to-all broadcast (allgather paper, section 4.1.2): every block
// travels down its origin's binomial tree as a hopping packet, forwarded by the cards without
// touching a host. N(N-1) packets a piece.
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::broadcast_all {

void open(const Scope& scope);
// Own pieces may go, and early data may be fetched from the channel.
void post(const Scope& scope);
peal_counter on_data(const Scope& scope, Packet* packet);
// Answers a child's NACK: the block, or not yet. A card that has had the block but has it no more
// (it lies in the user's memory) promises it, asks its own parent, and passes on what comes.
peal_counter on_nack(const Scope& scope, const peal_wire_header& header, const peal_nack& nack);
bool on_dma(const Scope& scope, const TransferDone& done);
void advance(const Scope& scope);
// Asks for what is missing, and for what ranks below were promised.
void chase(const Scope& scope);

}  // namespace peal::broadcast_all
