// SPDX-License-Identifier: BSD-2-Clause
// Data from an image: from staging while it is held, else from what the channel retains. From the
// user's buffers only as long as the operation is not over: then they are the user's again. Repairs
// are bounded for the card as a whole.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// May the card send one repair now? Counted when not; its receiver asks again.
[[nodiscard]] bool may_repair(Card& card);

// A stretch of a piece's image.
struct ImagePart {
  uint32_t piece;
  uint32_t position;
  uint32_t offset;  // bytes behind the beginning of the position
  uint32_t bytes;
};

// Where its packet's header says it belongs.
struct DataPlace {
  uint16_t origin;
  uint8_t hop;
  uint8_t fragment;
};

// Sends a part to a peer (its entry), the first time or again. False (counted) when a packet or DMA
// record could not be had.
bool send_from_image(const Scope& scope, const ImagePart& part, const DataPlace& place, uint32_t to,
                     bool repair);

// Sends a part again that lies in the user's memory, where the operation, which waits for it, still
// needs it: in the place of its origin, which is the part's position. Not empty. False as above.
bool repair_from_user(const Scope& scope, const ImagePart& part, const DataPlace& place,
                      uint32_t to);

}  // namespace peal
