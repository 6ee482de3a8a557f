// SPDX-License-Identifier: BSD-2-Clause
// What the card's entry points do last: operations that ended are completed to the host, what may
// start then starts, and members whose time is over go (group/unsettled.h).
#pragma once

#include "firmware/card_types.h"

namespace peal {

// Something is left to settle.
void settle_all(Card& card);

// Until nothing is left to settle. Nobody may rely on an operation or a member across this.
inline void settle(Card& card) {
  if (card.due.unsettled != 0) settle_all(card);
}

}  // namespace peal
