// SPDX-License-Identifier: BSD-2-Clause
// Persistent requests that are programs of the card (firmware/queue): which program an operation
// is, what ranks must know of each other for it, and committing it. All programs of a group's
// persistent requests are of one other group of the same ranks, their *company*, which the first of
// them makes and the last one leaves: so a request costs a queue of the card and no membership.
#pragma once

#include <vector>

#include "hostlib/handles.h"

namespace peal::host {

// One rank's part of a buffer.
struct PersistentPart {
  const uint8_t* at = nullptr;
  size_t bytes = 0;
};

// What a request is to do again and again.
struct PersistentOperation {
  peal_operation operation = PEAL_OPERATION_NONE;
  uint32_t root = 0;
  size_t block_bytes = 0;  // 0 where blocks differ
  bool in_place = false;
  const uint8_t* send = nullptr;
  uint8_t* receive = nullptr;
  size_t receive_bytes = 0;
  // By rank, of exchanges by pairs: what is for it, and where what it sends belongs.
  std::vector<PersistentPart> sends;
  std::vector<PersistentPart> receives;
};

// Collective over the group's ranks. `own` is why this rank cannot make the request at all, and
// `purpose` what all of them must mean alike. OK with *made null: all ranks go on and make an
// ordinary operation. Errors are everybody's. Without the context's lock.
peal_error make_program(peal_group& parent, peal_error own, uint32_t purpose,
                        const PersistentOperation& operation, Persistent** made);

}  // namespace peal::host
