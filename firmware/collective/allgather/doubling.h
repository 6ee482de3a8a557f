// SPDX-License-Identifier: BSD-2-Clause
// Allgather by recursive doubling, Bruck's order for sizes that are no power of two: ⌈log2 N⌉
// exchanges of ever more blocks, combined in the card's staging buffer where they fit (allgather
// paper, section 4.1.2), else in the channel. Each piece of a long block is an exchange of its own,
// W of them under way.
#pragma once

#include "firmware/card_types.h"

namespace peal::doubling {

peal_counter on_data(const Scope& scope, Packet* packet);
void on_own_read(const Scope& scope, Packet* packet, uint32_t piece);
void on_own_staged(const Scope& scope, uint32_t piece);
// A write into the image is done; `step` is the record's aux.
void on_landed(const Scope& scope, uint32_t piece, uint32_t step);
void advance(const Scope& scope);
void chase(const Scope& scope);
peal_counter on_nack(const Scope& scope, const peal_wire_header& header, const peal_nack& nack);

}  // namespace peal::doubling
