// SPDX-License-Identifier: BSD-2-Clause
// Starts: from the host's entry to its completion.
#pragma once

#include "firmware/queue/network.h"

namespace peal::queue {

[[nodiscard]] inline bool is_start(const peal_submission& entry) {
  return entry.operation == PEAL_OPERATION_START;
}
// One more start of the program, behind those that are outstanding; or why not.
peal_status accept_start(Card& card, ContextId context, const peal_submission& entry);
// The first start is over, with the queue's failure if it has one, and the next may begin.
void end_start(const Scope& scope);

}  // namespace peal::queue
