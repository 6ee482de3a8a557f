// SPDX-License-Identifier: BSD-2-Clause
// Contexts: who may use the card. A closing one is over when no DMA refers to its memory any more.
#pragma once

#include "firmware/card_types.h"

namespace peal {

[[nodiscard]] inline bool context_is_open(const Card& card, ContextId context) {
  return context < CONFIG_CONTEXTS && card.contexts[context].phase == ContextPhase::kOpen;
}
// NO_RESOURCES when the slot is taken or there is none such.
peal_status context_open(Card& card, ContextId context, ClientId client);
// A closing context is over if nothing of it is under way; its keys go then.
void context_close(Card& card, ContextId context);
inline void context_try_close(Card& card, ContextId context) {
  if (card.contexts[context].phase == ContextPhase::kClosing) context_close(card, context);
}

}  // namespace peal
