// SPDX-License-Identifier: BSD-2-Clause
// CRC32C by words, with the processor's instructions where it has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace peal::crc32c_steps {

// What a sum becomes behind a bit that is zero.
constexpr uint32_t behind_bit(uint32_t sum) {
  return (sum >> 1) ^ ((sum & 1) != 0 ? 0x82f63b78u : 0);
}
// Behind a byte that is zero, of which only the lowest eight bits are given.
constexpr uint32_t behind_byte(uint32_t bits) {
  for (int i = 0; i < 8; ++i) bits = behind_bit(bits);
  return bits;
}

// (Sums are held in 64 bits, as the instructions have them.)
#if defined(__SSE4_2__)
inline constexpr bool kByInstruction = true;
inline uint64_t step8(uint64_t crc, uint64_t word) { return _mm_crc32_u64(crc, word); }
inline uint64_t step4(uint64_t crc, uint32_t word) {
  return _mm_crc32_u32(static_cast<uint32_t>(crc), word);
}
inline uint64_t step1(uint64_t crc, uint8_t byte) {
  return _mm_crc32_u8(static_cast<uint32_t>(crc), byte);
}
#elif defined(__ARM_FEATURE_CRC32)
inline constexpr bool kByInstruction = true;
inline uint64_t step8(uint64_t crc, uint64_t word) {
  return __crc32cd(static_cast<uint32_t>(crc), word);
}
inline uint64_t step4(uint64_t crc, uint32_t word) {
  return __crc32cw(static_cast<uint32_t>(crc), word);
}
inline uint64_t step1(uint64_t crc, uint8_t byte) {
  return __crc32cb(static_cast<uint32_t>(crc), byte);
}
#else
inline constexpr bool kByInstruction = false;
struct Table {
  uint32_t entries[256];
  constexpr Table() : entries{} {
    for (uint32_t i = 0; i < 256; ++i) entries[i] = behind_byte(i);
  }
};
inline constexpr Table kTable;
inline uint64_t step1(uint64_t crc, uint8_t byte) {
  return (crc >> 8) ^ kTable.entries[(crc ^ byte) & 0xff];
}
inline uint64_t step4(uint64_t crc, uint32_t word) {
  for (int i = 0; i < 4; ++i) crc = step1(crc, static_cast<uint8_t>(word >> (8 * i)));
  return crc;
}
inline uint64_t step8(uint64_t crc, uint64_t word) {
  return step4(step4(crc, static_cast<uint32_t>(word)), static_cast<uint32_t>(word >> 32));
}
#endif

template <typename Word = uint64_t>
Word word_at(const uint8_t* at) {
  Word word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

}  // namespace peal::crc32c_steps
