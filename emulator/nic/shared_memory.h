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
  int probe = -1;  // says whether others have the memory (is_held)
  Mapping* next = nullptr;
  std::function<void(size_t bytes)> let_go = {};  // runs once, when nobody has the memory any more
};

// Mappings that any thread throws in and one thread empties out. What others still have stays:
// whoever was given memory may keep it as long as it likes, and it is not had again before.
class MappingBin {
 public:
  MappingBin() = default;
  ~MappingBin();
  MappingBin(const MappingBin&) = delete;
  MappingBin& operator=(const MappingBin&) = delete;

  void throw_in(Mapping* mapping);
  // Unmaps everything, and deletes what nobody else has.
  void empty();
  // And deletes what nobody has any more of the rest.
  void look_again();
  [[nodiscard]] bool has_kept() const { return kept_ != nullptr; }

 private:
  void keep_or_delete(Mapping* mapping);

  std::atomic<Mapping*> head_{nullptr};
  Mapping* kept_ = nullptr;  // unmapped
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
// Makes is_held() tell: *fd becomes a file of its own, to be given away, and is the caller's still.
// False where descriptors have run out. Where the system cannot tell who has a file (no /proc, no
// leases), nobody is said to.
bool know_holders(Mapping* mapping, int* fd);
// Once it is unmapped: others have the memory, by a descriptor, a mapping, or in a message. If not,
// it is empty afterwards.
bool is_held(const Mapping& mapping);
// Unmaps and deletes, whoever has it. Null is allowed.
void destroy(Mapping* mapping);

// Rounded up to whole pages; 0 when that overflows.
size_t whole_pages(uint64_t bytes);

}  // namespace peal::nic
