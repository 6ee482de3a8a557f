// SPDX-License-Identifier: BSD-2-Clause
// What an application does with an operation's memory: it writes all that it sends, and reads all
// that it has received.
#pragma once

#include <cstdint>

#include "tools/peal-perf/side.h"

namespace peal::perf {

// Data of this rank, of this iteration and of no other.
void write_data(const Job& job, Side& side, const Call& call, uint64_t iteration);
// False, with an explanation, where a byte is wrong;
// what lies behind a wrong block is not looked at.
bool read_data(const Job& job, Side& side, const Call& call, uint64_t iteration);

}  // namespace peal::perf
