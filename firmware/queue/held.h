// SPDX-License-Identifier: BSD-2-Clause
// Puts that have gates of their own: before a closed one a put is held, and its queue goes on. Its
// descriptor stays in the cache. docs/decisions/0048
#pragma once

#include "firmware/queue/tasks.h"

namespace peal::queue {

// The put with this index, which is next. kYes: it is issued, or held; kWaits where it is neither,
// for the want of a task or of a place.
[[nodiscard]] Issued issue_or_hold(const Scope& scope, uint32_t index, const peal_descriptor& put);

// Issues those held whose gates are open, in their order, as far as the quota goes. Not kYes: why
// one of them could not be.
[[nodiscard]] Issued issue_held(const Scope& scope, uint32_t* quota);

}  // namespace peal::queue
