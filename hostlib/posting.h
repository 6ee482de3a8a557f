// SPDX-License-Identifier: BSD-2-Clause
// What an operation's entry in the submission ring says, but for which it is: sequence, cookie and
// phase it gets in the ring, when it is posted (rings.h); whose it is, the member, before that.
#pragma once

#include "abi/queue.h"

namespace peal::host {

// The entry itself, so that nothing is copied from one form to another.
using Posting = peal_submission;

}  // namespace peal::host
