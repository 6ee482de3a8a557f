// SPDX-License-Identifier: BSD-2-Clause
// How much the processor's caches hold.
#pragma once

#include <cstdint>
#include <string>

namespace peal::emulator {

// Bytes of the last cache that Linux tells of in `folder` (sysfs, of a processor), 0 where it tells
// of none.
uint64_t last_cache_bytes(const std::string& folder = "/sys/devices/system/cpu/cpu0/cache");

}  // namespace peal::emulator
