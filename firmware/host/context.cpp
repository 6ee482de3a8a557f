// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/host/context.h"

#include "firmware/host/keys.h"

namespace peal {

peal_status context_open(Card& card, ContextId context, ClientId client) {
  if (context >= CONFIG_CONTEXTS || card.contexts[context].phase != ContextPhase::kFree)
    return PEAL_STATUS_NO_RESOURCES;
  card.contexts[context] = {.phase = ContextPhase::kOpen, .client = client, .outstanding = 0};
  return PEAL_STATUS_OK;
}

void context_close(Card& card, ContextId context) {
  for (const Member& member : members_of(card)) {
    if (member.phase != MemberPhase::kFree && member.context == context) return;
  }
  // Programs whose tasks are not over yet.
  for (const queue::Queue& queue : card.queues.queues) {
    if (queue.in_use && queue.context == context) return;
  }
  forget_keys(card, context);
  card.contexts[context] = {};
}

}  // namespace peal
