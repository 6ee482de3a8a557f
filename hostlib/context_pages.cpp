// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/context_pages.h"

#include <sanitizer/asan_interface.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

#include "abi/window.h"

namespace peal::host {
namespace {

constexpr size_t kPage = 4096;
// Requests on the first page: the last that was freed is the next, so that few are in use.
constexpr size_t kFirstRequests = 16;

// As many requests as a ring may have: pages of those that are never used are never touched.
struct ContextPages {
  alignas(kPage) std::byte context[sizeof(peal_context)];
  alignas(peal_group) std::byte group[sizeof(peal_group)];
  alignas(peal_request) std::byte requests[PEAL_RING_ENTRIES_MAX * sizeof(peal_request)];
};
static_assert(offsetof(ContextPages, requests) + kFirstRequests * sizeof(peal_request) <= kPage);
static_assert(std::is_trivially_destructible_v<peal_request>, "nobody destroys them");

ContextPages& pages_of(peal_context& context) { return reinterpret_cast<ContextPages&>(context); }

}  // namespace

GroupPointer make_group(peal_context& context) {
  peal_group* group = nullptr;
  if (context.room_taken.test_and_set()) {
    group = new peal_group;
  } else {
    std::byte* const room = pages_of(context).group;
    ASAN_UNPOISON_MEMORY_REGION(room, sizeof(peal_group));
    group = new (room) peal_group;
  }
  group->context = &context;
  return GroupPointer(group);
}

void DeleteGroup::operator()(peal_group* group) const {
  peal_context& context = *group->context;
  std::byte* const room = pages_of(context).group;
  if (reinterpret_cast<std::byte*>(group) != room) {
    delete group;
    return;
  }
  std::destroy_at(group);
  ASAN_POISON_MEMORY_REGION(room, sizeof(peal_group));
  context.room_taken.clear();
}

peal_request* make_requests(peal_context& context, uint32_t count) {
  auto* const requests = reinterpret_cast<peal_request*>(pages_of(context).requests);
  std::uninitialized_default_construct_n(requests, count);
  return requests;
}

}  // namespace peal::host

using peal::host::ContextPages;

void* peal_context::operator new(size_t /*bytes*/, std::align_val_t /*alignment*/) {
  void* const memory = std::aligned_alloc(alignof(ContextPages), sizeof(ContextPages));
  if (memory == nullptr) throw std::bad_alloc();
  ASAN_POISON_MEMORY_REGION(static_cast<ContextPages*>(memory)->group, sizeof(peal_group));
  return memory;
}

void peal_context::operator delete(void* memory, std::align_val_t /*alignment*/) {
  std::free(memory);
}
