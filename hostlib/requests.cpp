// SPDX-License-Identifier: BSD-2-Clause
// Requests: tested, waited for, freed.
#include <span>
#include <string>

#include "hostlib/ended.h"
#include "hostlib/outcome.h"
#include "hostlib/rings.h"
#include "hostlib/wait.h"

namespace peal::host {

namespace {

// The same, said to the caller: a persistent request may be started again.
peal_error take_outcome(peal_request& request) {
  if (request.state == peal_request::State::kInactive) return PEAL_OK;
  const peal_error error = outcome(request);
  if (request.persistent != nullptr) set_state(request, peal_request::State::kInactive);
  return error;
}

using Requests = std::span<peal_request* const>;

uint64_t deadline_after(uint64_t timeout_ns) {
  const uint64_t now = now_ns();
  return timeout_ns < kForever - now ? now + timeout_ns : kForever;
}

// The first that is complete once `wait(context, requests, lock)` has returned; it is not called
// where there is nobody to wait for.
template <typename Wait>
peal_error any_of(peal_request* const* requests, size_t count, size_t* index, const char* call,
                  Wait wait) {
  if (index != nullptr) *index = PEAL_NO_INDEX;
  if (index == nullptr || (requests == nullptr && count != 0)) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: an argument is null", call);
  }
  const Requests list(requests, count);
  peal_context* context = nullptr;
  for (size_t i = 0; i < count; i++) {
    if (list[i] == nullptr) continue;
    if (context == nullptr) context = list[i]->context;
    if (context == list[i]->context) continue;
    return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: request %zu is of another context", call, i);
  }
  if (context == nullptr) return PEAL_OK;
  return guarded(*context, call, [&] {
    Lock lock(context->mutex);
    if (!wait(*context, list, lock)) {
      return fail(PEAL_ERR_TIMED_OUT, "%s: none of %zu is complete", call, count);
    }
    *index = first_done(list);
    return *index == PEAL_NO_INDEX ? PEAL_OK : take_outcome(*list[*index]);
  });
}

// Bytes within which lies what ends an operation: less than a page, so that it is never on two.
// docs/decisions/0059
constexpr size_t kEndingBytes = 2048;

// Apart from the call, so that what most tests do needs no room on the stack. (The first of those
// that end an operation: the others follow it.)
[[gnu::noinline, gnu::hot, gnu::aligned(kEndingBytes)]] peal_error test_locked(
    peal_request* request, int* done) {
  return guarded(*request->context, "peal_test", [&] {
    peal_context& context = *request->context;
    const Lock lock(context.mutex);
    drain(context, request);
    if (request->state == peal_request::State::kPending) look_after_card(context);
    *done = request->state != peal_request::State::kPending ? 1 : 0;
    return *done != 0 ? take_outcome(*request) : PEAL_OK;
  });
}

}  // namespace
}  // namespace peal::host

using peal::host::fail;
using peal::host::guarded;
using peal::host::Lock;

extern "C" [[gnu::hot]] peal_error peal_test(peal_request* request, int* done) {
  if (request == nullptr || done == nullptr) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_test: an argument is null");
  }
  if (peal::host::nothing_yet(*request)) {
    *done = 0;
    return PEAL_OK;
  }
  return peal::host::test_locked(request, done);
}

extern "C" [[gnu::hot]] peal_error peal_wait(peal_request* request) {
  if (request == nullptr) return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_wait: request is null");
  peal_context& context = *request->context;
  return guarded(context, "peal_wait", [&] {
    Lock lock(context.mutex);
    peal::host::drain(context, request);
    if (request->state == peal_request::State::kPending) {
      peal::host::wait_done(context, *request, peal::host::kForever, lock);
    }
    return peal::host::take_outcome(*request);
  });
}

extern "C" peal_error peal_wait_for(peal_request* request, uint64_t timeout_ns) {
  if (request == nullptr) return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_wait_for: request is null");
  return guarded(*request->context, "peal_wait_for", [&] {
    const uint64_t deadline = peal::host::deadline_after(timeout_ns);  // the lock's time counts
    Lock lock(request->context->mutex);
    if (!peal::host::wait_done(*request->context, *request, deadline, lock)) {
      return fail(PEAL_ERR_TIMED_OUT, "still pending after %llu ns",
                  static_cast<unsigned long long>(timeout_ns));
    }
    return peal::host::take_outcome(*request);
  });
}

extern "C" peal_error peal_test_any(peal_request* const* requests, size_t count, size_t* index) {
  return peal::host::any_of(requests, count, index, "peal_test_any",
                            [&](peal_context& context, peal::host::Requests list, Lock&) {
                              if (peal::host::first_done(list) != PEAL_NO_INDEX) return true;
                              peal::host::drain(context);
                              peal::host::check_card(context, peal::host::now_ns());
                              return true;
                            });
}

extern "C" peal_error peal_wait_any(peal_request* const* requests, size_t count,
                                    uint64_t timeout_ns, size_t* index) {
  const uint64_t deadline = peal::host::deadline_after(timeout_ns);
  return peal::host::any_of(requests, count, index, "peal_wait_any",
                            [&](peal_context& context, peal::host::Requests list, Lock& lock) {
                              return peal::host::wait_first(context, list, deadline, lock);
                            });
}

extern "C" peal_error peal_wait_all(peal_request* const* requests, size_t count) {
  if (requests == nullptr && count != 0) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_wait_all: requests is null");
  }
  return peal::host::guarded([&] {
    peal_error first = PEAL_OK;
    std::string text;  // of the first, where the last one's would be read
    for (size_t i = 0; i < count; i++) {
      const peal_error error = requests[i] == nullptr ? PEAL_OK : peal_wait(requests[i]);
      if (error == PEAL_OK || first != PEAL_OK) continue;
      first = error;
      text = peal::host::last_error_text();
    }
    return first == PEAL_OK ? PEAL_OK : fail(first, "%s", text.c_str());
  });
}

extern "C" [[gnu::hot]] peal_error peal_request_free(peal_request* request) {
  if (request == nullptr) return PEAL_OK;
  peal_context& context = *request->context;
  return guarded(context, "peal_request_free", [&] {
    const Lock lock(context.mutex);
    if (request->state == peal_request::State::kFree || request->detached) {
      return fail(PEAL_ERR_INVALID_ARGUMENT, "peal_request_free: it was freed before");
    }
    if (request->state == peal_request::State::kPending) {
      request->detached = true;
    } else {
      peal::host::let_go(*request);
      if (context.programs_ended) [[unlikely]]
        peal::host::forget_ended_programs(context);
    }
    return PEAL_OK;
  });
}

extern "C" int peal_request_failed_rank(peal_request* request) {
  if (request == nullptr || request->context->owner.inherited()) return -1;
  const Lock lock(request->context->mutex);
  return request->failed_rank == PEAL_NO_RANK ? -1 : static_cast<int>(request->failed_rank);
}

extern "C" uint64_t peal_request_card_ns(peal_request* request) {
  if (request == nullptr || request->context->owner.inherited()) return 0;
  const Lock lock(request->context->mutex);
  return request->card_ns;
}

extern "C" uint64_t peal_request_bytes(peal_request* request) {
  if (request == nullptr || request->context->owner.inherited()) return 0;
  const Lock lock(request->context->mutex);
  const bool counts =
      request->state == peal_request::State::kDone && peal::host::is_point_to_point(*request);
  return counts ? request->moved : 0;
}

extern "C" uint64_t peal_request_tag(peal_request* request) {
  if (request == nullptr || request->context->owner.inherited()) return 0;
  const Lock lock(request->context->mutex);
  if (!peal::host::is_point_to_point(*request)) return 0;
  return request->any_tag ? PEAL_ANY_TAG : request->sequence;
}
