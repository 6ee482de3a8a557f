// SPDX-License-Identifier: BSD-2-Clause
// Memory from the kernel: zero, page-aligned, and without cost where nobody touches it. Cards,
// channels and windows have megabytes of which most use a few pages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace peal::emulator {

// Given back when the object goes.
class ZeroedMemory {
 public:
  ZeroedMemory() = default;
  // Throws std::bad_alloc.
  explicit ZeroedMemory(size_t bytes);
  ~ZeroedMemory();
  ZeroedMemory(ZeroedMemory&& other) noexcept;
  ZeroedMemory& operator=(ZeroedMemory&& other) noexcept;

  [[nodiscard]] uint8_t* data() const { return data_; }
  [[nodiscard]] size_t bytes() const { return bytes_; }

 private:
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace peal::emulator
