// SPDX-License-Identifier: BSD-2-Clause
// What a connection does when its time has come: asks again, sends again, or is given back.
#pragma once

#include "firmware/card_types.h"

namespace peal::p2p {

void on_deadline(Card& card, Connection& connection);
// Ranks that a request waits for though they owe no acknowledgement: a message that does not come,
// a receive that is not posted. Lateness never ends, but a card that has fallen silent is dead.
void watch_awaited(Card& card);
// So that it is looked at.
void expect_awaited(Card& card);

}  // namespace peal::p2p
