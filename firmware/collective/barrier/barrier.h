// SPDX-License-Identifier: BSD-2-Clause
// Barrier by dissemination (Hensgen, Finkel, Manber; the paper's section 4.2): the operation around
// group/dissemination.h. The destroy of a group is one too.
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::barrier {

peal_status check(Card& card, const Member& member, const peal_submission& entry, Command* command);
void open(const Scope& scope);
void post(const Scope& scope);
peal_counter on_signal(const Scope& scope, const peal_wire_header& header);
peal_counter on_nack(const Scope& scope, const peal_wire_header& header, const peal_nack& nack);
void advance(const Scope& scope);
void chase(const Scope& scope);

}  // namespace peal::barrier
