// SPDX-License-Identifier: BSD-2-Clause
// What a connection does when its time has come: asks again, sends again, or is given back.
#pragma once

#include "firmware/card_types.h"

namespace peal::p2p {

void on_deadline(Card& card, Connection& connection);

}  // namespace peal::p2p
