// SPDX-License-Identifier: BSD-2-Clause
// What a direct exchange asks for: one question for each rank that owes something, with a bit for
// each piece of the pair's window. docs/decisions/0017, 0026, 0051
#pragma once

#include "firmware/card_types.h"
#include "firmware/operation/algorithm.h"

namespace peal::direct {

// Ranks that are asked at a time.
inline constexpr uint32_t kAskedAtOnce = 8;

void chase(const Scope& scope);
// Blocks of this pair's were sent, and have not come: it has sent what comes behind them, or they
// could not be taken. They are asked for soon, and until they have come, whatever is answered.
void note_lost(const Scope& scope, uint32_t way, PieceBits lost);
// The same, and they are asked for at once.
void ask_at_once(const Scope& scope, uint32_t way, PieceBits lost);
// The other asks for pieces up to this one, of which one was not sent. It has sent the piece W
// before that, and all that are before it: which of these has not come is lost, where packets are.
// And where the piece waits for others' (direct_pace.h), they hold up the asker, too: they are
// asked soon, once in a silence. docs/decisions/0101
void note_asked_for(const Scope& scope, uint32_t way, uint32_t number);
// The sender has answered that it has sent this piece.
void on_lost(const Scope& scope, const peal_wire_header& header);
// One of them has come, or the host has posted: what is lost is asked for soon again.
void ask_soon_again(const Scope& scope);

}  // namespace peal::direct
