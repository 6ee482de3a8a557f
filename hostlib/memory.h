// SPDX-License-Identifier: BSD-2-Clause
// The library's own memory that the card may reach, given back without waiting for the card.
#pragma once

#include "hostlib/handles.h"

namespace peal::host {

// What the card still reads goes with the next that is left, or with the context. (Where there is
// none, so do those before.) The thread's text stays. Under the context's lock.
void leave_memory(peal_context& context, const Allocation& memory);
// The same for what peal_alloc() made. Without the lock.
void leave_allocated(peal_context& context, void* memory);

}  // namespace peal::host
