// SPDX-License-Identifier: BSD-2-Clause
// Contexts and memory keys: who may use the card, and which memory it may touch for them. A closing
// context is over when no DMA refers to its memory any more.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// The context closes for good if nothing of it is under way.
void context_try_close(Card& card, ContextId context);

}  // namespace peal
