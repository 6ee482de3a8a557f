// SPDX-License-Identifier: BSD-2-Clause
// Maps a context window (abi/window.h) and checks what the card wrote into it before anybody relies
// on it.
#pragma once

#include "hostlib/transport.h"

namespace peal::host {

// Maps `bytes` of `fd` from `offset`: the card's page read-only, the rest for both.
peal_error map_window(int fd, uint64_t offset, size_t bytes, Window* window);
// Directory, versions, ring sizes and places; fills window->entries.
peal_error check_window(Window* window);
void unmap_window(Window* window);

}  // namespace peal::host
