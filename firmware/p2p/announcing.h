// SPDX-License-Identifier: BSD-2-Clause
// A sender says that there is a message.
#pragma once

#include "firmware/card_types.h"

namespace peal::p2p {

// With its bytes where it is short and there is a token. The window has a number left for it; that
// it is this message's turn, the caller knows.
void announce(Card& card, Connection& connection, Request& request);

}  // namespace peal::p2p
