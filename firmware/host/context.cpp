// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/host/context.h"

#include "firmware/host/keys.h"

namespace peal {

bool context_is_open(const Card& card, ContextId context) {
  return context < CONFIG_CONTEXTS && card.contexts[context].phase == ContextPhase::kOpen;
}

peal_status context_open(Card& card, ContextId* context, ClientId client) {
  for (ContextId id = 0; id < CONFIG_CONTEXTS; ++id) {
    if (card.contexts[id].phase != ContextPhase::kFree) continue;
    card.contexts[id] = {.phase = ContextPhase::kOpen, .client = client, .outstanding = 0};
    *context = id;
    return PEAL_STATUS_OK;
  }
  return PEAL_STATUS_NO_RESOURCES;
}

void context_try_close(Card& card, ContextId context) {
  if (card.contexts[context].phase != ContextPhase::kClosing) return;
  for (const Member& member : card.members) {
    if (member.phase != MemberPhase::kFree && member.context == context) return;
  }
  forget_keys(card, context);
  card.contexts[context] = {};
}

}  // namespace peal
