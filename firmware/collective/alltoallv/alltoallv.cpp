// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/alltoallv/alltoallv.h"

#include "firmware/operation/parts.h"

namespace peal::alltoallv {

peal_status check(Card& card, const Member& member, const peal_submission& entry,
                  Command* command) {
  if (entry.send_offset != 0) return PEAL_STATUS_BAD_BOUNDS;
  const uint32_t parts = member.membership.ranks * (command->in_place ? 1u : 2u);
  return parts_check(card, member, entry, parts, command);
}

}  // namespace peal::alltoallv
