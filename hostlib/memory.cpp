// SPDX-License-Identifier: BSD-2-Clause
// Memory that the card may reach: made by it, or registered.
#include "hostlib/memory.h"

#include <string>

#include "hostlib/administration.h"
#include "hostlib/ended.h"

namespace peal::host {
namespace {

// Gives back what nobody needs any more, and if that is nothing, a registration that is idle.
// False: there is none. Under the lock.
bool make_any_room(peal_context& context) {
  const auto given_up = [&] {
    return context.ended_programs.size() + context.groups.size() + context.left_memory.size();
  };
  const size_t before = given_up();
  forget_ended_programs(context);
  forget_ended_groups(context);
  leave_memory(context, {});
  if (given_up() < before) return true;
  if (!context.cache.make_room(*context.transport)) return false;
  context.memory.note_change();
  return true;
}

// Asks the card for something, again as long as room is made for it.
template <typename Ask>
peal_error ask_for_room(peal_context& context, Ask ask) {
  peal_error error = ask();
  while (is_full(error)) {
    const std::string text = last_error_text();
    if (!make_any_room(context)) return fail(error, "%s", text.c_str());
    error = ask();
  }
  return error;
}

// The same without the lock.
template <typename Ask>
peal_error ask_unlocked(peal_context& context, Ask ask) {
  const peal_error error = ask();
  if (!is_full(error)) return error;
  const std::lock_guard guard(context.mutex);
  return ask_for_room(context, ask);
}

peal_error allocate(peal_context& context, size_t bytes, void** memory) {
  if (bytes == 0) return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_alloc: 0 bytes");
  if (bytes > SIZE_MAX / 2) return fail(PEAL_ERR_NO_MEMORY, "peal_alloc: %zu bytes", bytes);
  Region region;
  const peal_error error = allocate_unlocked(context, bytes, &region.allocation);
  if (error != PEAL_OK) return error;
  region.start = reinterpret_cast<uintptr_t>(region.allocation.address);
  region.bytes = region.allocation.mapped_bytes;
  region.key = region.allocation.key;
  region.access = PEAL_READ | PEAL_WRITE;
  region.allocated = true;
  const std::lock_guard guard(context.mutex);
  context.memory.add(region);
  *memory = region.allocation.address;
  return PEAL_OK;
}

peal_error release(peal_context& context, void* memory) {
  const std::lock_guard guard(context.mutex);
  const Region* found = context.memory.allocated_at(memory);
  if (found == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_free: %p is not from peal_alloc()", memory);
  }
  const Region region = *found;
  const peal_error error = context.transport->release(region.allocation);
  // Whatever else the card says, the mapping is gone now.
  if (error != PEAL_ERR_BUSY) context.memory.remove(region.key);
  return error;
}

peal_error register_range(peal_context& context, void* address, size_t bytes, unsigned access,
                          peal_memory** memory) {
  if (address == nullptr || bytes == 0) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_register: address %p, %zu bytes", address, bytes);
  }
  if (access == 0 || (access & ~(PEAL_READ | PEAL_WRITE)) != 0) {
    return fail(PEAL_ERR_INVALID_ARGUMENT,
                "peal_register: access 0x%x, expected PEAL_READ | PEAL_WRITE", access);
  }
  if (reinterpret_cast<uintptr_t>(address) + bytes < bytes) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_register: %zu bytes at %p wrap around", bytes,
                address);
  }
  auto handle = std::make_unique<peal_memory>();
  Region region;
  const peal_error error = ask_unlocked(context, [&] {
    return register_memory(*context.transport, address, bytes, access, &region.key);
  });
  if (error != PEAL_OK) return error;
  region.start = reinterpret_cast<uintptr_t>(address);
  region.bytes = bytes;
  region.access = access;
  handle->context = &context;
  handle->key = region.key;
  *memory = handle.get();
  const std::lock_guard guard(context.mutex);
  context.memory.add(region);
  context.registrations.push_back(std::move(handle));
  return PEAL_OK;
}

peal_error unregister(peal_memory* memory) {
  peal_context& context = *memory->context;
  const std::lock_guard guard(context.mutex);
  const peal_error error = unregister_memory(*context.transport, memory->key);
  if (error == PEAL_ERR_BUSY) return error;
  context.memory.remove(memory->key);
  std::erase_if(context.registrations, [&](const auto& each) { return each.get() == memory; });
  return error;
}

// What others may write as well as read comes first: where memory is registered twice, a name for
// both ways does for either.
peal_error name_range(peal_context& context, const void* address, size_t bytes, uint32_t* key,
                      uint64_t* offset) {
  const std::lock_guard guard(context.mutex);
  Region region;
  peal_error error = PEAL_ERR_NOT_REGISTERED;
  for (const unsigned access : {PEAL_READ | PEAL_WRITE, PEAL_WRITE, PEAL_READ}) {
    error = context.memory.find(address, bytes, access, "named", &region);
    if (error == PEAL_OK) break;
  }
  if (error != PEAL_OK) return error;
  *key = region.key;
  *offset = region.offset_of(address);
  return PEAL_OK;
}

}  // namespace

peal_error allocate_memory(peal_context& context, size_t bytes, Allocation* memory) {
  return ask_for_room(context, [&] { return context.transport->allocate(bytes, memory); });
}

peal_error allocate_unlocked(peal_context& context, size_t bytes, Allocation* memory) {
  return ask_unlocked(context, [&] { return context.transport->allocate(bytes, memory); });
}

}  // namespace peal::host

using peal::host::fail;
using peal::host::guarded;

extern "C" peal_error peal_alloc(peal_context* context, size_t bytes, void** memory) {
  if (context == nullptr || memory == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_alloc: an argument is null");
  }
  *memory = nullptr;
  return guarded(*context, "peal_alloc",
                 [&] { return peal::host::allocate(*context, bytes, memory); });
}

extern "C" peal_error peal_free(peal_context* context, void* memory) {
  if (context == nullptr) return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_free: context is null");
  if (memory == nullptr) return PEAL_OK;
  return guarded(*context, "peal_free", [&] { return peal::host::release(*context, memory); });
}

extern "C" peal_error peal_register(peal_context* context, void* address, size_t bytes,
                                    unsigned access, peal_memory** memory) {
  if (context == nullptr || memory == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_register: an argument is null");
  }
  *memory = nullptr;
  return guarded(*context, "peal_register", [&] {
    return peal::host::register_range(*context, address, bytes, access, memory);
  });
}

extern "C" peal_error peal_unregister(peal_memory* memory) {
  if (memory == nullptr) return PEAL_OK;
  return guarded(*memory->context, "peal_unregister",
                 [&] { return peal::host::unregister(memory); });
}

extern "C" peal_error peal_memory_name(peal_context* context, void* address, size_t bytes,
                                       uint32_t* key, uint64_t* offset) {
  if (context == nullptr || key == nullptr || offset == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_memory_name: an argument is null");
  }
  return guarded(*context, "peal_memory_name",
                 [&] { return peal::host::name_range(*context, address, bytes, key, offset); });
}
