// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/own_exchange.h"

#include "hostlib/buffers.h"
#include "hostlib/outcome.h"
#include "hostlib/rings.h"
#include "hostlib/wait.h"

namespace peal::host {
namespace {

// By the group's own request. Lengths are of blocks, of which so many are sent.
peal_error exchange(peal_group& group, peal_operation operation, const Buffer& send,
                    const Buffer& receive, size_t block_bytes) {
  peal_context& context = *group.context;
  Lock lock(context.mutex);
  wait_own_turn(context, group, lock);
  Name to;
  Name from;
  const uint64_t version = memory_version(context);
  peal_error error = name_buffer<Side::kReceive>(group, version, operation, receive, false, &to);
  if (error == PEAL_OK)
    error = name_buffer<Side::kSend>(group, version, operation, send, false, &from);
  if (error != PEAL_OK) return error;
  Posting posting = {};
  posting.operation = static_cast<uint8_t>(operation);
  posting.algorithm = static_cast<uint8_t>(group.choice.algorithm(operation, block_bytes));
  posting.block_bytes = block_bytes;
  posting.send_key = from.key;
  posting.send_offset = from.offset;
  posting.receive_key = to.key;
  posting.receive_offset = to.offset;
  error = submit_own(group, posting);
  if (error != PEAL_OK) return error;
  wait_done(context, group.own_request, kForever, lock);
  error = outcome(group.own_request);
  set_state(group.own_request, peal_request::State::kFree);
  wake_waiters(context);
  return error;
}

}  // namespace

peal_error own_allgather(peal_group& group, const void* send, void* receive, size_t block_bytes) {
  return exchange(group, PEAL_OPERATION_ALLGATHER, {send, block_bytes},
                  {receive, group.size * block_bytes}, block_bytes);
}

peal_error own_alltoall(peal_group& group, const void* send, void* receive, size_t block_bytes) {
  return exchange(group, PEAL_OPERATION_ALLTOALL, {send, group.size * block_bytes},
                  {receive, group.size * block_bytes}, block_bytes);
}

}  // namespace peal::host
