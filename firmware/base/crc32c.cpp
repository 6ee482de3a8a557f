// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/base/crc32c.h"

#include "firmware/base/crc32c_steps.h"

namespace peal {
namespace {

using namespace crc32c_steps;

template <size_t kWords>
uint64_t step_words(uint64_t crc, const uint8_t* at) {
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

// The instruction takes three cycles, and another one can begin in each: so long inputs go in three
// lanes, one behind the other in memory. What a sum becomes behind a lane of zeros is linear in its
// bits, and looked up (Gopal et al., "Fast CRC Computation for iSCSI Polynomial Using CRC32
// Instruction", 2011). The looking up is a third of the work where lanes are short, and nothing
// where they are long.
constexpr size_t kLongLane = 1024;
constexpr size_t kShortLane = 336;  // three of them are nearly 1 KiB

template <size_t kLaneBytes>
struct BehindLane {
  uint32_t entries[4][256];
  constexpr BehindLane() : entries{} {
    for (uint32_t bit = 0; bit < 32; ++bit) {
      uint32_t crc = 1u << bit;
      for (size_t i = 0; i < kLaneBytes; ++i) crc = (crc >> 8) ^ behind_byte(crc & 0xff);
      for (uint32_t i = 0; i < 256; ++i) {
        if ((i >> bit % 8 & 1) != 0) entries[bit / 8][i] ^= crc;
      }
    }
  }
};
template <size_t kLaneBytes>
constexpr BehindLane<kLaneBytes> kBehindLane;

template <size_t kLaneBytes>
uint64_t behind_lane(uint64_t crc) {
  const auto& entries = kBehindLane<kLaneBytes>.entries;
  return entries[0][crc & 0xff] ^ entries[1][crc >> 8 & 0xff] ^ entries[2][crc >> 16 & 0xff] ^
         entries[3][crc >> 24];
}

template <size_t kLaneBytes, size_t kWords>
void step_lanes(uint64_t& first, uint64_t& second, uint64_t& third, const uint8_t* at) {
  if constexpr (kWords > 1) step_lanes<kLaneBytes, kWords - 1>(first, second, third, at);
  at += 8 * (kWords - 1);
  first = step8(first, word_at(at));
  second = step8(second, word_at(at + kLaneBytes));
  third = step8(third, word_at(at + 2 * kLaneBytes));
}

// As many times three lanes as there are.
template <size_t kLaneBytes>
uint64_t sum_lanes(uint64_t crc, const uint8_t*& at, size_t& length) {
  constexpr size_t kWords = kLaneBytes == kShortLane ? kLaneBytes / 8 : 16;
  static_assert(kLaneBytes % (8 * kWords) == 0);
  for (; length >= 3 * kLaneBytes; length -= 3 * kLaneBytes, at += 3 * kLaneBytes) {
    uint64_t second = 0;
    uint64_t third = 0;
    for (size_t i = 0; i < kLaneBytes; i += 8 * kWords) {
      step_lanes<kLaneBytes, kWords>(crc, second, third, at + i);
    }
    crc = behind_lane<kLaneBytes>(behind_lane<kLaneBytes>(crc) ^ second) ^ third;
  }
  return crc;
}

}  // namespace

uint32_t crc32c(uint32_t seed, const void* bytes, size_t length) {
  if (length == 0) return seed;  // most packets of a barrier have no payload
  const auto* at = static_cast<const uint8_t*>(bytes);
  uint64_t crc = ~seed;
  if constexpr (kByInstruction) {
    crc = sum_lanes<kLongLane>(crc, at, length);
    crc = sum_lanes<kShortLane>(crc, at, length);
  }
  for (; length >= 64; length -= 64, at += 64) crc = step_words<8>(crc, at);
  step_if<4>(crc, at, length);
  step_if<2>(crc, at, length);
  step_if<1>(crc, at, length);
  if ((length & 7) == 0) return ~static_cast<uint32_t>(crc);
  if ((length & 4) != 0) {
    crc = step4(crc, word_at<uint32_t>(at));
    at += 4;
  }
  for (length &= 3; length > 0; --length, ++at) crc = step1(crc, *at);
  return ~static_cast<uint32_t>(crc);
}

}  // namespace peal
