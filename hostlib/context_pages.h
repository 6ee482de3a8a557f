// SPDX-License-Identifier: BSD-2-Clause
// The memory of a context: itself, room for one group, and its requests, from the beginning of a
// page on. What begins and ends an operation of that group touches no other page of the program's
// memory: behind work that takes longer than the caches remember, each page costs a walk through
// tables that no cache holds. docs/decisions/0070
#pragma once

#include "hostlib/handles.h"

namespace peal::host {

// For that context. The first has the room beside it, and so has the next one when that is gone;
// others have memory of their own. For any thread, and without the context's lock.
GroupPointer make_group(peal_context& context);

// Makes them, behind that room: at most PEAL_RING_ENTRIES_MAX. They go with the context.
peal_request* make_requests(peal_context& context, uint32_t count);

}  // namespace peal::host
