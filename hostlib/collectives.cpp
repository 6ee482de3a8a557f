// SPDX-License-Identifier: BSD-2-Clause
// The operations: arguments become one submission entry.
#include "abi/wire.h"
#include "hostlib/administration.h"
#include "hostlib/handles.h"
#include "hostlib/requests.h"
#include "hostlib/rings.h"
#include "hostlib/wait.h"

namespace peal::host {
namespace {

bool use_hit(const peal_context& context, const peal_group::Hit& hit, const void* address,
             size_t bytes) {
  return hit.version == context.memory.version() &&
         hit.region.covers(reinterpret_cast<uintptr_t>(address), bytes);
}

// Finds the registration of a buffer, or makes one where the group allows it.
peal_error resolve(peal_group& group, peal_group::Hit& hit, const void* address, size_t bytes,
                   uint32_t access, const char* what) {
  peal_context& context = *group.context;
  if (use_hit(context, hit, address, bytes)) return PEAL_OK;
  peal_error error = context.memory.find(address, bytes, access, what, &hit.region);
  if (error != PEAL_OK && (group.flags & PEAL_GROUP_REGISTER) != 0) {
    Region region;
    region.start = reinterpret_cast<uintptr_t>(address);
    region.bytes = bytes;
    region.access = access;
    // A send buffer is only read; the key's access keeps it so.
    error =
        register_memory(*context.transport, const_cast<void*>(address), bytes, access, &region.key);
    if (error == PEAL_OK) {
      context.memory.add(region);
      hit.region = region;
    }
  }
  hit.version = error == PEAL_OK ? context.memory.version() : 0;
  return error;
}

bool overlap(uintptr_t a, size_t a_bytes, uintptr_t b, size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

peal_error post_barrier(peal_group& group, peal_request** request) {
  Posting posting = {};
  posting.operation = PEAL_OPERATION_BARRIER;
  posting.algorithm = PEAL_ALGORITHM_DISSEMINATION;
  return submit(group, posting, request);
}

peal_error post_allgather(peal_group& group, const void* send, void* receive, size_t block_bytes,
                          peal_request** request) {
  if (block_bytes > UINT32_MAX) {
    return fail(PEAL_ERR_BAD_LENGTH, "allgather: blocks of %zu bytes, the limit is %u", block_bytes,
                UINT32_MAX);
  }
  const size_t receive_bytes = block_bytes * group.size;  // below 2^42
  const bool in_place = send == PEAL_IN_PLACE;
  Posting posting = {};
  posting.operation = PEAL_OPERATION_ALLGATHER;
  posting.algorithm =
      static_cast<uint8_t>(group.choice.algorithm(PEAL_OPERATION_ALLGATHER, block_bytes));
  posting.block_bytes = block_bytes;
  if (in_place) posting.flags |= PEAL_SUBMIT_IN_PLACE;
  if (block_bytes != 0) {
    if (receive == nullptr || send == nullptr) {
      return fail(PEAL_ERR_INVALID_ARGUMENT, "allgather: the %s buffer is null",
                  receive == nullptr ? "receive" : "send");
    }
    const auto receive_start = reinterpret_cast<uintptr_t>(receive);
    peal_error error = resolve(group, group.receive_hit, receive, receive_bytes,
                               in_place ? PEAL_READ | PEAL_WRITE : PEAL_WRITE, "receive");
    if (error != PEAL_OK) return error;
    posting.receive_key = group.receive_hit.region.key;
    posting.receive_offset = receive_start - group.receive_hit.region.start;
    if (!in_place) {
      const auto send_start = reinterpret_cast<uintptr_t>(send);
      if (overlap(send_start, block_bytes, receive_start, receive_bytes)) {
        return fail(PEAL_ERR_INVALID_ARGUMENT,
                    "allgather: the send buffer %p lies in the receive buffer %p: use "
                    "PEAL_IN_PLACE",
                    send, receive);
      }
      error = resolve(group, group.send_hit, send, block_bytes, PEAL_READ, "send");
      if (error != PEAL_OK) return error;
      posting.send_key = group.send_hit.region.key;
      posting.send_offset = send_start - group.send_hit.region.start;
    }
  }
  return submit(group, posting, request);
}

// The blocking form of whatever `post` posts.
template <typename Post>
peal_error run(peal_group& group, Post post) {
  Lock lock(group.context->mutex);
  peal_request* request = nullptr;
  if (group.outstanding >= group.outstanding_max) {
    wait_outstanding(*group.context, group, group.outstanding_max - 1, lock);
  }
  peal_error error = post(&request);
  if (error != PEAL_OK) return error;
  wait_done(*request->context, *request, kForever, lock);
  error = outcome(*request);
  release_request(*request);
  return error;
}

template <typename Post>
peal_error start(peal_group& group, Post post) {
  const Lock lock(group.context->mutex);
  return post();
}

}  // namespace
}  // namespace peal::host

using peal::host::fail;
using peal::host::guarded;
using peal::host::Lock;

extern "C" peal_error peal_barrier(peal_group* group) {
  if (group == nullptr) return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_barrier: group is null");
  return guarded(*group->context, "peal_barrier", [&] {
    return peal::host::run(
        *group, [&](peal_request** request) { return peal::host::post_barrier(*group, request); });
  });
}

extern "C" peal_error peal_ibarrier(peal_group* group, peal_request** request) {
  if (group == nullptr) return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_ibarrier: group is null");
  if (request != nullptr) *request = nullptr;
  return guarded(*group->context, "peal_ibarrier", [&] {
    return peal::host::start(*group, [&] { return peal::host::post_barrier(*group, request); });
  });
}

extern "C" peal_error peal_allgather(peal_group* group, const void* send, void* receive,
                                     size_t block_bytes) {
  if (group == nullptr) return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_allgather: group is null");
  return guarded(*group->context, "peal_allgather", [&] {
    return peal::host::run(*group, [&](peal_request** request) {
      return peal::host::post_allgather(*group, send, receive, block_bytes, request);
    });
  });
}

extern "C" peal_error peal_iallgather(peal_group* group, const void* send, void* receive,
                                      size_t block_bytes, peal_request** request) {
  if (group == nullptr) return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_iallgather: group is null");
  if (request != nullptr) *request = nullptr;
  return guarded(*group->context, "peal_iallgather", [&] {
    return peal::host::start(*group, [&] {
      return peal::host::post_allgather(*group, send, receive, block_bytes, request);
    });
  });
}
