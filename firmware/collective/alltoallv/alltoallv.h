// SPDX-License-Identifier: BSD-2-Clause
// What all alltoallvs ask of a submission.
#pragma once

#include "firmware/card_types.h"

namespace peal::alltoallv {

// A table of parts: those of what is given, then those of the result; in place they are the same.
peal_status check(Card& card, const Member& member, const peal_submission& entry, Command* command);

}  // namespace peal::alltoallv
