// SPDX-License-Identifier: BSD-2-Clause
// Memory of a host: zero at first, as a process gets it, and without cost where nobody touches it.
// A channel of megabytes has a page or two that an operation uses. (From the kernel itself: the
// address sanitizer writes an eighth of whatever comes and goes by malloc().)
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

namespace peal::test {

class HostBytes {
 public:
  HostBytes() = default;
  explicit HostBytes(size_t size) : size_(size) {
    if (size == 0) return;
    void* const memory =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    bytes_ = static_cast<uint8_t*>(memory);
  }
  ~HostBytes() {
    if (bytes_ != nullptr) munmap(bytes_, size_);
  }
  HostBytes(HostBytes&& other) noexcept { *this = std::move(other); }
  HostBytes& operator=(HostBytes&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(size_, other.size_);
    return *this;
  }

  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] uint8_t* data() { return bytes_; }
  [[nodiscard]] const uint8_t* data() const { return bytes_; }
  [[nodiscard]] uint8_t* begin() { return bytes_; }
  [[nodiscard]] const uint8_t* begin() const { return bytes_; }
  [[nodiscard]] uint8_t* end() { return bytes_ + size_; }
  [[nodiscard]] const uint8_t* end() const { return bytes_ + size_; }
  uint8_t& operator[](size_t at) {
    assert(at < size_);
    return bytes_[at];
  }
  const uint8_t& operator[](size_t at) const {
    assert(at < size_);
    return bytes_[at];
  }

  // As many as there are.
  void write(const std::vector<uint8_t>& bytes) {
    assert(bytes.size() == size_);
    std::copy(bytes.begin(), bytes.end(), bytes_);
  }
  friend bool operator==(const HostBytes& memory, const auto& bytes) {
    return memory.size() == bytes.size() &&
           (memory.size() == 0 || std::memcmp(memory.data(), bytes.data(), bytes.size()) == 0);
  }

 private:
  uint8_t* bytes_ = nullptr;
  size_t size_ = 0;
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
