// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/common/nontemporal.h"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace peal::emulator {

#if defined(__SSE2__)

namespace {
constexpr uint32_t kLine = 64;  // bytes that a processor writes to memory at once

void copy_line(uint8_t* to, const uint8_t* from) {
  constexpr uint32_t kWords = kLine / sizeof(__m128i);
  __m128i words[kWords];
  for (uint32_t i = 0; i < kWords; i++)
    words[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i);
  for (uint32_t i = 0; i < kWords; i++)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i, words[i]);
}
}  // namespace

void copy_nontemporal(uint8_t* to, const uint8_t* from, uint32_t bytes) {
  // Up to the first whole line, and what is left of the last one.
  const auto ahead = static_cast<uint32_t>(-reinterpret_cast<uintptr_t>(to) % kLine);
  uint32_t done = std::min(ahead, bytes);
  std::memcpy(to, from, done);
  for (; bytes - done >= kLine; done += kLine) copy_line(to + done, from + done);
  std::memcpy(to + done, from + done, bytes - done);
  // Such stores are in no order with others.
  _mm_sfence();
}

#else

void copy_nontemporal(uint8_t* to, const uint8_t* from, uint32_t bytes) {
  std::memcpy(to, from, bytes);
}

#endif

}  // namespace peal::emulator
