// SPDX-License-Identifier: BSD-2-Clause
// One block for all is read once for all, so that pairs go together: nobody gets a piece that is W
// or more after the one that the slowest is at (one more, where a late rank has just come). Those
// from whom nothing has come are waited for as long as the others have something to do, W pieces;
// then these go on without them. Who comes later is the slowest, gets what it lacks by reads of its
// own, and the others wait for it: they need its block as well. docs/decisions/0047
#pragma once

#include "firmware/collective/direct_pair.h"

namespace peal::direct {

// May this piece be read for a pair?
inline bool keeps_pace(const Scope& scope, uint32_t number) {
  Operation& operation = scope.operation;
  if (!is_for_all(operation) || own_state<Exchange>(operation).slowest == 0) return true;
  return number < operation.base + kPieceWindow;
}

// Own blocks may be sent.
void pace_begin(const Scope& scope);
// Something is about to be noted of a pair of which nothing was.
void pace_heard(const Scope& scope);
// The pair has passed pieces, from `before` on; perhaps all. True: others may go on.
bool pace_passed(const Scope& scope, const Pair& pair, uint32_t before, bool over);

}  // namespace peal::direct
