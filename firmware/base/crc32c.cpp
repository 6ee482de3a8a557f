// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/base/crc32c.h"

#include "firmware/base/crc32c_blocks.h"

namespace peal {

PEAL_CRC_TARGET uint32_t crc32c(uint32_t seed, const void* bytes, size_t length) {
  const auto* at = static_cast<const uint8_t*>(bytes);
  return ~static_cast<uint32_t>(crc32c_steps::sum_bytes(~seed, at, length));
}

}  // namespace peal
