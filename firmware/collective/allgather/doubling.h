// SPDX-License-Identifier: BSD-2-Clause
// Allgather by recursive doubling, Bruck's order for sizes that are no power of two: ⌈log2 N⌉
// exchanges of ever more blocks, combined in the card's staging buffer where they fit (allgather
// paper, section 4.1.2), else in the channel. Each piece of a long block is an exchange of its own,
// W of them under way.
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::doubling {

void open(const Scope& scope);
void post(const Scope& scope);
peal_counter on_data(const Scope& scope, Packet* packet);
peal_counter on_nack(const Scope& scope, const peal_wire_header& header, const peal_nack& nack);
bool on_dma(const Scope& scope, const TransferDone& done);
void advance(const Scope& scope);
void chase(const Scope& scope);

}  // namespace peal::doubling
