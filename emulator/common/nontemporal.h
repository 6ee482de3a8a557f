// SPDX-License-Identifier: BSD-2-Clause
// A copy whose writes go to memory past the processor's caches (non-temporal stores): lines that
// nobody has in a cache are not fetched first, and drive nothing out.
#pragma once

#include <cstdint>

namespace peal::emulator {

// Has the processor such stores, and has somebody said here which?
#if defined(__SSE2__)
inline constexpr bool kHasNontemporal = true;
#else
inline constexpr bool kHasNontemporal = false;
#endif

// As memcpy(), and as visible to whoever sees a later store of the caller's. Without such stores:
// memcpy().
void copy_nontemporal(uint8_t* to, const uint8_t* from, uint32_t bytes);

}  // namespace peal::emulator
