// SPDX-License-Identifier: BSD-2-Clause
// Where a context's parts lie in its memory. What of it holds nothing yet, or nothing any more, is
// poisoned for AddressSanitizer, as what was not allocated or was freed would be.
#include "hostlib/context_pages.h"

#include <cassert>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

#include "abi/window.h"

#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

namespace peal::host {
namespace {

constexpr size_t kFirstPageBytes = 4096;
// Requests on the first page: the last that was freed is the next, so that few are in use.
constexpr size_t kFirstRequests = 16;

// As many requests as a ring may have: pages of those that there are not are never touched.
struct ContextPages {
  alignas(kFirstPageBytes) std::byte context[sizeof(peal_context)];
  alignas(peal_group) std::byte group[sizeof(peal_group)];
  alignas(peal_request) std::byte requests[PEAL_RING_ENTRIES_MAX * sizeof(peal_request)];
};
static_assert(offsetof(ContextPages, requests) + kFirstRequests * sizeof(peal_request) <=
                  kFirstPageBytes,
              "a context and a group have grown, and leave too little of their page to requests");
static_assert(std::is_trivially_destructible_v<peal_request>, "nobody destroys them");

ContextPages& pages_of(peal_context& context) { return reinterpret_cast<ContextPages&>(context); }

std::byte* place_beside(peal_context& context) { return pages_of(context).group; }

void give_place_back(peal_context& context) {
  ASAN_POISON_MEMORY_REGION(place_beside(context), sizeof(peal_group));
  context.near_place_taken.clear();
}

// Its place is taken.
peal_group* make_beside(peal_context& context) {
  ASAN_UNPOISON_MEMORY_REGION(place_beside(context), sizeof(peal_group));
  try {
    return new (place_beside(context)) peal_group;
  } catch (...) {
    give_place_back(context);
    throw;
  }
}

}  // namespace

GroupPointer make_group(peal_context& context) {
  peal_group* const group =
      context.near_place_taken.test_and_set() ? new peal_group : make_beside(context);
  group->context = &context;
  return GroupPointer(group);
}

void DeleteGroup::operator()(peal_group* group) const {
  peal_context& context = *group->context;
  if (reinterpret_cast<std::byte*>(group) != place_beside(context)) {
    delete group;
    return;
  }
  std::destroy_at(group);
  give_place_back(context);
}

peal_request* make_requests(peal_context& context, uint32_t count) {
  assert(count <= PEAL_RING_ENTRIES_MAX);
  auto* const requests = reinterpret_cast<peal_request*>(pages_of(context).requests);
  ASAN_UNPOISON_MEMORY_REGION(requests, count * sizeof(peal_request));
  std::uninitialized_default_construct_n(requests, count);
  return requests;
}

}  // namespace peal::host

using peal::host::ContextPages;

// (Of the two gcc may inline one, and then take them for no pair.)
[[gnu::noinline]] void* peal_context::operator new(size_t /*bytes*/,
                                                   std::align_val_t /*alignment*/) {
  void* const memory = std::aligned_alloc(alignof(ContextPages), sizeof(ContextPages));
  if (memory == nullptr) throw std::bad_alloc();
  ASAN_POISON_MEMORY_REGION(static_cast<ContextPages*>(memory)->group,
                            sizeof(ContextPages) - offsetof(ContextPages, group));
  return memory;
}

[[gnu::noinline]] void peal_context::operator delete(void* memory, std::align_val_t /*alignment*/) {
  std::free(memory);
}
