// SPDX-License-Identifier: BSD-2-Clause
// What an all-to-all broadcast asks its neighbours above for, and when. docs/decisions/0026, 0053,
// 0058
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::broadcast_all {

// What one question names may be so many blocks.
inline constexpr uint32_t kAskedMost = 64;

// Of AlgorithmFunctions.
void chase(const Scope& scope);
// A record without post asks for what somebody below wants.
void want(const Scope& scope);
// Somebody asks for an own piece that may not begin yet: it has had all of the first piece that is
// not complete here (0003), so what is missing of that was sent, and is lost, most likely. It is
// asked for at once, whatever was promised; not while it may lie in a queue. docs/decisions/0058
void ask_for_what_holds_up(const Scope& scope);
// Is this rank late, as far as silence has taught here? Whoever asks for its block is told so.
[[nodiscard]] bool is_taken_for_late(const Scope& scope, Rank origin);
// Asks the parent for a block that somebody below lacks, and that this card has no more.
void relay_question(const Scope& scope, uint32_t number, Rank origin);

}  // namespace peal::broadcast_all
