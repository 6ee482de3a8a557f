// SPDX-License-Identifier: BSD-2-Clause
// Requests and completions; see rings.h.
#include "hostlib/rings.h"

#include <algorithm>
#include <atomic>
#include <ctime>

namespace peal::host {
namespace {

constexpr uint64_t kConnectionLookNs = 50'000'000;
// In a request's index: it belongs to a group, not to the context's table.
constexpr uint32_t kDestroyBit = 0x80000000;

// Refused before it became the group's next operation (all before SEND are counted as such):
// the card still waits for that sequence number.
bool was_refused(peal_error result) {
  return (result >= PEAL_ERR_BAD_OPCODE && result <= PEAL_ERR_NO_RESOURCES) ||
         result == PEAL_ERR_BAD_VERSION;
}

inline void end_request(peal_request& request, peal_error result, uint32_t failed_rank) {
  request.result = result;
  request.failed_rank = failed_rank;
  set_state(request, peal_request::State::kDone);
  peal_group& group = *request.group;
  request.group = nullptr;
  group.outstanding--;
  if (result == PEAL_ERR_PEER_DEAD) group.failed_rank = failed_rank;
  if (was_refused(result) && request.operation < PEAL_OPERATION_SEND) {
    group.first_refused = std::min(group.first_refused, request.sequence);
  }
  // What was posted behind a refused operation is refused too; then the group goes on from there.
  if (group.outstanding == 0 && group.first_refused != kNoSequence) {
    group.next_sequence = group.first_refused;
    group.first_refused = kNoSequence;
  }
  peal_context& context = *request.context;
  context.completed++;
  if (context.completed == context.ring.submission_tail) context.liveness.forget();
  context.failed += result == PEAL_OK ? 0 : 1;
  if (!request.detached) return;
  if (result != PEAL_OK && group.detached_failure.state == peal_request::State::kFree) {
    group.detached_failure = request;
  }
  let_go(request);
}

peal_request* find_request(peal_context& context, uint64_t cookie) {
  const auto index = static_cast<uint32_t>(cookie);
  if (index < context.requests.size()) return &context.requests[index];
  if ((index & kDestroyBit) == 0) return nullptr;
  for (const auto& group : context.groups) {
    if (group->destroy_request.index == index) return &group->destroy_request;
  }
  return nullptr;
}

// A completion is the card's word, so a wrong one is the card's failure, not ours.
bool accept_completion(peal_context& context, const peal_completion& entry) {
  peal_request* request = find_request(context, entry.cookie);
  if (request == nullptr || request->state != peal_request::State::kPending ||
      entry.cookie != cookie_of(*request) || entry.sequence != request->sequence) {
    return false;
  }
  request->card_ns = entry.card_ns;
  context.card_ns += entry.card_ns;
  // What the card had not seen before the group was aborted it knows no group for.
  if (request->group->aborted && entry.status == PEAL_STATUS_BAD_GROUP) {
    end_request(*request, PEAL_ERR_PEER_DEAD, request->group->rank);
  } else {
    end_request(*request, from_status(entry.status), entry.failed_rank);
  }
  return true;
}

}  // namespace

uint64_t now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

void start_rings(peal_context& context) {
  const Window& window = context.transport->window();
  peal_host_ring_init(&context.ring, window.base, window.entries);
  const uint32_t requests = window.entries - 1;
  context.requests = std::vector<peal_request>(requests);
  for (uint32_t i = requests; i-- > 0;) {
    peal_request& request = context.requests[i];
    request.context = &context;
    request.index = i;
    request.next_free = context.free_requests;
    context.free_requests = &request;
  }
}

peal_error make_room(peal_group& group) {
  peal_context& context = *group.context;
  if (group.outstanding >= group.outstanding_max || context.free_requests == nullptr)
    drain(context);
  if (context.broken != PEAL_OK) {
    return fail(context.broken, "%s", peal_strerror(context.broken));
  }
  if (group.outstanding >= group.outstanding_max) {
    return fail(PEAL_ERR_TOO_MANY, "%u operations of this group are outstanding, the card's limit",
                group.outstanding);
  }
  if (context.free_requests == nullptr) {
    return fail_no_request(context);
  }
  return PEAL_OK;
}

peal_error fail_no_request(const peal_context& context) {
  return fail(PEAL_ERR_TOO_MANY,
              "%zu requests of this context are not freed yet, as many as it may have",
              context.requests.size());
}

peal_error refuse_full_ring(const peal_context& context) {
  return fail(PEAL_ERR_TOO_MANY, "the submission ring of %u entries is full", context.ring.entries);
}

peal_error submit_destroy(peal_group& group) {
  peal_context& context = *group.context;
  if (context.broken != PEAL_OK) {
    return fail(context.broken, "%s", peal_strerror(context.broken));
  }
  peal_request& request = group.destroy_request;
  request.context = &context;
  request.index = kDestroyBit | (context.next_destroy++ & ~kDestroyBit);
  Posting entry = {};
  entry.operation = PEAL_OPERATION_DESTROY;
  entry.algorithm = PEAL_ALGORITHM_DISSEMINATION;
  return post_entry(group, entry, request) ? PEAL_OK : refuse_full_ring(context);
}

bool leave_group(peal_request& request) {
  peal_group& group = *request.own_group;
  group.over = request.operation == PEAL_OPERATION_DESTROY || request.context->broken != PEAL_OK;
  if (group.over) return false;
  Posting posting = {};
  posting.operation = PEAL_OPERATION_DESTROY;
  posting.algorithm = PEAL_ALGORITHM_DISSEMINATION;
  request.detached = true;
  request.generation++;
  group.over = !post_entry(group, posting, request);
  return !group.over;
}

peal_error start_again(peal_request& request) {
  peal_context& context = *request.context;
  if (context.broken != PEAL_OK) return fail(context.broken, "%s", peal_strerror(context.broken));
  request.generation++;
  forget_end(request);
  Posting posting = request.own_group->posting;
  return post_entry(*request.own_group, posting, request) ? PEAL_OK : refuse_full_ring(context);
}

bool ring_has_place(const peal_context& context) {
  const peal_host_ring& ring = context.ring;
  const uint64_t head = __atomic_load_n(&ring.card->indices.submission_head, __ATOMIC_ACQUIRE);
  return ring.submission_tail - head < ring.entries;
}

bool drain(peal_context& context) {
  peal_completion entry;
  bool any = false;
  while (context.broken == PEAL_OK && peal_host_ring_poll(&context.ring, &entry) != 0) {
    any = true;
    if (!accept_completion(context, entry)) break_context(context, PEAL_ERR_CARD_ANSWER);
  }
  if (any) context.completions_taken.store(context.ring.completion_head, std::memory_order_release);
  if (any && context.sleeper) {
    context.transport->wake();
    context.woken.notify_all();
  }
  return any;
}

void note_test(peal_context& context) {
  context.tested_ticks.store(ticks(), std::memory_order_relaxed);
}

void break_context(peal_context& context, peal_error error) {
  if (context.broken != PEAL_OK) return;
  context.broken = error;
  for (peal_request& request : context.requests) {
    if (request.state == peal_request::State::kPending) end_request(request, error, PEAL_NO_RANK);
  }
  for (const auto& group : context.groups) {
    peal_request& destroy = group->destroy_request;
    if (destroy.state == peal_request::State::kPending) end_request(destroy, error, PEAL_NO_RANK);
  }
  context.woken.notify_all();
}

void check_card(peal_context& context, uint64_t now) {
  if (context.broken != PEAL_OK || now < context.next_look_ns) return;
  context.next_look_ns = now + kConnectionLookNs;
  const peal_heartbeat& heartbeat = context.ring.card->heartbeat;
  const uint64_t beats = __atomic_load_n(&heartbeat.beats, __ATOMIC_RELAXED);
  const uint64_t interval_ns = uint64_t{heartbeat.heartbeat_interval_us} * 1000;
  const bool gone =
      !context.transport->connected() || context.liveness.silent(beats, interval_ns, now);
  // What it completed before it went still counts.
  if (gone) {
    drain(context);
    break_context(context, PEAL_ERR_CARD_GONE);
  }
}

}  // namespace peal::host
