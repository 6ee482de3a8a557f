// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/common/cache_size.h"

#include <fstream>

namespace peal::emulator {

uint64_t last_cache_bytes(const std::string& folder) {
  uint32_t last_level = 0;
  uint64_t bytes = 0;
  for (uint32_t i = 0;; i++) {
    const std::string cache = folder + "/index" + std::to_string(i);
    uint32_t level = 0;
    uint64_t kib = 0;
    char unit = 0;
    std::ifstream(cache + "/level") >> level;
    std::ifstream(cache + "/size") >> kib >> unit;
    if (level == 0 || unit != 'K') return bytes;
    if (level < last_level) continue;
    last_level = level;
    bytes = kib << 10;
  }
}

}  // namespace peal::emulator
