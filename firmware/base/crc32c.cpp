// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/base/crc32c.h"

#include <cstring>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace peal {
namespace {

#if defined(__SSE4_2__)
uint32_t step8(uint32_t crc, uint64_t word) {
  return static_cast<uint32_t>(_mm_crc32_u64(crc, word));
}
uint32_t step1(uint32_t crc, uint8_t byte) { return _mm_crc32_u8(crc, byte); }
#elif defined(__ARM_FEATURE_CRC32)
uint32_t step8(uint32_t crc, uint64_t word) { return __crc32cd(crc, word); }
uint32_t step1(uint32_t crc, uint8_t byte) { return __crc32cb(crc, byte); }
#else
struct Table {
  uint32_t entries[256];
  constexpr Table() : entries{} {
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78u : 0);
      entries[i] = value;
    }
  }
};
constexpr Table kTable;
uint32_t step1(uint32_t crc, uint8_t byte) {
  return (crc >> 8) ^ kTable.entries[(crc ^ byte) & 0xff];
}
uint32_t step8(uint32_t crc, uint64_t word) {
  for (int i = 0; i < 8; ++i) crc = step1(crc, static_cast<uint8_t>(word >> (8 * i)));
  return crc;
}
#endif

}  // namespace

uint32_t crc32c(uint32_t seed, const void* bytes, size_t length) {
  const auto* at = static_cast<const uint8_t*>(bytes);
  uint32_t crc = ~seed;
  for (; length >= 8; length -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    crc = step8(crc, word);
  }
  for (; length > 0; --length, ++at) crc = step1(crc, *at);
  return ~crc;
}

}  // namespace peal
