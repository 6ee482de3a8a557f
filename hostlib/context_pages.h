// SPDX-License-Identifier: BSD-2-Clause
// The memory of a context: itself, a place for one group, and its requests, from the beginning of a
// page on. Of their memory what ends an operation of that group touches only that page: behind work
// that takes longer than the caches remember, each page costs a walk through tables that no cache
// holds. docs/decisions/0070
#pragma once

#include "hostlib/handles.h"

namespace peal::host {

// For that context. The first has the place beside it, and so has the next one when that is gone;
// others have memory of their own. For any thread, and without the context's lock.
GroupPointer make_group(peal_context& context);

// Makes them, behind that place: at most PEAL_RING_ENTRIES_MAX, once. They go with the context.
peal_request* make_requests(peal_context& context, uint32_t count);

}  // namespace peal::host
