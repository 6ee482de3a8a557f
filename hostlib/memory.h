// SPDX-License-Identifier: BSD-2-Clause
// The library's own memory that the card may reach, had from a card that is full of what is idle.
#pragma once

#include "hostlib/handles.h"

namespace peal::host {

// The library's own. Where the card has no room for it, what nobody needs any more makes some.
// Under the context's lock.
peal_error allocate_memory(peal_context& context, size_t bytes, Allocation* memory);
// The same without the lock, which is taken only to make room.
peal_error allocate_unlocked(peal_context& context, size_t bytes, Allocation* memory);

}  // namespace peal::host
