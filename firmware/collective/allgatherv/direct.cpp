// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/allgatherv/direct.h"

#include "firmware/collective/direct.h"
#include "firmware/operation/parts.h"

namespace peal::direct_allgatherv {
namespace {

// Parts of the result; the own one says how much is sent from the send buffer.
peal_status check(Card& card, const Member& member, const peal_submission& entry,
                  Command* command) {
  const peal_status status = parts_check(card, member, entry, member.membership.ranks, command);
  command->send.offset = command->in_place ? 0 : entry.send_offset;
  return status;
}

}  // namespace

constinit const AlgorithmFunctions kFunctions = direct::functions<direct::Own::kOneForAll>(check);

}  // namespace peal::direct_allgatherv
