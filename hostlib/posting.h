// SPDX-License-Identifier: BSD-2-Clause
// What an operation's entry in the submission ring says, but for whose and which it is: member,
// sequence, cookie and phase are written when it is posted (rings.h).
#pragma once

#include "abi/queue.h"

namespace peal::host {

// The entry itself, so that nothing is copied from one form to another.
using Posting = peal_submission;

}  // namespace peal::host
