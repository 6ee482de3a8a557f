// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/alltoall/alltoall.h"

#include "abi/admin.h"
#include "firmware/host/keys.h"

namespace peal::alltoall {

peal_status check(Card& card, const Member& member, const peal_submission& entry,
                  Command* command) {
  if (entry.block_bytes > 0xffffffffu) return PEAL_STATUS_BAD_LENGTH;
  if (entry.block_bytes == 0) return PEAL_STATUS_OK;  // a barrier of sorts: touches no memory
  const uint64_t total = entry.block_bytes * member.membership.ranks;  // below 2^42
  const peal_status status =
      check_range(card, member.context, entry.receive_key, entry.receive_offset, total,
                  PEAL_ACCESS_WRITE, &command->receive);
  if (status != PEAL_STATUS_OK) return status;
  command->receive_key = entry.receive_key;
  const bool in_place = command->in_place;
  command->send_key = in_place ? entry.receive_key : entry.send_key;
  return check_range(card, member.context, command->send_key,
                     in_place ? entry.receive_offset : entry.send_offset, total, PEAL_ACCESS_READ,
                     &command->send);
}

}  // namespace peal::alltoall
