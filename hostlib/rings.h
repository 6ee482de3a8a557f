// SPDX-License-Identifier: BSD-2-Clause
// Requests in, completions out. All functions need the context's lock, where nothing else is said.
#pragma once

#include <atomic>
#include <span>

#include "hostlib/handles.h"
#include "hostlib/posting.h"

namespace peal::host {

// Sizes the request table to the rings of the transport's window, but for the places that groups'
// own requests need.
void start_rings(peal_context& context);

// Whether one more operation may be posted, once those that have completed are taken: TOO_MANY when
// the group or the context has as many outstanding as the card takes, or why the context is broken.
[[gnu::cold]] peal_error make_room(peal_group& group);
inline bool has_room(const peal_group& group) {
  const peal_context& context = *group.context;
  return group.outstanding < group.outstanding_max && context.free_requests != nullptr &&
         context.broken == PEAL_OK;
}
inline peal_error check_room(peal_group& group) {
  return has_room(group) ? PEAL_OK : make_room(group);
}
[[gnu::cold]] peal_error refuse_full_ring(const peal_context& context);

// What the card is told of a request, and tells of it.
inline uint64_t cookie_of(const peal_request& request) {
  return uint64_t{request.generation} << 32 | request.index;
}
// Of an operation that had this request, which may be another one's by now.
inline bool is_pending(const peal_request& request, uint64_t cookie) {
  return cookie_of(request) == cookie && request.state == peal_request::State::kPending;
}
inline uint32_t request_count(const peal_context& context) { return context.request_count; }
inline std::span<peal_request> requests_of(const peal_context& context) {
  return {context.requests, request_count(context)};
}
inline bool is_pending(const peal_context& context, uint64_t cookie) {
  return is_pending(context.requests[static_cast<uint32_t>(cookie)], cookie);
}

inline void set_state(peal_request& request, peal_request::State state) {
  std::atomic_ref(request.state).store(state, std::memory_order_release);
}

// Not counted in the group's order, and with no limit but the context's requests.
inline bool is_unordered(const peal_request& request) {
  return request.operation >= PEAL_OPERATION_SEND;
}
inline bool is_point_to_point(const peal_request& request) {
  return request.operation >= PEAL_OPERATION_SEND && request.operation <= PEAL_OPERATION_FENCE;
}

// A request that has not ended yet.
inline void forget_end(peal_request& request) {
  request.result = PEAL_OK;
  // By itself: the two together would be a constant in memory, on a page that is read for nothing
  // else.
  std::atomic_ref(request.failed_rank).store(PEAL_NO_RANK, std::memory_order_relaxed);
  request.card_ns = 0;
}

// What it counts as: one of the outstanding operations of the group, or one besides.
using Count = uint32_t peal_group::*;

// Posts it with that sequence number, for this request that has not ended yet. The entry says whose
// it is; and who posts it wakes the card if it sleeps. False when the ring is full: nothing has
// changed then.
[[gnu::always_inline]] inline bool post_unheard(peal_group& group, const Posting& entry,
                                                uint64_t sequence, peal_request& request,
                                                Count count = &peal_group::outstanding) {
  if (peal_host_ring_submit_as(&group.context->ring, &entry, sequence, cookie_of(request)) == 0)
      [[unlikely]]
    return false;
  request.sequence = sequence;
  request.group = &group;
  request.operation = entry.operation;
  set_state(request, peal_request::State::kPending);
  (group.*count)++;
  return true;
}
inline void wake_card(peal_context& context) {
  context.doorbells++;
  context.transport->ring_doorbell();
}

// The same for an entry that does not say whose it is, and for a card that may sleep.
[[gnu::always_inline]] inline bool post_numbered(peal_group& group, Posting& entry,
                                                 uint64_t sequence, peal_request& request,
                                                 Count count = &peal_group::outstanding) {
  entry.member = group.member;
  if (!post_unheard(group, entry, sequence, request, count)) [[unlikely]]
    return false;
  peal_context& context = *group.context;
  if (peal_host_ring_card_sleeps(&context.ring) != 0) [[unlikely]]
    wake_card(context);
  return true;
}

// The same for one that has no place in the group's order.
[[gnu::always_inline]] inline bool post_unordered(peal_group& group, Posting& entry,
                                                  uint64_t sequence, peal_request& request) {
  return post_numbered(group, entry, sequence, request, &peal_group::unordered);
}

// The same, as the group's next operation.
[[gnu::always_inline]] inline bool post_entry(peal_group& group, Posting& entry,
                                              peal_request& request) {
  if (!post_numbered(group, entry, group.next_sequence, request)) [[unlikely]]
    return false;
  group.next_sequence++;
  return true;
}

// One that was free is the caller's now, or frees itself when it is done where the caller wants
// none.
[[gnu::always_inline]] inline void hand_out(peal_request& made, peal_request** request) {
  if (request != nullptr) [[likely]] {
    *request = &made;
  } else {
    made.detached = true;
  }
}

// The same for a request of the context's. There is room, as check_room() said.
[[gnu::always_inline]] inline peal_error submit_in_room(peal_group& group, Posting& entry,
                                                        peal_request** request) {
  peal_context& context = *group.context;
  peal_request& made = *context.free_requests;
  context.free_requests = made.next_free;
  if (!post_entry(group, entry, made)) [[unlikely]] {
    context.free_requests = &made;
    return refuse_full_ring(context);
  }
  hand_out(made, request);
  return PEAL_OK;
}
// The same where nobody has looked yet. TOO_MANY when the group or the context has as many
// outstanding as the card takes: nothing was posted then.
[[gnu::always_inline]] inline peal_error submit(peal_group& group, Posting& entry,
                                                peal_request** request) {
  const peal_error error = check_room(group);
  if (error != PEAL_OK) [[unlikely]]
    return error;
  return submit_in_room(group, entry, request);
}
// The same for one that has no place in the group's order: point-to-point, where the entry's
// sequence is a message's tag, or a start of a program.
peal_error submit_unordered(peal_group& group, Posting& entry, peal_request** request);
// The same with the group's own request, which nobody uses: it needs none of the context's, only a
// place in the ring (ring_has_place()).
peal_error submit_own(peal_group& group, Posting& entry);
// The group's last operation, by its own request.
peal_error submit_destroy(peal_group& group);
// Out of the free ones, of which there are some: nobody's operation yet.
peal_request& take_request(peal_context& context);
[[nodiscard]] bool ring_has_place(const peal_context& context);
// What may fail when an inactive persistent request is started.
peal_error make_ready(const peal_request& request);
// Posts its operation once more.
peal_error start_again(peal_request& request);
// TOO_MANY: all of the context's requests are in use.
peal_error fail_no_request(const peal_context& context);

// Takes what has completed. True when anything was; wakes threads that wait for others' requests.
// `until`: no more than that this request is over. What has completed behind it stays where it is:
// a look whether there is anything would be a cache line more.
[[gnu::hot]] bool drain(peal_context& context, const peal_request* until = nullptr);

// Where the next completion will appear, to be looked at without the lock.
// A hint only: drain() decides.
struct Glance {
  const uint64_t* word = nullptr;
  uint8_t phase = 0;
  [[nodiscard]] bool arrived() const {
    return static_cast<uint8_t>(__atomic_load_n(word, __ATOMIC_RELAXED) >> 56) == phase;
  }
};
inline Glance glance_at_next(const peal_context& context) {
  const peal_host_ring& ring = context.ring;
  const uint64_t head = context.completions_taken.load(std::memory_order_acquire);
  const peal_completion& slot = ring.completions[head & (ring.entries - 1)];
  return {reinterpret_cast<const uint64_t*>(&slot) + 7,  // its last byte is the phase
          peal_ring_phase(head, ring.entries)};
}

// The processor's own clock, for a few cycles.
inline uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t count = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#else
  return 0;
#endif
}
#if defined(__x86_64__) || defined(__aarch64__)
inline constexpr bool kHasTicks = true;
#else
inline constexpr bool kHasTicks = false;  // each test takes the lock
#endif
// Half a millisecond or so; nothing depends on how long they are.
inline constexpr uint64_t kTicksBetweenTests = uint64_t{1} << 20;

// Without the lock. True when there is certainly nothing new for this request, and the card was
// looked after a moment ago: most tests find that. Otherwise the lock says.
inline bool nothing_yet(peal_request& request) {
  if constexpr (!kHasTicks) return false;
  const peal_context& context = *request.context;
  const auto state = std::atomic_ref(request.state).load(std::memory_order_acquire);
  if (state != peal_request::State::kPending || context.owner.inherited()) return false;
  return !glance_at_next(context).arrived() &&
         ticks() - context.tested_ticks.load(std::memory_order_relaxed) < kTicksBetweenTests;
}

// Ends every pending request with that error, for good.
void break_context(peal_context& context, peal_error error);
// Looks at connection (seldom) and heartbeat, and breaks the context when the card is gone.
void check_card(peal_context& context, uint64_t now_ns);
// The same, of a test that found nothing: the next ones need no lock for a while.
[[gnu::cold]] void look_after_card(peal_context& context);

// What it was started with is gone.
[[gnu::cold]] void forget_persistent(peal_request& request);
// Back among the free ones, as good as new.
inline void release_request(peal_request& request) {
  peal_context& context = *request.context;
  set_state(request, peal_request::State::kFree);
  request.detached = false;
  if (request.persistent != nullptr) [[unlikely]]
    forget_persistent(request);
  forget_end(request);
  request.generation++;
  request.next_free = context.free_requests;
  context.free_requests = &request;
}
// Nobody needs it any more: only forget_ended_groups() knows it.
inline bool has_ended(const peal_group& group) {
  const peal_request& own = group.own_request;
  return group.over || (!group.destroying && own.operation == PEAL_OPERATION_DESTROY &&
                        own.state == peal_request::State::kDone);
}
// A destroy of the persistent request's group, as the request's last operation: so there is a place
// in the ring for it. False when there is nothing more to destroy: then the group is over, or
// others' programs are in it.
[[gnu::cold]] bool leave_group(peal_request& request);
// The caller's last word about one that is not pending. A persistent one stays until its group has
// ended as well.
inline void let_go(peal_request& request) {
  if (request.persistent != nullptr && leave_group(request)) return;
  release_request(request);
}

uint64_t now_ns();

}  // namespace peal::host
