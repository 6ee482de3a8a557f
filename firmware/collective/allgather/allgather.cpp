// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/allgather/allgather.h"

#include "abi/admin.h"
#include "firmware/host/keys.h"

namespace peal::allgather {

peal_status check(Card& card, const Member& member, const peal_submission& entry,
                  Command* command) {
  if (entry.block_bytes > 0xffffffffu) return PEAL_STATUS_BAD_LENGTH;
  if (entry.block_bytes == 0) return PEAL_STATUS_OK;  // a barrier of sorts: touches no memory
  const uint64_t block = entry.block_bytes;
  const uint64_t total = block * member.membership.ranks;  // below 2^42
  peal_status status = check_range(card, member.context, entry.receive_key, entry.receive_offset,
                                   total, PEAL_ACCESS_WRITE, &command->receive);
  if (status != PEAL_STATUS_OK) return status;
  command->receive_key = entry.receive_key;
  if (!command->in_place) {
    status = check_range(card, member.context, entry.send_key, entry.send_offset, block,
                         PEAL_ACCESS_READ, &command->send);
    command->send_key = entry.send_key;
    return status;
  }
  const uint64_t own = entry.receive_offset + block * member.membership.rank;
  status = check_range(card, member.context, entry.receive_key, own, block, PEAL_ACCESS_READ,
                       &command->send);
  command->send_key = entry.receive_key;
  return status;
}

}  // namespace peal::allgather
