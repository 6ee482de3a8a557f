// SPDX-License-Identifier: BSD-2-Clause
// CRC32C (Castagnoli, RFC 3720 appendix B.4), by the processor's instruction where it has one.
// Standard initial value and final inversion;
// pass the previous result as `seed` to go on, 0 to start.
#pragma once

#include <cstddef>
#include <cstdint>

namespace peal {

uint32_t crc32c(uint32_t seed, const void* bytes, size_t length);

}  // namespace peal
