// SPDX-License-Identifier: BSD-2-Clause
// Tables of parts: where each rank's block lies, and how long it is (struct peal_part: counts and
// displacements of MPI). They lie in host memory; an operation reads its table once, when it runs,
// into a place on the card (part_places.h), checks it there and believes the copy, until it is over
// for the host. docs/decisions/0020
#pragma once

#include "firmware/card_types.h"
#include "firmware/group/by_rank.h"
#include "firmware/operation/algorithm.h"

namespace peal {

// The command's table of so many parts, and the regions where they lie: OK, or why not. Also: there
// are too many ranks for a place, or a length where none belongs.
peal_status parts_check(Card& card, const Member& member, const peal_submission& entry,
                        uint32_t parts, Command* command);

inline bool parts_are_known(const Operation& operation) {
  return operation.parts_phase == PartsPhase::kKnown;
}
inline const peal_part* parts_of(const Member& member, const Operation& operation) {
  return part_table_at(member, operation.parts_place);
}

// Begins to read the table, if it is the operation's turn and there is a place. What comes is an
// on_dma() with this step, which goes on in parts_on_read().
void parts_read(const Scope& scope, uint8_t step);
// True when all has come: they are known from now on.
[[nodiscard]] bool parts_on_read(const Scope& scope, uint8_t step);

// Does this part lie in the key's memory, whose access was looked at before?
bool part_is_good(Card& card, const Member& member, uint32_t key, uint64_t offset, uint64_t bytes);

}  // namespace peal
