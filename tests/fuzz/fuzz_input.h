// SPDX-License-Identifier: BSD-2-Clause
// The fuzzer's bytes, read front to back; zeros when they run out. So every prefix is an input too,
// and a kept corpus stays readable as the targets grow at the end.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace peal::test {

class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t bytes) : at_(data), left_(bytes) {}

  [[nodiscard]] bool empty() const { return left_ == 0; }
  template <typename T>
  T take() {
    T value{};
    const size_t bytes = left_ < sizeof(T) ? left_ : sizeof(T);
    if (bytes > 0) std::memcpy(&value, at_, bytes);
    at_ += bytes;
    left_ -= bytes;
    return value;
  }
  uint8_t byte() { return take<uint8_t>(); }
  uint32_t below(uint32_t limit) { return limit == 0 ? 0 : take<uint16_t>() % limit; }
  // Overwrites one stretch of `object`, often short: one field gone wrong.
  void spoil(void* object, size_t bytes) {
    const size_t at = below(static_cast<uint32_t>(bytes));
    const size_t count = 1 + byte() % 8;
    for (size_t i = at; i < bytes && i < at + count; i++) static_cast<uint8_t*>(object)[i] = byte();
  }

 private:
  const uint8_t* at_;
  size_t left_;
};

// The fuzzer's way of failing: say why, keep the input.
inline void fuzz_require(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "fuzz: %s\n", what.c_str());
  std::abort();
}

}  // namespace peal::test
