// SPDX-License-Identifier: BSD-2-Clause
// Memory of clusters that are gone, for their thread's next ones. Tests make clusters by the
// thousand, and to clear what was used of their memory costs a tenth of what the faults of fresh
// pages do. Each thread has its own.
#pragma once

#include <cstddef>

#include "emulator/common/zeroed_memory.h"

namespace peal::sim {

// Zeroed memory of at least that many bytes. Throws std::bad_alloc.
emulator::ZeroedMemory take_memory(size_t bytes, emulator::Touched touched);
// Memory from take_memory() for the same bytes and use, of which the first `used` bytes may have
// been written. Who has it no longer must not reach it any more.
void give_memory(emulator::ZeroedMemory memory, emulator::Touched touched, size_t used);

}  // namespace peal::sim
