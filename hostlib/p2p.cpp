// SPDX-License-Identifier: BSD-2-Clause
// Point-to-point: messages, puts, gets and fences become submission entries as collectives do, but
// have no place in the group's order: the other rank and a tag say what belongs together.
#include <string>

#include "abi/wire.h"
#include "hostlib/buffers.h"
#include "hostlib/handles.h"
#include "hostlib/outcome.h"
#include "hostlib/rings.h"
#include "hostlib/wait.h"

namespace peal::host {
namespace {

static_assert(PEAL_ALL_RANKS == PEAL_NO_RANK, "a fence for all has this rank on the card");

// Another rank's memory, by its card's name.
struct Remote {
  uint32_t key = 0;
  uint64_t offset = 0;
};

// What the arguments of one call come to.
struct Message {
  peal_operation operation = PEAL_OPERATION_NONE;
  uint32_t rank = 0;
  uint64_t tag = 0;
  Buffer own;
  Remote remote;
};

Message message_to(uint32_t to, uint64_t tag, const void* send, size_t bytes) {
  return {PEAL_OPERATION_SEND, to, tag, {send, bytes}, {}};
}
Message message_from(uint32_t from, uint64_t tag, void* receive, size_t bytes) {
  return {PEAL_OPERATION_RECEIVE, from, tag, {receive, bytes}, {}};
}

std::string title_of(const Message& message) {
  return message_title(message.operation, message.rank);
}

// What is wrong whatever memory is registered.
peal_error check(const peal_group& group, const Message& message) {
  const bool all = message.operation == PEAL_OPERATION_FENCE && message.rank == PEAL_ALL_RANKS;
  if (message.rank >= group.size && !all) {
    return fail(PEAL_ERR_BAD_RANK, "%s: the group has the ranks 0 to %u", title_of(message).c_str(),
                group.size - 1);
  }
  if (message.operation == PEAL_OPERATION_SEND && message.tag == PEAL_ANY_TAG) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: PEAL_ANY_TAG is the tag of no message",
                title_of(message).c_str());
  }
  if (message.own.bytes != 0 && message.own.address == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: the buffer of %zu bytes is null",
                title_of(message).c_str(), message.own.bytes);
  }
  return PEAL_OK;
}

bool reads_own(const Message& message) {
  return message.operation == PEAL_OPERATION_SEND || message.operation == PEAL_OPERATION_PUT;
}

peal_error name_own(peal_group& group, const Message& message, Name* name) {
  const uint64_t version = memory_version(*group.context);
  const peal_error error =
      reads_own(message)
          ? name_buffer<Side::kSend>(group, version, message.operation, message.own, false, name)
          : name_buffer<Side::kReceive>(group, version, message.operation, message.own, false,
                                        name);
  if (error == PEAL_OK) [[likely]]
    return PEAL_OK;
  const std::string text = last_error_text();
  return fail(error, "%s: %s", title_of(message).c_str(), text.c_str());
}

// What the card is told. An empty put names no memory there: it would not be looked at.
peal_error describe(peal_group& group, const Message& message, Posting* posting) {
  peal_error error = check(group, message);
  if (error != PEAL_OK) return error;
  Name own;
  error = name_own(group, message, &own);
  if (error != PEAL_OK) return error;
  const bool any = message.operation == PEAL_OPERATION_RECEIVE && message.tag == PEAL_ANY_TAG;
  const bool reads = reads_own(message);
  const uint32_t remote_key = message.own.bytes != 0 ? message.remote.key : 0;
  const uint64_t remote_offset = message.own.bytes != 0 ? message.remote.offset : 0;
  posting->operation = static_cast<uint8_t>(message.operation);
  posting->flags = any ? PEAL_SUBMIT_ANY_TAG : 0;
  posting->root = message.rank;
  posting->sequence = any ? 0 : message.tag;
  posting->block_bytes = message.own.bytes;
  posting->send_key = reads ? own.key : remote_key;
  posting->send_offset = reads ? own.offset : remote_offset;
  posting->receive_key = reads ? remote_key : own.key;
  posting->receive_offset = reads ? remote_offset : own.offset;
  return PEAL_OK;
}

peal_error post(peal_group& group, const Message& message, peal_request** request) {
  Posting posting = {};
  const peal_error error = describe(group, message, &posting);
  return error == PEAL_OK ? submit_unordered(group, posting, request) : error;
}

peal_error start(const char* name, peal_group* group, const Message& message,
                 peal_request** request) {
  if (group == nullptr) return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: group is null", name);
  if (request != nullptr) *request = nullptr;
  return guarded(*group->context, name, [&] {
    const Lock lock(group->context->mutex);
    return post(*group, message, request);
  });
}

// Waits for it; *moved is how long the message was.
peal_error run(const char* name, peal_group* group, const Message& message, size_t* moved) {
  if (moved != nullptr) *moved = 0;
  if (group == nullptr) return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: group is null", name);
  return guarded(*group->context, name, [&] {
    Lock lock(group->context->mutex);
    peal_request* request = nullptr;
    peal_error error = post(*group, message, &request);
    if (error != PEAL_OK) return error;
    wait_done(*request->context, *request, kForever, lock);
    error = outcome(*request);
    if (moved != nullptr) *moved = static_cast<size_t>(request->moved);
    release_request(*request);
    return error;
  });
}

}  // namespace
}  // namespace peal::host

namespace host = peal::host;

extern "C" peal_error peal_send(peal_group* group, uint32_t to, uint64_t tag, const void* send,
                                size_t bytes) {
  return host::run("peal_send", group, host::message_to(to, tag, send, bytes), nullptr);
}

extern "C" peal_error peal_isend(peal_group* group, uint32_t to, uint64_t tag, const void* send,
                                 size_t bytes, peal_request** request) {
  return host::start("peal_isend", group, host::message_to(to, tag, send, bytes), request);
}

extern "C" peal_error peal_recv(peal_group* group, uint32_t from, uint64_t tag, void* receive,
                                size_t bytes, size_t* received) {
  return host::run("peal_recv", group, host::message_from(from, tag, receive, bytes), received);
}

extern "C" peal_error peal_irecv(peal_group* group, uint32_t from, uint64_t tag, void* receive,
                                 size_t bytes, peal_request** request) {
  return host::start("peal_irecv", group, host::message_from(from, tag, receive, bytes), request);
}

extern "C" peal_error peal_put(peal_group* group, uint32_t to, const void* send, size_t bytes,
                               uint32_t remote_key, uint64_t remote_offset,
                               peal_request** request) {
  const host::Message put = {PEAL_OPERATION_PUT, to, 0, {send, bytes}, {remote_key, remote_offset}};
  return host::start("peal_put", group, put, request);
}

extern "C" peal_error peal_get(peal_group* group, uint32_t from, void* receive, size_t bytes,
                               uint32_t remote_key, uint64_t remote_offset,
                               peal_request** request) {
  const host::Message get = {
      PEAL_OPERATION_GET, from, 0, {receive, bytes}, {remote_key, remote_offset}};
  return host::start("peal_get", group, get, request);
}

extern "C" peal_error peal_fence(peal_group* group, uint32_t to, peal_request** request) {
  const host::Message fence = {PEAL_OPERATION_FENCE, to, 0, {}, {}};
  return host::start("peal_fence", group, fence, request);
}
