// SPDX-License-Identifier: BSD-2-Clause
// The operation that a packet belongs to: the wire carries 32 bits of its sequence, and the window
// of those that may run now is far narrower.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// Its signature was found to be right. If there is none and `open` says so, an early record. Null
// and *why when there is none, or the sequence is not one that may run now. The packet may prove
// that recycling is over: then what may start starts first, and the member may be gone afterwards
// (null).
Operation* find_operation(Card& card, Member& member, const peal_wire_header& header,
                          const Algorithm& algorithm, bool open, peal_counter* why);

}  // namespace peal
