// SPDX-License-Identifier: BSD-2-Clause
// Persistent requests: made and started; see persistent.h. How they end: rings.h.
#include "hostlib/persistent.h"

#include <cstring>
#include <string>

#include "hostlib/group.h"
#include "hostlib/hash.h"
#include "hostlib/rings.h"
#include "hostlib/wait.h"

namespace peal::host {
namespace {

// Exchanges of a group's ranks over their cards, instead of the caller's way.
class CardExchange {
 public:
  explicit CardExchange(peal_group& group) : group_(&group) {
    if (group.size == 1) return;
    const size_t bytes = size_t{1 + group.size} * PEAL_GROUP_RECORD_BYTES;
    if (peal_alloc(group.context, bytes, &memory_) != PEAL_OK) memory_ = nullptr;
  }
  ~CardExchange() {
    if (memory_ != nullptr) peal_free(group_->context, memory_);
  }
  CardExchange(const CardExchange&) = delete;
  CardExchange& operator=(const CardExchange&) = delete;

  // A peal_exchange_callback.
  static int run(void* argument, const void* send, void* receive, size_t bytes) {
    auto& self = *static_cast<CardExchange*>(argument);
    self.error_ = self.exchange(send, receive, bytes);
    if (self.error_ != PEAL_OK) self.text_ = last_error_text();
    return self.error_ == PEAL_OK ? 0 : 1;
  }

  // How it failed, explained in the thread's text.
  [[nodiscard]] peal_error failure() const {
    return error_ == PEAL_OK ? PEAL_OK : fail(error_, "%s", text_.c_str());
  }

 private:
  [[nodiscard]] peal_error exchange(const void* send, void* receive, size_t bytes) const {
    if (group_->size == 1) {
      memcpy(receive, send, bytes);
      return PEAL_OK;
    }
    if (memory_ == nullptr) {  // Others are not left waiting: they learn that lengths differ.
      (void)peal_allgather(group_, nullptr, nullptr, 0);
      return fail(PEAL_ERR_NO_MEMORY, "no memory to exchange addresses in");
    }
    auto* own = static_cast<uint8_t*>(memory_);
    memcpy(own, send, bytes);
    const peal_error error = peal_allgather(group_, own, own + bytes, bytes);
    if (error == PEAL_OK) memcpy(receive, own + bytes, group_->size * bytes);
    return error;
  }

  peal_group* group_;
  void* memory_ = nullptr;
  peal_error error_ = PEAL_OK;
  std::string text_;
};

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
peal_error take_request(peal_context& context, peal_request** request) {
  if (context.broken != PEAL_OK) return fail(context.broken, "%s", peal_strerror(context.broken));
  if (context.free_requests == nullptr) return fail_no_request(context);
  *request = context.free_requests;
  context.free_requests = (*request)->next_free;
  set_state(**request, peal_request::State::kInactive);
  return PEAL_OK;
}

peal_error check_inactive(const peal_request& request, const char* call) {
  if (request.own_group == nullptr || request.detached) {
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

}  // namespace

peal_error make_persistent(peal_group& parent, const DescribePosting& describe,
                           peal_request** request) {
  peal_context& context = *parent.context;
  CardExchange exchange(parent);
  peal_group_builder* builder = nullptr;
  peal_error error = begin_group(context, parent.rank, parent.size, {nullptr, &parent}, &builder);
  if (error != PEAL_OK) return error;
  peal_request* made = nullptr;
  Posting posting = {};
  {
    const Lock lock(context.mutex);
    drain(context);
    forget_ended_groups(context);
    error = take_request(context, &made);
    if (error == PEAL_OK) {
      group_of(*builder).outstanding_max = 1;
      error = describe(group_of(*builder), &posting);
    }
    note(*builder, error);
  }
  set_purpose(*builder, purpose_of(posting));
  peal_group* group = nullptr;
  error = finish_group(builder, CardExchange::run, &exchange, &group);
  if (exchange.failure() != PEAL_OK) error = exchange.failure();
  const Lock lock(context.mutex);
  if (error == PEAL_OK) {
    group->posting = posting;
    made->own_group = group;
    *request = made;
  } else if (made != nullptr) {
    release_request(*made);
  }
  return error;
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
  for (size_t i = 0; i < count; i++) {
    const peal_error error = host::with(requests[i], "peal_startall", [] { return PEAL_OK; });
    if (error != PEAL_OK) return error;
  }
  for (size_t i = 0; i < count; i++) {
    const peal_error error =
        host::with(requests[i], "peal_startall", [&] { return host::start_again(*requests[i]); });
    if (error != PEAL_OK) return error;
  }
  return PEAL_OK;
}
