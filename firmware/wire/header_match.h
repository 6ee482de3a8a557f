// SPDX-License-Identifier: BSD-2-Clause
// Is a header what all headers of a pattern (transmit.h) are? All of its fields at once, in wide
// words; a mask says which of them count.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "abi/wire.h"

#if defined(__SSE4_1__)
#include <smmintrin.h>
#endif

namespace peal {

struct alignas(16) HeaderMask {
  uint8_t bytes[sizeof(peal_wire_header)];
};

// What patterns leave open, one bit each.
struct OpenFields {
  bool origin;  // but where it is the root
  bool length;  // of the payload
  bool block_bytes;
};

// The fields that packets of one pattern have in common when they are sent the first time: they
// have a number on their edge then. Sender and places differ.
constexpr HeaderMask header_mask(const OpenFields& open) {
  peal_wire_header mask = {};
  mask.ethertype = mask.origin = mask.length = 0xffff;
  mask.version = mask.type = mask.operation = mask.algorithm = mask.flags = 0xff;
  mask.group = mask.member = mask.signature = mask.sequence = mask.block_bytes = ~uint32_t{0};
  if (open.origin) mask.origin = 0;
  if (open.length) mask.length = 0;
  if (open.block_bytes) mask.block_bytes = 0;
  return std::bit_cast<HeaderMask>(mask);
}

// The same of packets that may as well have no number, as those of ranks without an edge have not.
constexpr HeaderMask without_number(const HeaderMask& usual) {
  auto mask = std::bit_cast<peal_wire_header>(usual);
  mask.flags = static_cast<uint8_t>(~PEAL_PACKET_NUMBERED);
  return std::bit_cast<HeaderMask>(mask);
}

using WideWord = uint64_t __attribute__((vector_size(16)));

// How the words of this index differ, where the mask counts. Pattern and mask are aligned.
[[gnu::always_inline]] inline WideWord header_differs(const peal_wire_header& header,
                                                      const peal_wire_header& pattern,
                                                      const HeaderMask& mask, size_t index) {
  constexpr size_t kBytes = sizeof(WideWord);
  const auto aligned = [index](const void* from) {
    return static_cast<const uint8_t*>(__builtin_assume_aligned(from, kBytes)) + index * kBytes;
  };
  WideWord of_header;
  WideWord of_pattern;
  WideWord of_mask;
  std::memcpy(&of_header, reinterpret_cast<const uint8_t*>(&header) + index * kBytes, kBytes);
  std::memcpy(&of_pattern, aligned(&pattern), kBytes);
  std::memcpy(&of_mask, aligned(&mask), kBytes);
  return (of_header ^ of_pattern) & of_mask;
}

[[gnu::always_inline]] inline bool header_matches(const peal_wire_header& header,
                                                  const peal_wire_header& pattern,
                                                  const HeaderMask& mask) {
  static_assert(sizeof(header) == 4 * sizeof(WideWord));
  const WideWord differ =
      header_differs(header, pattern, mask, 0) | header_differs(header, pattern, mask, 1) |
      header_differs(header, pattern, mask, 2) | header_differs(header, pattern, mask, 3);
#if defined(__SSE4_1__)
  const auto all = std::bit_cast<__m128i>(differ);
  return _mm_testz_si128(all, all) != 0;
#else
  return (differ[0] | differ[1]) == 0;
#endif
}

}  // namespace peal
