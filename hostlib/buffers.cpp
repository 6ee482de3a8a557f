// SPDX-License-Identifier: BSD-2-Clause
// Buffers that were not used a moment ago; see buffers.h.
#include "hostlib/buffers.h"

#include "base/names.h"

namespace peal::host {
namespace {

// In texts: whose buffer it is has no side in a broadcast, and no other has one in a put or a get.
const char* text_of(Side side, peal_operation operation) {
  switch (operation) {
    case PEAL_OPERATION_BROADCAST:
      return "broadcast";
    case PEAL_OPERATION_PUT:
    case PEAL_OPERATION_GET:
      return "own";
    default:
      return side == Side::kSend ? "send" : "receive";
  }
}

}  // namespace

// No memory that was ever known is at null, so that only here somebody looks for that.
peal_error resolve_buffer(peal_group& group, peal_operation operation, Side side,
                          const void* address, size_t bytes, uint32_t access) {
  peal_context& context = *group.context;
  peal_group::Hit& hit = side == Side::kSend ? group.send_hit : group.receive_hit;
  if (address == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: the %s buffer is null",
                names::operation(operation).c_str(), text_of(side, operation));
  }
  peal_error error = PEAL_OK;
  const Region* own = context.memory.lookup(address, bytes, access);
  if (own != nullptr) {
    hit.region = *own;
  } else if ((group.flags & PEAL_GROUP_REGISTER) != 0) {
    const peal_group::Hit& other = side == Side::kSend ? group.receive_hit : group.send_hit;
    const uint64_t before = context.cache.version();
    error = context.cache.take(*context.transport,
                               {.address = address,
                                .bytes = bytes,
                                .access = access,
                                .keep = other.region.key,
                                .exactly = group.registers_exactly},
                               &hit.region);
    if (context.cache.version() != before) context.memory.note_change();
  } else {
    error = context.memory.find(address, bytes, access, text_of(side, operation), &hit.region);
  }
  hit.version = error == PEAL_OK ? memory_version(context) : 0;
  return error;
}

}  // namespace peal::host
