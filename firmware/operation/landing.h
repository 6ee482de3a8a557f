// SPDX-License-Identifier: BSD-2-Clause
// Blocks that wait in the packets that brought them (group/early.h) go to the user once there is
// room for them there.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// How an algorithm's blocks land.
struct Landing {
  uint8_t step;  // where the transfers go on
  // May the origin's block of the piece be written to the user now? Null: once the host has posted.
  bool (*is_free)(const Scope& scope, uint32_t number, Rank origin);
  // Where in the user's memory it goes.
  HostAddress (*place_of)(const Scope& scope, uint32_t number, Rank origin);
  // So many bytes of it are on their way; null: nobody wants to know.
  void (*landed)(const Scope& scope, uint32_t number, Rank origin, uint32_t bytes);
};

// As many as may be under way; earlier pieces first, since the window waits for them.
void land_early(const Scope& scope, const Landing& landing);
// Those that wait in this record of a piece. False: there is no DMA record.
bool land_waiting(const Scope& scope, Piece& piece, const Landing& landing);

}  // namespace peal
