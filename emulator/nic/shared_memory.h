// SPDX-License-Identifier: BSD-2-Clause
// Memory that the card creates and shares: memfds with their size sealed, so that no client can
// shrink one under the card and turn its next access into a SIGBUS. Nothing has a name in the file
// system, so nothing can be left behind.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace peal::nic {

// A mapping on its way back to the system: regions are freed on the loop, which must not spend the
// time to unmap.
struct Mapping {
  void* base = nullptr;
  size_t bytes = 0;
  Mapping* next = nullptr;
  std::function<void(size_t bytes)> unmapped = {};  // runs once, after it
};

// Mappings that any thread throws in and one thread empties out.
class MappingBin {
 public:
  MappingBin() = default;
  ~MappingBin() { empty(); }
  MappingBin(const MappingBin&) = delete;
  MappingBin& operator=(const MappingBin&) = delete;

  void throw_in(Mapping* mapping);
  // Unmaps and deletes everything.
  void empty();

 private:
  std::atomic<Mapping*> head_{nullptr};
};

enum class Sharing : uint8_t {
  kReadWrite,
  kReadOnlyForOthers,  // only the mapping made here can write
};

// Creates a memfd of `bytes` (whole pages), maps it, and seals it against shrinking and growing.
// The descriptor is the caller's to close. Null on failure, with errno set.
Mapping* create_shared(const char* name, size_t bytes, Sharing sharing, int* fd);
// Private memory of this process, of which the system gives a page when it is first touched: most
// of what a group reserves for its channels never is.
Mapping* create_private(size_t bytes);
// Unmaps and deletes; for mappings that were never given away. Null is allowed.
void destroy(Mapping* mapping);

// Rounded up to whole pages; 0 when that overflows.
size_t whole_pages(uint64_t bytes);

}  // namespace peal::nic
