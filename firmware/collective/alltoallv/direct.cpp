// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/alltoallv/direct.h"

#include "firmware/collective/direct.h"
#include "firmware/operation/parts.h"

namespace peal::direct_alltoallv {
namespace {

// Parts of what is given, then those of the result; in place they are the same.
peal_status check(Card& card, const Member& member, const peal_submission& entry,
                  Command* command) {
  if (entry.send_offset != 0) return PEAL_STATUS_BAD_BOUNDS;
  const uint32_t parts = member.membership.ranks * (command->in_place ? 1u : 2u);
  return parts_check(card, member, entry, parts, command);
}

}  // namespace

constinit const AlgorithmFunctions kFunctions = direct::functions<direct::Own::kOneForEach>(check);

}  // namespace peal::direct_alltoallv
