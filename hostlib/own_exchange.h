// SPDX-License-Identifier: BSD-2-Clause
// The library's own exchanges over a group's cards, as peal_allgather() and peal_alltoall(). They
// need none of the context's requests: whoever has none left would leave the other ranks waiting.
#pragma once

#include <cstddef>

#include "hostlib/handles.h"

namespace peal::host {

// Without the context's lock. One at a time in a group: another one waits.
peal_error own_allgather(peal_group& group, const void* send, void* receive, size_t block_bytes);
peal_error own_alltoall(peal_group& group, const void* send, void* receive, size_t block_bytes);

}  // namespace peal::host
