// SPDX-License-Identifier: BSD-2-Clause
// Who has gone on is not late. A rank begins an operation when it is over with the one before, or,
// where programs have several under way, with the one that many before. What it owes of those that
// it is over with is lost. docs/decisions/0076
#pragma once

#include "firmware/card_types.h"

namespace peal::direct {

// The other has begun this operation, which this rank's host has not posted. Notes what it owes of
// operations of which that says that it is over with them.
void note_gone_on(const Scope& scope, uint32_t way);

}  // namespace peal::direct
