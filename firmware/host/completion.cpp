// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/host/completion.h"

#include "firmware/host/keys.h"

namespace peal {

void complete_command(Card& card, const Member& member, const Command& command, peal_status status,
                      Rank rank) {
  count(card, status == PEAL_STATUS_OK ? PEAL_COUNTER_OPERATIONS_COMPLETED
                                       : PEAL_COUNTER_OPERATIONS_FAILED);
  let_go_of_keys(card, command);
  Context& context = card.contexts[member.context];
  --context.outstanding;
  if (context.phase != ContextPhase::kOpen) return;  // nobody listens any more
  peal_completion entry = {};
  entry.cookie = command.cookie;
  entry.sequence = command.sequence;
  entry.card_ns = card.now - command.accepted_ns;
  entry.member = member.membership.handle;
  entry.failed_rank = rank;
  entry.status = static_cast<uint16_t>(status);
  entry.operation = command.operation;
  card.port->complete(member.context, entry);
}

void complete_refused(Card& card, ContextId context, const peal_submission& entry,
                      peal_status status) {
  count(card, PEAL_COUNTER_COMMANDS_REFUSED);
  peal_completion refusal = {};
  refusal.cookie = entry.cookie;
  refusal.sequence = entry.sequence;
  refusal.member = entry.member;
  refusal.failed_rank = PEAL_NO_RANK;
  refusal.status = static_cast<uint16_t>(status);
  refusal.operation = entry.operation;
  card.port->complete(context, refusal);
}

}  // namespace peal
