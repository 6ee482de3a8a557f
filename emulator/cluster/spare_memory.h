// SPDX-License-Identifier: BSD-2-Clause
// Memory of clusters that are gone, for their thread's next ones. Tests make clusters by the
// thousand, and to clear what was used of their memory costs a tenth of what the faults of fresh
// pages do. Each thread has its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/common/zeroed_memory.h"

namespace peal::sim {

// What is in memory that was used before: clearing costs as much as writing all of it.
enum class Contents : uint8_t { kZero, kAny };

// Memory of at least that many bytes. Throws std::bad_alloc.
emulator::ZeroedMemory take_memory(size_t bytes, emulator::Touched touched,
                                   Contents contents = Contents::kZero);
// Memory from take_memory() for the same bytes, use and contents, of which the first `used` bytes
// may have been written. Who has it no longer must not reach it any more.
void give_memory(emulator::ZeroedMemory memory, emulator::Touched touched, size_t used,
                 Contents contents = Contents::kZero);

}  // namespace peal::sim
