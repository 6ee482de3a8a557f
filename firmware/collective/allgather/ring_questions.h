// SPDX-License-Identifier: BSD-2-Clause
// What a rank of a ring asks its left neighbour for, and answers its right one. What is known to be
// lost (ring_order.h) is asked for at once, by name; what may be late is not, but seldom, in one
// question for the edge. A block that the left neighbour lacks itself is asked for by nobody but
// the neighbour that lost it. docs/decisions/0024
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::ring {

// A block of the piece came, the first time or as a repair: asks for what it shows to be lost.
void listen(const Scope& scope, Piece& piece, const peal_wire_header& header);

void chase(const Scope& scope);
peal_counter on_nack(const Scope& scope, const peal_wire_header& header, const peal_nack& nack);

}  // namespace peal::ring
