// SPDX-License-Identifier: BSD-2-Clause
// A submission entry, as the host wrote it, becomes a command or a named refusal.
// Nothing here changes anything.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// OK and *command filled (accepted_ns excepted), or why not.
// *member is set when the handle was good.
peal_status check_command(Card& card, ContextId context, const peal_submission& entry,
                          Member** member, Command* command);

}  // namespace peal
