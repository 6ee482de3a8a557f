// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/host/context.h"

#include "firmware/host/keys.h"

namespace peal {
namespace {

// Whether there are programs of the context. (Of queues that were never used none is touched.)
bool has_queues(const Card& card, ContextId context) {
  if (card.queues.in_use == 0) return false;
  for (const queue::Queue& queue : card.queues.queues) {
    if (queue.in_use && queue.context == context) return true;
  }
  return false;
}

}  // namespace

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
  if (has_queues(card, context)) return;
  forget_keys(card, context);
  card.contexts[context] = {};
}

}  // namespace peal
