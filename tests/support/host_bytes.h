// SPDX-License-Identifier: BSD-2-Clause
// Memory of a host, as a process gets it. From the kernel itself: the address sanitizer writes an
// eighth of whatever comes and goes by malloc(), and of a channel an operation uses a page or two.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "emulator/common/zeroed_memory.h"

namespace peal::test {

class HostBytes {
 public:
  HostBytes() = default;
  explicit HostBytes(size_t size) {
    if (size > 0) memory_ = emulator::ZeroedMemory(size);
  }

  [[nodiscard]] size_t size() const { return memory_.bytes(); }
  [[nodiscard]] uint8_t* data() { return memory_.data(); }
  [[nodiscard]] const uint8_t* data() const { return memory_.data(); }
  [[nodiscard]] uint8_t* begin() { return data(); }
  [[nodiscard]] const uint8_t* begin() const { return data(); }
  [[nodiscard]] uint8_t* end() { return data() + size(); }
  [[nodiscard]] const uint8_t* end() const { return data() + size(); }
  uint8_t& operator[](size_t at) {
    assert(at < size());
    return data()[at];
  }
  const uint8_t& operator[](size_t at) const {
    assert(at < size());
    return data()[at];
  }

  // As many as there are.
  void write(const std::vector<uint8_t>& bytes) {
    assert(bytes.size() == size());
    std::copy(bytes.begin(), bytes.end(), data());
  }
  friend bool operator==(const HostBytes& memory, const auto& bytes) {
    return memory.size() == bytes.size() &&
           (memory.size() == 0 || std::memcmp(memory.data(), bytes.data(), bytes.size()) == 0);
  }

 private:
  emulator::ZeroedMemory memory_;
};

// The first byte that is neither `expected` nor, behind that, `rest`; -1: there is none. By the C
// library as long as all is well, since the address sanitizer looks at each access.
inline std::ptrdiff_t first_wrong(const HostBytes& memory, const std::vector<uint8_t>& expected,
                                  uint8_t rest) {
  const size_t begin = std::min(expected.size(), memory.size());
  const uint8_t* const tail = memory.data() + begin;
  const size_t left = memory.size() - begin;
  const bool right = (begin == 0 || std::memcmp(memory.data(), expected.data(), begin) == 0) &&
                     (left == 0 || (*tail == rest && std::memcmp(tail, tail + 1, left - 1) == 0));
  if (right) return -1;
  size_t at = 0;
  while (memory[at] == (at < begin ? expected[at] : rest)) at++;
  return static_cast<std::ptrdiff_t>(at);
}

}  // namespace peal::test
