// SPDX-License-Identifier: BSD-2-Clause
// Requests and completions; see rings.h.
#include "hostlib/rings.h"

#include <algorithm>
#include <atomic>
#include <ctime>

#include "hostlib/context_pages.h"

namespace peal::host {
namespace {

constexpr uint64_t kConnectionLookNs = 50'000'000;
// No context begins with it.
constexpr uint64_t kGoneEpoch = 1;
// In a request's index: it belongs to a group, not to the context's table.
constexpr uint32_t kOwnBit = 0x80000000;

// Places in the rings of so many groups' own requests at once. What a destroy or an exchange of one
// group waits for may be the same of another group on another rank, which waits there for a place:
// so each group that the card may be in has one, unless that is more than an eighth of all.
uint32_t own_places(const peal_context& context) {
  const uint32_t groups = context.ring.card->device.members_max;
  return std::clamp(groups, 1u, context.ring.entries / 8);
}

// Refused before it became the group's next operation (all before SEND are counted as such):
// the card still waits for that sequence number.
bool was_refused(peal_error result) {
  return (result >= PEAL_ERR_BAD_OPCODE && result <= PEAL_ERR_NO_RESOURCES) ||
         result == PEAL_ERR_BAD_VERSION;
}

// Nobody asks how it ended. Apart, so that what most requests do saves no registers.
[[gnu::noinline]] void end_detached(peal_request& request, peal_group& group) {
  if (request.result != PEAL_OK && group.detached_failure.state == peal_request::State::kFree) {
    group.detached_failure = request;
  }
  let_go(request);
}

[[gnu::always_inline]] inline void end_counted(peal_request& request, peal_error result,
                                               uint32_t failed_rank, uint64_t moved, Count count) {
  peal_group& group = *request.group;
  request.moved = moved;
  request.result = result;
  request.failed_rank = failed_rank;
  set_state(request, peal_request::State::kDone);
  (group.*count)--;
  if (result == PEAL_ERR_PEER_DEAD) group.failed_rank = failed_rank;
  if (was_refused(result) && !is_unordered(request)) {
    group.first_refused = std::min(group.first_refused, request.sequence);
  }
  // What was posted behind a refused operation is refused too; then the group goes on from there.
  if (group.outstanding == 0 && group.first_refused != kNoSequence) {
    group.next_sequence = group.first_refused;
    group.first_refused = kNoSequence;
  }
  peal_context& context = *request.context;
  context.completed++;
  if (result != PEAL_OK) context.failed++;
  if (request.detached) end_detached(request, group);
}

inline void end_request(peal_request& request, peal_error result, uint32_t failed_rank) {
  end_counted(request, result, failed_rank, 0, &peal_group::outstanding);
}

[[gnu::cold]] void end_unordered(peal_request& request, peal_error result, uint32_t failed_rank,
                                 uint64_t moved) {
  end_counted(request, result, failed_rank, moved, &peal_group::unordered);
}

peal_request* find_request(peal_context& context, uint64_t cookie) {
  const auto index = static_cast<uint32_t>(cookie);
  if (index < request_count(context)) return &context.requests[index];
  if ((index & kOwnBit) == 0) return nullptr;
  for (const auto& group : context.groups) {
    if (group->own_request.index == index) return &group->own_request;
  }
  return nullptr;
}

// What a completion says besides how it ended: which message came, or where a start failed.
[[gnu::cold]] void note_what_is_told(peal_request& request, const peal_completion& entry) {
  const bool known = entry.status == PEAL_STATUS_OK || entry.status == PEAL_STATUS_TRUNCATED;
  if (request.operation == PEAL_OPERATION_START) {
    request.bad_index = static_cast<uint32_t>(entry.bytes);
    request.bad_reason = static_cast<uint8_t>(entry.tag);
  } else if (request.operation == PEAL_OPERATION_RECEIVE && known) {
    request.sequence = entry.tag;
    request.any_tag = false;
  }
}

[[gnu::cold]] bool accept_unordered(peal_request& request, const peal_completion& entry,
                                    bool aborted) {
  note_what_is_told(request, entry);
  if (aborted) {
    end_unordered(request, PEAL_ERR_PEER_DEAD, request.group->rank, 0);
  } else {
    end_unordered(request, from_status(entry.status), entry.failed_rank, entry.bytes);
  }
  return true;
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
  const bool aborted = request->group->aborted && entry.status == PEAL_STATUS_BAD_GROUP;
  if (is_unordered(*request)) [[unlikely]]
    return accept_unordered(*request, entry, aborted);
  if (aborted) {
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
  const uint32_t requests = context.ring.entries - own_places(context);
  context.request_count = requests;
  context.requests = make_requests(context, requests);
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

peal_error submit_unordered(peal_group& group, Posting& entry, peal_request** request) {
  peal_context& context = *group.context;
  if (context.free_requests == nullptr) drain(context);
  if (context.broken != PEAL_OK) return fail(context.broken, "%s", peal_strerror(context.broken));
  if (context.free_requests == nullptr) return fail_no_request(context);
  peal_request& made = *context.free_requests;
  peal_request* const next = made.next_free;
  if (!post_unordered(group, entry, entry.sequence, made)) return refuse_full_ring(context);
  context.free_requests = next;
  made.rank = entry.root;
  made.any_tag = (entry.flags & PEAL_SUBMIT_ANY_TAG) != 0;
  hand_out(made, request);
  return PEAL_OK;
}

peal_error fail_no_request(const peal_context& context) {
  return fail(PEAL_ERR_TOO_MANY,
              "%u requests of this context are not freed yet, as many as it may have",
              request_count(context));
}

peal_error refuse_full_ring(const peal_context& context) {
  return fail(PEAL_ERR_TOO_MANY, "the submission ring of %u entries is full", context.ring.entries);
}

peal_error submit_own(peal_group& group, Posting& entry) {
  peal_context& context = *group.context;
  if (context.broken != PEAL_OK) {
    return fail(context.broken, "%s", peal_strerror(context.broken));
  }
  peal_request& request = group.own_request;
  request.context = &context;
  request.index = kOwnBit | (context.next_own++ & ~kOwnBit);
  forget_end(request);
  return post_entry(group, entry, request) ? PEAL_OK : refuse_full_ring(context);
}

peal_error submit_destroy(peal_group& group) {
  Posting entry = {};
  entry.operation = PEAL_OPERATION_DESTROY;
  entry.algorithm = PEAL_ALGORITHM_DISSEMINATION;
  return submit_own(group, entry);
}

peal_request& take_request(peal_context& context) {
  peal_request& request = *context.free_requests;
  context.free_requests = request.next_free;
  // It may have been another group's destroy, by which leave_group() knows that nothing is left.
  request.operation = PEAL_OPERATION_NONE;
  return request;
}

bool leave_group(peal_request& request) {
  peal_context& context = *request.context;
  Persistent& persistent = *request.persistent;
  peal_group& group = *persistent.group;
  if (persistent.programs[0] != nullptr) {
    // Whoever drains the ring does not wait for the card: forget_ended_programs() does.
    for (peal_program*& program : persistent.programs) {
      if (program != nullptr) note_ended(context, program);
      program = nullptr;
    }
    if (--group.users > 0) return false;
  }
  group.over = request.operation == PEAL_OPERATION_DESTROY || context.broken != PEAL_OK;
  if (group.over) return false;
  Posting posting = {};
  posting.operation = PEAL_OPERATION_DESTROY;
  posting.algorithm = PEAL_ALGORITHM_DISSEMINATION;
  request.detached = true;
  request.generation++;
  group.over = !post_entry(group, posting, request);
  return !group.over;
}

void forget_persistent(peal_request& request) {
  const Persistent* gone = request.persistent;
  std::erase_if(request.context->persistents,
                [gone](const auto& each) { return each.get() == gone; });
  request.persistent = nullptr;
}

namespace {

// Some registered memory has left the process: perhaps what this request's starts name.
[[gnu::cold, gnu::noinline]] peal_error name_anew(peal_context& context, Persistent& persistent) {
  const uint64_t departures = context.cache.departures();
  const uint64_t before = context.cache.version();
  const peal_error error = persistent.keys.renew(
      *context.transport, {&persistent.posting.send_key, &persistent.posting.receive_key});
  if (context.cache.version() != before) context.memory.note_change();
  if (error == PEAL_OK) persistent.departures = departures;
  return error;
}

// (A program's memory is its caller's to register.)
[[gnu::always_inline]] inline peal_error name_what_departed(peal_context& context,
                                                            Persistent& persistent) {
  if (persistent.departures == context.cache.departures()) [[likely]]
    return PEAL_OK;
  return name_anew(context, persistent);
}

inline void begin_anew(peal_request& request) {
  request.generation++;
  forget_end(request);
}

}  // namespace

peal_error make_ready(const peal_request& request) {
  peal_context& context = *request.context;
  if (context.broken != PEAL_OK) return fail(context.broken, "%s", peal_strerror(context.broken));
  Persistent& persistent = *request.persistent;
  return persistent.programs[0] != nullptr ? PEAL_OK : name_what_departed(context, persistent);
}

peal_error start_again(peal_request& request) {
  peal_context& context = *request.context;
  if (context.broken != PEAL_OK) return fail(context.broken, "%s", peal_strerror(context.broken));
  Persistent& persistent = *request.persistent;
  Posting& posting = persistent.posting;
  if (persistent.programs[0] == nullptr) {
    const peal_error error = name_what_departed(context, persistent);
    if (error != PEAL_OK) return error;
    begin_anew(request);
    return post_entry(*persistent.group, posting, request) ? PEAL_OK : refuse_full_ring(context);
  }
  begin_anew(request);
  const uint64_t start = persistent.next_start;
  posting.send_key = persistent.handles[start & 1];
  if (!post_unordered(*persistent.group, posting, start >> (persistent.turns - 1), request)) {
    return refuse_full_ring(context);
  }
  persistent.next_start++;
  return PEAL_OK;
}

bool ring_has_place(const peal_context& context) {
  const peal_host_ring& ring = context.ring;
  const uint64_t head = __atomic_load_n(&ring.card->indices.submission_head, __ATOMIC_ACQUIRE);
  return ring.submission_tail - head < ring.entries;
}

bool drain(peal_context& context, const peal_request* until) {
  peal_completion entry;
  bool any = false;
  while (context.broken == PEAL_OK &&
         (until == nullptr || until->state == peal_request::State::kPending) &&
         peal_host_ring_poll(&context.ring, &entry) != 0) {
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

namespace {

// It may only have been stopped, and go on: then it is to end the context before it takes anything
// more (abi/window.h), since the buffers are their owners' again.
void leave_card(peal_context& context) {
  __atomic_store_n(&context.ring.host->reset_epoch.value, kGoneEpoch, __ATOMIC_RELEASE);
  context.transport->give_up();
}

}  // namespace

void break_context(peal_context& context, peal_error error) {
  if (context.broken != PEAL_OK) return;
  context.broken = error;
  if (error == PEAL_ERR_CARD_GONE) leave_card(context);
  for (peal_request& request : requests_of(context)) {
    if (request.state != peal_request::State::kPending) continue;
    if (request.operation == PEAL_OPERATION_START) request.bad_reason = 0;  // an earlier one's
    if (is_unordered(request)) {
      end_unordered(request, error, PEAL_NO_RANK, 0);
    } else {
      end_request(request, error, PEAL_NO_RANK);
    }
  }
  for (const auto& group : context.groups) {
    peal_request& own = group->own_request;
    if (own.state == peal_request::State::kPending) end_request(own, error, PEAL_NO_RANK);
  }
  if (context.sleeper) context.transport->wake();
  context.woken.notify_all();
}

void check_card(peal_context& context, uint64_t now) {
  if (context.broken != PEAL_OK || now < context.next_look_ns) return;
  context.next_look_ns = now + kConnectionLookNs;
  // Silence begins anew with each operation that ended: the card was there.
  if (context.completed != context.completed_before) context.liveness.forget();
  context.completed_before = context.completed;
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

void look_after_card(peal_context& context) {
  context.tested_ticks.store(ticks(), std::memory_order_relaxed);
  check_card(context, now_ns());
}

}  // namespace peal::host
