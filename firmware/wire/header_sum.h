// SPDX-License-Identifier: BSD-2-Clause
// The sum of a header, its own field taken as zero.
#pragma once

#include <cstddef>

#include "abi/wire.h"
#include "firmware/base/crc32c_steps.h"

namespace peal {

inline uint32_t header_sum(const peal_wire_header& header) {
  using namespace crc32c_steps;
  constexpr size_t kSum = offsetof(peal_wire_header, header_crc);
  static_assert(kSum == 16 && sizeof(header) == 64);
  const auto* at = reinterpret_cast<const uint8_t*>(&header);
  uint64_t crc = step8(step8(0xffffffff, word_at(at)), word_at(at + 8));
  crc = step8(crc, word_at(at + kSum) & 0xffffffff00000000);  // (bytes of a word rise)
  crc = step8(step8(crc, word_at(at + 24)), word_at(at + 32));
  crc = step8(step8(crc, word_at(at + 40)), word_at(at + 48));
  return ~static_cast<uint32_t>(step8(crc, word_at(at + 56)));
}

}  // namespace peal
