// SPDX-License-Identifier: BSD-2-Clause
// Memory from the kernel: zero, page-aligned, and without cost where nobody touches it. Cards,
// channels and windows have megabytes of which most use a few pages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace peal::emulator {

// How much of the memory will be used: what is used whole has large pages, where the system has
// them, whose faults cost a fraction for each byte.
enum class Touched : uint8_t { kSparsely, kWhole };

// Given back when the object goes.
class ZeroedMemory {
 public:
  ZeroedMemory() = default;
  // Throws std::bad_alloc.
  explicit ZeroedMemory(size_t bytes, Touched touched = Touched::kSparsely);
  ~ZeroedMemory();
  ZeroedMemory(ZeroedMemory&& other) noexcept;
  ZeroedMemory& operator=(ZeroedMemory&& other) noexcept;
  // How many bytes are had for so many.
  [[nodiscard]] static size_t rounded(size_t bytes, Touched touched);

  [[nodiscard]] uint8_t* data() const { return data_; }
  [[nodiscard]] size_t bytes() const { return bytes_; }

 private:
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
  size_t ahead_ = 0;  // of data_: mapped with it, and left alone
};

}  // namespace peal::emulator
