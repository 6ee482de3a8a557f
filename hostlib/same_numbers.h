// SPDX-License-Identifier: BSD-2-Clause
// Whether arrays of numbers still are what they were when they were copied. Nearly always they are,
// so nothing is decided before all are looked at: two numbers at once, in wide words, and arrays of
// one length side by side. memcmp() executes as little for each array, but a call of it takes the
// registers of a caller that has a dozen things in them (tools/host-cost).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace peal::host {

// Two numbers, which every processor compares as one.
using TwoNumbers = uint64_t __attribute__((vector_size(16)));
static_assert(sizeof(TwoNumbers) == 2 * sizeof(size_t));

// An array, and the copy of it, which is as aligned as TwoNumbers: then it is compared from where
// it is.
struct Copied {
  const size_t* array;
  const size_t* copy;
};

// How far apart copies lie, one behind the other, that all are so aligned.
constexpr size_t copy_stride(uint32_t count) { return (size_t{count} + 1) & ~size_t{1}; }

// How the numbers i and i + 1 differ; i is even.
[[gnu::always_inline]] inline TwoNumbers two_differ(const Copied& copied, size_t i) {
  TwoNumbers now;
  TwoNumbers then;
  std::memcpy(&now, copied.array + i, sizeof(now));
  std::memcpy(&then, __builtin_assume_aligned(copied.copy + i, sizeof(then)), sizeof(then));
  return now ^ then;
}

// All of them have that many numbers.
template <typename... Each>
[[nodiscard, gnu::always_inline]] inline bool all_same(size_t count, const Each&... copied) {
  const size_t fours = count & ~size_t{3};
  TwoNumbers differ = {};
  for (size_t i = 0; i < fours; i += 4) {
    differ |= (two_differ(copied, i) | ...) | (two_differ(copied, i + 2) | ...);
  }
  if ((differ[0] | differ[1]) != 0) [[unlikely]]
    return false;
  for (size_t i = fours; i < count; i++) {
    if (((copied.array[i] != copied.copy[i]) || ...)) return false;
  }
  return true;
}

}  // namespace peal::host
