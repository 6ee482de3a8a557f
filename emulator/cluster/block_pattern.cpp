// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/block_pattern.h"

#include <algorithm>
#include <cstring>

#include "emulator/cluster/mix.h"

// Each of these is there for each width, where processors differ: for what all of them have, for
// words twice as wide, and four times. (By hand: what the compiler and the loader would choose
// among is chosen before the sanitizers are there.)
#if defined(__x86_64__)
#define PEAL_WIDE [[gnu::target("avx2")]]
#define PEAL_WIDEST [[gnu::target("avx512f,avx512dq")]]
#endif
#define PEAL_INLINE [[gnu::always_inline]] inline

namespace peal::sim {

namespace {

constexpr uint64_t kStep = kPatternStep;
constexpr uint64_t kLine = 64;  // bytes that a turn of a loop looks at

// Words of a pattern side by side. (Neither an argument nor a result of any function that is
// called: how these are passed would depend on the processor.)
using FourWords = uint64_t __attribute__((vector_size(32)));
using EightWords = uint64_t __attribute__((vector_size(64)));

template <typename Words>
constexpr uint32_t kCount = sizeof(Words) / sizeof(uint64_t);
// How many of them a line has.
template <typename Words>
constexpr uint32_t kParts = kLine / sizeof(Words);

// 0, 1, 2 and so on.
template <typename Words>
PEAL_INLINE void number(Words& words) {
  for (uint32_t i = 0; i < kCount<Words>; i++) words[i] = i;
}

// Adds what the bytes have that the pattern has not: nothing where all are right. (Nearly always
// they are, so it does not stop where not.)
template <typename Words>
PEAL_INLINE void add_differences(Words& differ, const uint8_t* with, uint64_t bytes,
                                 uint64_t base) {
  Words pattern;
  number(pattern);
  pattern = base + pattern * kStep;
  for (const uint8_t* const end = with + bytes; with != end; with += kLine) {
    for (uint32_t part = 0; part < kParts<Words>; part++) {
      Words found;
      std::memcpy(&found, with + part * sizeof(found), sizeof(found));
      differ |= found ^ (pattern + part * kCount<Words> * kStep);
    }
    pattern += kLine / sizeof(uint64_t) * kStep;
  }
}

template <typename Words>
PEAL_INLINE bool none(const Words& differ) {
  uint64_t any = 0;
  for (uint32_t i = 0; i < kCount<Words>; i++) any |= differ[i];
  return any == 0;
}

template <typename Words>
PEAL_INLINE bool lines_are_right(const uint8_t* with, uint64_t bytes, uint64_t base) {
  Words differ = {};
  add_differences(differ, with, bytes, base);
  return none(differ);
}

// The bases of so many blocks are made at once as a register has words.
template <typename Words>
PEAL_INLINE bool blocks_are_right(const uint8_t* with, const BlockRun& run) {
  Words differ = {};
  Words names;
  number(names);
  names += run.first;
  for (uint32_t i = 0; i < run.count; i += kCount<Words>, names += kCount<Words>) {
    Words mixed = run.family ^ names;
    mix_in_place(mixed);
    uint64_t bases[kCount<Words>];
    std::memcpy(bases, &mixed, sizeof(bases));
    const uint32_t count = std::min(kCount<Words>, run.count - i);
    for (uint32_t block = 0; block < count; block++, with += run.block_bytes)
      add_differences(differ, with, run.block_bytes, bases[block]);
  }
  return none(differ);
}

template <typename Words>
PEAL_INLINE void write_lines(uint8_t* to, uint64_t bytes, uint64_t base) {
  Words pattern;
  number(pattern);
  pattern = base + pattern * kStep;
  for (const uint8_t* const end = to + bytes; to != end; to += kLine) {
    for (uint32_t part = 0; part < kParts<Words>; part++) {
      const Words words = pattern + part * kCount<Words> * kStep;
      std::memcpy(to + part * sizeof(words), &words, sizeof(words));
    }
    pattern += kLine / sizeof(uint64_t) * kStep;
  }
}

bool usual_lines_are_right(const uint8_t* with, uint64_t bytes, uint64_t base) {
  return lines_are_right<FourWords>(with, bytes, base);
}
bool usual_blocks_are_right(const uint8_t* with, const BlockRun& run) {
  return blocks_are_right<FourWords>(with, run);
}
void usual_write_lines(uint8_t* to, uint64_t bytes, uint64_t base) {
  write_lines<FourWords>(to, bytes, base);
}

#if defined(__x86_64__)
PEAL_WIDE bool wide_lines_are_right(const uint8_t* with, uint64_t bytes, uint64_t base) {
  return lines_are_right<FourWords>(with, bytes, base);
}
PEAL_WIDE bool wide_blocks_are_right(const uint8_t* with, const BlockRun& run) {
  return blocks_are_right<FourWords>(with, run);
}
PEAL_WIDE void wide_write_lines(uint8_t* to, uint64_t bytes, uint64_t base) {
  write_lines<FourWords>(to, bytes, base);
}

PEAL_WIDEST bool widest_lines_are_right(const uint8_t* with, uint64_t bytes, uint64_t base) {
  return lines_are_right<EightWords>(with, bytes, base);
}
PEAL_WIDEST bool widest_blocks_are_right(const uint8_t* with, const BlockRun& run) {
  return blocks_are_right<EightWords>(with, run);
}
PEAL_WIDEST void widest_write_lines(uint8_t* to, uint64_t bytes, uint64_t base) {
  write_lines<EightWords>(to, bytes, base);
}
#endif

struct Functions {
  bool (*lines_are_right)(const uint8_t* with, uint64_t bytes, uint64_t base);
  bool (*blocks_are_right)(const uint8_t* with, const BlockRun& run);
  void (*write_lines)(uint8_t* to, uint64_t bytes, uint64_t base);
};

Functions choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512dq") != 0) {
    return {widest_lines_are_right, widest_blocks_are_right, widest_write_lines};
  }
  if (__builtin_cpu_supports("avx2") != 0) {
    return {wide_lines_are_right, wide_blocks_are_right, wide_write_lines};
  }
#endif
  return {usual_lines_are_right, usual_blocks_are_right, usual_write_lines};
}

const Functions& functions() {
  static const Functions chosen = choose();
  return chosen;
}

}  // namespace

void write_pattern(uint8_t* to, uint64_t bytes, uint64_t base) {
  uint64_t at = bytes & ~(kLine - 1);
  functions().write_lines(to, at, base);
  base += at / 8 * kStep;
  for (; at + 8 <= bytes; at += 8, base += kStep) std::memcpy(to + at, &base, 8);
  if (at < bytes) std::memcpy(to + at, &base, bytes - at);
}

uint64_t compare_pattern(const uint8_t* with, uint64_t bytes, uint64_t base) {
  const uint64_t lines = bytes & ~(kLine - 1);
  uint64_t at = functions().lines_are_right(with, lines, base) ? lines : 0;
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
  return functions().blocks_are_right(with, run);
}

}  // namespace peal::sim
