// SPDX-License-Identifier: BSD-2-Clause
// How the card knows a caller's buffer: a memory key and an offset. Most often a buffer lies in the
// memory that served the last one of its side, and nobody looks further. Needs the context's lock.
#pragma once

#include "abi/wire.h"
#include "hostlib/handles.h"

namespace peal::host {

enum class Side : uint8_t { kSend, kReceive };

// A side's memory; none where `bytes` is zero.
struct Buffer {
  const void* address = nullptr;
  size_t bytes = 0;
};

// All zero where there is no buffer.
struct Name {
  uint32_t key = 0;
  uint64_t offset = 0;
};

// Finds the registration of a buffer, or makes one where the group allows it; leaves it as the last
// one of its side. `access` is how the card will use it. Explains itself with the operation's name.
[[gnu::cold]] peal_error resolve_buffer(peal_group& group, peal_operation operation, Side side,
                                        const void* address, size_t bytes, uint32_t access);

// The memory that served the last buffer of its side, where it may still be used so; else null.
template <Side side>
[[gnu::always_inline]] inline const Region* last_region(const peal_group& group, uint64_t version,
                                                        bool in_place) {
  const peal_group::Hit& hit = side == Side::kSend ? group.send_hit : group.receive_hit;
  // What served a side before has that side's own access.
  const bool has_access = !in_place || (hit.region.access & PEAL_READ) != 0;
  return hit.version == version && has_access ? &hit.region : nullptr;
}

// What a call knows at its beginning: memory_version(), asked once for both buffers. That one of
// them is registered takes nothing from the other (RegistrationCache::Wanted::keep).
template <Side side>
[[gnu::always_inline]] inline peal_error name_buffer(peal_group& group, uint64_t version,
                                                     peal_operation operation, const Buffer& buffer,
                                                     bool in_place, Name* name) {
  if (buffer.bytes == 0) return PEAL_OK;
  const auto start = reinterpret_cast<uintptr_t>(buffer.address);
  const peal_group::Hit& hit = side == Side::kSend ? group.send_hit : group.receive_hit;
  const Region* const last = last_region<side>(group, version, in_place);
  if (last == nullptr || !last->covers(start, buffer.bytes)) [[unlikely]] {
    uint32_t access = side == Side::kSend ? PEAL_READ : PEAL_WRITE;
    if (in_place) access |= PEAL_READ;
    const peal_error error =
        resolve_buffer(group, operation, side, buffer.address, buffer.bytes, access);
    if (error != PEAL_OK) return error;
  }
  *name = {hit.region.key, hit.region.offset_of(buffer.address)};
  return PEAL_OK;
}

}  // namespace peal::host
