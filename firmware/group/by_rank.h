// SPDX-License-Identifier: BSD-2-Clause
// What a member keeps of each rank of its group, cut for as many as there are: addresses of ranks
// that are no peers (remote.h), tables of parts (operation/parts.h), pairs of direct exchanges
// (collective/direct_pair.h). All of it lies side by side, so that of a small group it is a page or
// two, and not one for each of these and for each operation. docs/decisions/0095
#pragma once

#include "firmware/card_types.h"

namespace peal {

// The table of parts in that place: as many parts as ranks, of one side or of both. (A group of
// more than kPartRanks has none.)
inline peal_part* part_table_at(Member& member, uint32_t place) {
  auto* const first = reinterpret_cast<peal_part*>(member.by_rank);
  return first + size_t{place} * 2 * member.membership.ranks;
}
inline const peal_part* part_table_at(const Member& member, uint32_t place) {
  return part_table_at(const_cast<Member&>(member), place);
}

// The addresses of the run in that place.
inline peal_peer_address* addresses_at(Member& member, uint32_t place) {
  auto* const first = reinterpret_cast<peal_peer_address*>(
      member.by_rank + CONFIG_PART_TABLES * part_table_bytes(member.membership.ranks));
  return first + size_t{place} * kAddressRun;
}
inline const peal_peer_address* addresses_at(const Member& member, uint32_t place) {
  return addresses_at(const_cast<Member&>(member), place);
}

// The pairs of the operation in that slot.
inline Pairs* pairs_at(Member& member, uint32_t slot) {
  const uint32_t ranks = member.membership.ranks;
  return reinterpret_cast<Pairs*>(member.by_rank + CONFIG_PART_TABLES * part_table_bytes(ranks) +
                                  address_bytes(ranks) + slot * pairs_bytes(ranks));
}

// Whatever number of ranks that is cut for which lies before it.
static_assert(2 * sizeof(peal_part) % alignof(Pairs) == 0);
static_assert(kAddressRun * sizeof(peal_peer_address) % alignof(Pairs) == 0);

}  // namespace peal
