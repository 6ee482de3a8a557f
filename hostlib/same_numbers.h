// SPDX-License-Identifier: BSD-2-Clause
// Whether arrays of numbers still are what they were when they were copied. Nearly always they are,
// so nothing is decided before all are looked at: two numbers at once, in wide words, and arrays of
// one length side by side. The copies lie as they are compared, two numbers of each array in turn,
// so that one pointer leads to all of them. memcmp() executes as little for each array, but a call
// of it takes the registers of a caller that has a dozen things in them (tools/host-cost).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace peal::host {

// Two numbers, which every processor compares as one.
using TwoNumbers = uint64_t __attribute__((vector_size(16)));
static_assert(sizeof(TwoNumbers) == 2 * sizeof(size_t));

// How many numbers the copies of so many arrays take, and where number i of one of them is. (Of an
// odd count nobody looks at the last places.)
constexpr size_t copied_numbers(size_t arrays, size_t count) {
  return arrays * ((count + 1) & ~size_t{1});
}
constexpr size_t copied_at(size_t arrays, size_t array, size_t i) {
  return (i & ~size_t{1}) * arrays + 2 * array + (i & 1);
}

// Into copied_numbers() of them, as aligned as TwoNumbers. All arrays have `count` numbers.
template <typename... Each>
[[gnu::always_inline]] inline void copy_numbers(size_t* copies, size_t count,
                                                const Each*... arrays) {
  const size_t twos = count & ~size_t{1};
  for (size_t i = 0; i < twos; i += 2) {
    ((std::memcpy(__builtin_assume_aligned(copies, sizeof(TwoNumbers)), arrays + i,
                  sizeof(TwoNumbers)),
      copies += 2),
     ...);
  }
  if (twos == count) return;
  size_t array = 0;
  ((copies[2 * array++] = arrays[twos]), ...);
}

// How two numbers differ from their copies.
[[gnu::always_inline]] inline TwoNumbers two_differ(const size_t* array, const size_t* copy) {
  TwoNumbers now;
  TwoNumbers then;
  std::memcpy(&now, array, sizeof(now));
  std::memcpy(&then, __builtin_assume_aligned(copy, sizeof(then)), sizeof(then));
  return now ^ then;
}

// (The compiler finds no better for the latter than to take the two apart.)
[[gnu::always_inline]] inline bool any_differs(TwoNumbers differ) {
#if defined(__SSE4_1__)
  using Signed = long long __attribute__((vector_size(16)));
  const auto bits = reinterpret_cast<Signed>(differ);
  return __builtin_ia32_ptestz128(bits, bits) == 0;
#else
  return (differ[0] | differ[1]) != 0;
#endif
}

// Whether these arrays, in the order in which they were copied, are what they were.
template <typename... Each>
[[nodiscard, gnu::always_inline]] inline bool all_same(size_t count, const size_t* copies,
                                                       const Each*... arrays) {
  constexpr size_t kArrays = sizeof...(arrays);
  const size_t fours = count & ~size_t{3};
  TwoNumbers differ = {};
  const size_t* copy = copies;
  for (size_t i = 0; i < fours; i += 4, copy += 4 * kArrays) {
    size_t twos = 0;
    ((differ |= two_differ(arrays + i, copy + 2 * twos++)), ...);
    ((differ |= two_differ(arrays + i + 2, copy + 2 * twos++)), ...);
  }
  if (any_differs(differ)) [[unlikely]]
    return false;
  if (fours == count) [[likely]]
    return true;
  for (size_t i = fours; i < count; i++) {
    size_t array = 0;
    if (((arrays[i] != copies[copied_at(kArrays, array++, i)]) || ...)) return false;
  }
  return true;
}

}  // namespace peal::host
