// SPDX-License-Identifier: BSD-2-Clause
// CRC32C of as many bytes as there are. For those who sum at the price of no call; the rest have
// crc32c.h.
#pragma once

#include "firmware/base/crc32c_steps.h"

#if defined(__x86_64__)
#include <wmmintrin.h>
#endif

namespace peal::crc32c_steps {

template <size_t kWords>
[[gnu::always_inline]] inline uint64_t step_words(uint64_t crc, const uint8_t* at) {
  if constexpr (kWords > 1) crc = step_words<kWords - 1>(crc, at);
  return step8(crc, word_at(at + 8 * (kWords - 1)));
}

// So many words, where the length has them as a bit.
template <size_t kWords>
void step_if(uint64_t& crc, const uint8_t*& at, size_t length) {
  if ((length & 8 * kWords) == 0) return;
  crc = step_words<kWords>(crc, at);
  at += 8 * kWords;
}

// The instruction takes three cycles, and another one can begin in each: so long inputs go by
// blocks of three lanes, one behind the other in memory. What a sum becomes behind the lanes that
// follow it is linear in its bits: a product without carries, which the last word's step reduces,
// or looked up (Gopal et al., "Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction",
// 2011).
inline constexpr size_t kBlockBytes = 1024;
inline constexpr size_t kLaneWords = 43;  // of the first and the second
inline constexpr size_t kLastLaneWords = kBlockBytes / 8 - 2 * kLaneWords;
static_assert(kLastLaneWords == kLaneWords - 1);

#if defined(__x86_64__)
// (In processors since 2010, a year after the instruction for sums.)
#define PEAL_CRC_TARGET [[gnu::target("pclmul")]]

// What a sum is multiplied by, so that a step of eight bytes takes it behind so many words, its own
// included: x^(64 words - 33), bits reflected, as the product has one bit less than two words.
consteval uint64_t factor_behind(size_t words) {
  uint32_t power = 0x80000000;
  for (size_t bit = 33; bit < 64 * words; ++bit) power = behind_bit(power);
  return power;
}

// The three lanes' sums, that of the third without the block's last word.
PEAL_CRC_TARGET inline uint64_t join_lanes(uint64_t first, uint64_t second, uint64_t third,
                                           uint64_t last_word) {
  const __m128i factors =
      _mm_set_epi64x(factor_behind(kLastLaneWords), factor_behind(kLaneWords + kLastLaneWords));
  const __m128i products = _mm_xor_si128(
      _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<int64_t>(first)), factors, 0x00),
      _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<int64_t>(second)), factors, 0x10));
  return step8(third, last_word ^ static_cast<uint64_t>(_mm_cvtsi128_si64(products)));
}
#else
#define PEAL_CRC_TARGET

struct BehindLane {
  uint32_t entries[4][256];
  constexpr explicit BehindLane(size_t words) : entries{} {
    for (uint32_t bit = 0; bit < 32; ++bit) {
      uint32_t crc = 1u << bit;
      for (size_t i = 0; i < 8 * words; ++i) crc = (crc >> 8) ^ behind_byte(crc & 0xff);
      for (uint32_t i = 0; i < 256; ++i) {
        if ((i >> bit % 8 & 1) != 0) entries[bit / 8][i] ^= crc;
      }
    }
  }
};
template <size_t kWords>
constexpr BehindLane kBehindLane(kWords);

template <size_t kWords>
uint64_t behind_lane(uint64_t crc) {
  const auto& entries = kBehindLane<kWords>.entries;
  return entries[0][crc & 0xff] ^ entries[1][crc >> 8 & 0xff] ^ entries[2][crc >> 16 & 0xff] ^
         entries[3][crc >> 24];
}

inline uint64_t join_lanes(uint64_t first, uint64_t second, uint64_t third, uint64_t last_word) {
  return behind_lane<kLastLaneWords>(behind_lane<kLaneWords>(first) ^ second) ^
         step8(third, last_word);
}
#endif

template <size_t kWords>
[[gnu::always_inline]] inline void step_lanes(uint64_t& first, uint64_t& second, uint64_t& third,
                                              const uint8_t* at) {
  if constexpr (kWords > 1) step_lanes<kWords - 1>(first, second, third, at);
  at += 8 * (kWords - 1);
  first = step8(first, word_at(at));
  second = step8(second, word_at(at + 8 * kLaneWords));
  if constexpr (kWords < kLastLaneWords) third = step8(third, word_at(at + 16 * kLaneWords));
}

PEAL_CRC_TARGET inline uint64_t sum_block(uint64_t crc, const uint8_t* at) {
  uint64_t second = 0;
  uint64_t third = 0;
  step_lanes<kLaneWords>(crc, second, third, at);
  return join_lanes(crc, second, third, word_at(at + kBlockBytes - 8));
}

// Goes on from a sum that is not inverted.
PEAL_CRC_TARGET [[gnu::always_inline]] inline uint64_t sum_bytes(uint64_t crc, const uint8_t* at,
                                                                 size_t length) {
  if constexpr (kByInstruction) {
    for (; length >= kBlockBytes; at += kBlockBytes) {
      crc = sum_block(crc, at);
      length -= kBlockBytes;
      asm("" : "+r"(length));  // (or the compiler counts by an end that it has to find first)
    }
    if (length == 0) return crc;  // most are whole blocks, or nothing
  }
  for (; length >= 64; length -= 64, at += 64) crc = step_words<8>(crc, at);
  step_if<4>(crc, at, length);
  step_if<2>(crc, at, length);
  step_if<1>(crc, at, length);
  if ((length & 4) != 0) {
    crc = step4(crc, word_at<uint32_t>(at));
    at += 4;
  }
  for (length &= 3; length > 0; --length, ++at) crc = step1(crc, *at);
  return crc;
}

}  // namespace peal::crc32c_steps
