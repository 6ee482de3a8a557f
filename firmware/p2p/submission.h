// SPDX-License-Identifier: BSD-2-Clause
// Point-to-point as a host asks for it: entries of the submission ring, and their completions.
#pragma once

#include "firmware/card_types.h"
#include "firmware/p2p/p2p.h"

namespace peal::p2p {

[[nodiscard]] inline bool is_submission(const peal_submission& entry) {
  return entry.operation >= PEAL_OPERATION_SEND && entry.operation <= PEAL_OPERATION_FENCE;
}
// PEAL_STATUS_OK: accepted. Nothing has changed otherwise.
peal_status submit(Card& card, ContextId context, const peal_submission& entry);
// A request of the host's is over.
void complete(Card& card, const Request& over);

}  // namespace peal::p2p
