// SPDX-License-Identifier: BSD-2-Clause
// A refusal ends one sequence number on every rank. It is flooded once over the 2⌈log2 N⌉ peers,
// and told again to whoever still asks, so that a lost flood needs no acknowledgement.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// This operation cannot succeed: ranks disagree, or `rank` could not do its part. Tells the peers.
// One that is completed here keeps its right result, but remembers: whoever still asks it for data
// that it has not got any more must hear the verdict, not "not yet".
void refuse(const Scope& scope, peal_status status, Rank rank);
// Tells one peer, or by kRemoteEntry this rank.
void tell_refusal(const Scope& scope, uint32_t entry, Rank rank);

}  // namespace peal
