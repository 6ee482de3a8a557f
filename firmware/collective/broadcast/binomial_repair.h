// SPDX-License-Identifier: BSD-2-Clause
// Fragments of a broadcast that are sent again to those below, from where they lie.
// docs/decisions/0061, 0063
#pragma once

#include "firmware/collective/broadcast/binomial_tree.h"

namespace peal::binomial {

// What becomes of a question.
enum class Answer : uint8_t { kRepaired, kHeld, kNotYet };

// Sends what was asked for and lies there. kHeld: not all of that can be sent now.
Answer repair_fragments(const Scope& scope, uint32_t number, uint64_t fragments, uint8_t hop);
// Has come and gone on, but cannot be repaired before it lies somewhere: it is sent then.
void promise(const Scope& scope, uint32_t number, uint64_t fragments, uint8_t hop);
// It lies where it can be repaired from.
void on_there(const Scope& scope, uint32_t number, uint32_t fragment, uint32_t Kept::*where);

}  // namespace peal::binomial
