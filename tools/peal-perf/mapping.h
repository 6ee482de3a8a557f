// SPDX-License-Identifier: BSD-2-Clause
// Ordinary memory that a rank maps for itself, until the end of its object.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace peal::perf {

class Mapping {
 public:
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (address_ != nullptr) munmap(address_, bytes_);
  }

  // Null, with errno: there is none.
  uint8_t* map(size_t bytes) {
    void* const address =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) return nullptr;
    address_ = address;
    bytes_ = bytes;
    return static_cast<uint8_t*>(address);
  }

 private:
  void* address_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace peal::perf
