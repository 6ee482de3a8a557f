// SPDX-License-Identifier: BSD-2-Clause
// Persistent requests: made and started; see persistent.h. How they end: rings.h.
#include "hostlib/persistent.h"

#include <atomic>
#include <memory>
#include <utility>

#include "hostlib/card_exchange.h"
#include "hostlib/ended.h"
#include "hostlib/group.h"
#include "hostlib/hash.h"
#include "hostlib/programs.h"
#include "hostlib/rings.h"
#include "hostlib/wait.h"

namespace peal::host {
namespace {

// What all ranks must mean alike; never 0. Lengths of parts are compared by the cards, at each
// start.
uint32_t purpose_of(const Posting& posting) {
  const bool parts = posting.operation == PEAL_OPERATION_ALLGATHERV ||
                     posting.operation == PEAL_OPERATION_ALLTOALLV;
  uint32_t hash = kHashBasis;
  hash = hash_word(hash, posting.operation);
  hash = hash_word(hash, parts ? 0 : posting.root);
  hash = hash_word(hash, posting.block_bytes);
  return hash | 1;
}

// Out of the free ones, with its place in the ring.
peal_error take_inactive(peal_context& context, peal_request** request) {
  if (context.broken != PEAL_OK) return fail(context.broken, "%s", peal_strerror(context.broken));
  if (context.free_requests == nullptr) return fail_no_request(context);
  *request = &take_request(context);
  set_state(**request, peal_request::State::kInactive);
  return PEAL_OK;
}

peal_error check_inactive(const peal_request& request, const char* call) {
  if (request.persistent == nullptr || request.detached) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: it is no persistent request", call);
  }
  if (request.state == peal_request::State::kInactive) return PEAL_OK;
  return fail(PEAL_ERR_BUSY, "%s: its last start is not over, or nobody waited for its end", call);
}

// Under the lock of the request's context.
template <typename Function>
peal_error with(peal_request* request, const char* call, Function&& function) {
  if (request == nullptr) return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: the request is null", call);
  return guarded(*request->context, call, [&] {
    const Lock lock(request->context->mutex);
    const peal_error error = check_inactive(*request, call);
    return error == PEAL_OK ? function() : error;
  });
}

// What may fail of one in the list of that peal_startall().
peal_error make_listed_ready(const peal_request& request, uint64_t call) {
  if (std::exchange(request.persistent->listed, call) == call)
    return fail(PEAL_ERR_BUSY, "peal_startall: it stands twice in the list");
  return make_ready(request);
}

// As an operation of a group of its own.
peal_error make_ordinary(peal_group& parent, const DescribePosting& describe,
                         peal_request** request) {
  peal_context& context = *parent.context;
  CardExchange exchange(parent);
  peal_group_builder* builder = nullptr;
  peal_error error = begin_group(context, parent.rank, parent.size, {nullptr, &parent}, &builder);
  if (error != PEAL_OK) return error;
  peal_request* made = nullptr;
  auto persistent = std::make_unique<Persistent>();
  {
    const Lock lock(context.mutex);
    drain(context);
    forget_ended_groups(context);
    error = take_inactive(context, &made);
    if (error == PEAL_OK) {
      group_of(*builder).outstanding_max = 1;
      group_of(*builder).registers_exactly = true;
      persistent->departures = context.cache.departures();
      error = describe(group_of(*builder), &persistent->posting);
    }
    for (const uint32_t key : {persistent->posting.send_key, persistent->posting.receive_key})
      persistent->keys.hold(context.cache, key);
    note(*builder, error);
  }
  set_purpose(*builder, purpose_of(persistent->posting));
  error = finish_group(builder, CardExchange::run, &exchange, &persistent->group);
  if (exchange.failure() != PEAL_OK) error = exchange.failure();
  const Lock lock(context.mutex);
  if (error == PEAL_OK) {
    made->persistent = persistent.get();
    context.persistents.push_back(std::move(persistent));
    *request = made;
  } else {
    if (made != nullptr) release_request(*made);
    persistent.reset();  // under the lock
  }
  return error;
}

// As a program. OK without a request where it is to be none, on all ranks.
peal_error make_as_program(peal_group& parent, const DescribeOperation& describe,
                           peal_request** request) {
  peal_context& context = *parent.context;
  peal_request* made = nullptr;
  PersistentOperation operation;
  Posting posting = {};
  peal_error error = PEAL_OK;
  {
    const Lock lock(context.mutex);
    drain(context);
    forget_ended_groups(context);
    forget_ended_programs(context);
    error = take_inactive(context, &made);
    if (error == PEAL_OK) error = describe(parent, &posting, &operation);
  }
  Persistent* persistent = nullptr;
  error = make_program(parent, error, purpose_of(posting), operation, &persistent);
  const Lock lock(context.mutex);
  if (persistent != nullptr) {
    made->persistent = persistent;
    *request = made;
  } else if (made != nullptr) {
    release_request(*made);
  }
  return error;
}

}  // namespace

peal_error make_persistent(peal_group& parent, const DescribePosting& describe_posting,
                           const DescribeOperation& describe_operation, peal_request** request) {
  if (parent.size > 1) {  // one rank has nobody to tell anything
    const peal_error error = make_as_program(parent, describe_operation, request);
    if (error != PEAL_OK || *request != nullptr) return error;
  }
  const peal_error error = make_ordinary(parent, describe_posting, request);
  if (error != PEAL_OK) return error;
  const Lock lock(parent.context->mutex);
  parent.context->ordinary++;
  return PEAL_OK;
}

}  // namespace peal::host

namespace host = peal::host;

extern "C" peal_error peal_start(peal_request* request) {
  return host::with(request, "peal_start", [&] { return host::start_again(*request); });
}

extern "C" peal_error peal_startall(peal_request* const* requests, size_t count) {
  if (requests == nullptr && count != 0) {
    return host::fail(PEAL_ERR_INVALID_ARGUMENT, "peal_startall: requests is null");
  }
  static std::atomic<uint64_t> calls = 0;
  const uint64_t call = ++calls;
  for (size_t i = 0; i < count; i++) {
    const peal_error error = host::with(
        requests[i], "peal_startall", [&] { return host::make_listed_ready(*requests[i], call); });
    if (error != PEAL_OK) return error;
  }
  for (size_t i = 0; i < count; i++) {
    const peal_error error =
        host::with(requests[i], "peal_startall", [&] { return host::start_again(*requests[i]); });
    if (error != PEAL_OK) return error;
  }
  return PEAL_OK;
}
