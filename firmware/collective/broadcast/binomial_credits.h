// SPDX-License-Identifier: BSD-2-Clause
// How far all below have come: credits, that go up the tree and let the root go on.
// docs/decisions/0013
#pragma once

#include "firmware/collective/broadcast/binomial_tree.h"

namespace peal::binomial {

// Notes which pieces are over: here, and for all below.
void pass_pieces(const Scope& scope);
// Tells the parent how far all below have come. False: no packet.
bool tell_credit(const Scope& scope, bool again);
// As long as the root waits for that.
void send_credit(const Scope& scope);
// All behind that hop have the pieces below `credit`. RECEIVED if that is news.
peal_counter take_credit(const Scope& scope, uint32_t hop, uint32_t credit);

}  // namespace peal::binomial
