// SPDX-License-Identifier: BSD-2-Clause
// Whom programs wait for. A counter that one rank tells is awaited of that rank: if its card has
// fallen silent, the start ends and names it. (A counter that any rank may tell is awaited of
// nobody; tasks that are under way are watched by whoever carries them.)
#pragma once

#include "firmware/card_types.h"

namespace peal::queue {

// A start was accepted: from now on there are looks at what is awaited, until all are over.
void expect_looks(Card& card);
// It is time for one.
void watch_awaited(Card& card);

}  // namespace peal::queue
