// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/block_pattern.h"

#include <cstring>

#include "emulator/cluster/mix.h"

// Each of these is there twice, where processors differ: for what all of them have, and for words
// twice as wide. (By hand: what the compiler and the loader would choose among is chosen before the
// sanitizers are there.)
#if defined(__x86_64__)
#define PEAL_WIDE [[gnu::target("avx2")]]
#else
#define PEAL_WIDE
#endif
#define PEAL_INLINE [[gnu::always_inline]] inline

namespace peal::sim {

namespace {

constexpr uint64_t kStep = kPatternStep;
constexpr uint64_t kLine = 64;  // bytes that a turn of a loop looks at

// Four words of a pattern. (Neither an argument nor a result of any function that is called: how
// these are passed would depend on the processor.)
using Words = uint64_t __attribute__((vector_size(32)));
constexpr Words kSteps = {0, kStep, 2 * kStep, 3 * kStep};

bool is_wide() {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("avx2") != 0;
  return wide;
#else
  return false;
#endif
}

// Adds what the bytes have that the pattern has not: nothing where all are right. (Nearly always
// they are, so it does not stop where not.)
PEAL_INLINE void add_differences(Words& differ, const uint8_t* with, uint64_t bytes,
                                 uint64_t base) {
  Words pattern = base + kSteps;
  for (const uint8_t* const end = with + bytes; with != end; with += kLine) {
    Words low;
    Words high;
    std::memcpy(&low, with, sizeof(low));
    std::memcpy(&high, with + sizeof(low), sizeof(high));
    differ |= (low ^ pattern) | (high ^ (pattern + 4 * kStep));
    pattern += 8 * kStep;
  }
}

PEAL_INLINE bool none(const Words& differ) {
  return (differ[0] | differ[1] | differ[2] | differ[3]) == 0;
}

PEAL_INLINE bool lines_are_right(const uint8_t* with, uint64_t bytes, uint64_t base) {
  Words differ = {};
  add_differences(differ, with, bytes, base);
  return none(differ);
}

PEAL_INLINE bool blocks_are_right(const uint8_t* with, const BlockRun& run) {
  Words differ = {};
  uint64_t name = run.first;
  for (uint32_t i = 0; i < run.count; i++, with += run.block_bytes)
    add_differences(differ, with, run.block_bytes, mix(run.family ^ name++));
  return none(differ);
}

PEAL_INLINE void write_lines(uint8_t* to, uint64_t bytes, uint64_t base) {
  Words pattern = base + kSteps;
  for (const uint8_t* const end = to + bytes; to != end; to += kLine) {
    const Words high = pattern + 4 * kStep;
    std::memcpy(to, &pattern, sizeof(pattern));
    std::memcpy(to + sizeof(pattern), &high, sizeof(high));
    pattern += 8 * kStep;
  }
}

PEAL_WIDE bool wide_lines_are_right(const uint8_t* with, uint64_t bytes, uint64_t base) {
  return lines_are_right(with, bytes, base);
}
PEAL_WIDE bool wide_blocks_are_right(const uint8_t* with, const BlockRun& run) {
  return blocks_are_right(with, run);
}
PEAL_WIDE void wide_write_lines(uint8_t* to, uint64_t bytes, uint64_t base) {
  write_lines(to, bytes, base);
}

}  // namespace

void write_pattern(uint8_t* to, uint64_t bytes, uint64_t base) {
  uint64_t at = bytes & ~(kLine - 1);
  if (is_wide()) {
    wide_write_lines(to, at, base);
  } else {
    write_lines(to, at, base);
  }
  base += at / 8 * kStep;
  for (; at + 8 <= bytes; at += 8, base += kStep) std::memcpy(to + at, &base, 8);
  if (at < bytes) std::memcpy(to + at, &base, bytes - at);
}

uint64_t compare_pattern(const uint8_t* with, uint64_t bytes, uint64_t base) {
  const uint64_t lines = bytes & ~(kLine - 1);
  const bool right =
      is_wide() ? wide_lines_are_right(with, lines, base) : lines_are_right(with, lines, base);
  uint64_t at = right ? lines : 0;
  base += at / 8 * kStep;
  for (; at + 8 <= bytes; at += 8, base += kStep)
    if (std::memcmp(with + at, &base, 8) != 0) return at;
  return std::memcmp(with + at, &base, bytes - at) == 0 ? bytes : at;
}

bool has_pattern(const uint8_t* begin, uint64_t from, uint64_t to, uint64_t base) {
  for (; from < to && from % 8 != 0; from++)
    if (begin[from] != static_cast<uint8_t>((base + from / 8 * kStep) >> from % 8 * 8))
      return false;
  return from >= to ||
         compare_pattern(begin + from, to - from, base + from / 8 * kStep) == to - from;
}

bool run_is_right(const uint8_t* with, const BlockRun& run) {
  return is_wide() ? wide_blocks_are_right(with, run) : blocks_are_right(with, run);
}

}  // namespace peal::sim
