// SPDX-License-Identifier: BSD-2-Clause
// Requests in, completions out. All functions need the context's lock, where nothing else is said.
#pragma once

#include <atomic>

#include "hostlib/handles.h"
#include "hostlib/posting.h"

namespace peal::host {

// Sizes the request table to the rings of the transport's window.
void start_rings(peal_context& context);

// What the caller knows of a submission; the rest is filled in here.
// Whether one more operation may be posted, once those that have completed are taken: TOO_MANY when
// the group or the context has as many outstanding as the card takes, or why the context is broken.
peal_error make_room(peal_group& group);
inline peal_error check_room(peal_group& group) {
  const peal_context& context = *group.context;
  const bool room = group.outstanding < group.outstanding_max && !context.free_requests.empty() &&
                    context.broken == PEAL_OK;
  return room ? PEAL_OK : make_room(group);
}

// Posts it as the group's next operation. TOO_MANY when the group or the context has as many
// outstanding as the card takes: nothing was posted then. Without `request` it is detached.
peal_error submit(peal_group& group, const Posting& posting, peal_request** request);
// The group's last operation, with its own request. Needs no free request, only a place in the ring
// (ring_has_place()).
peal_error submit_destroy(peal_group& group);
[[nodiscard]] bool ring_has_place(const peal_context& context);
// Posts an inactive persistent request's operation once more.
peal_error start_again(peal_request& request);
// TOO_MANY: all of the context's requests are in use.
peal_error fail_no_request(const peal_context& context);

// Takes what has completed. True when anything was; wakes threads that wait for others' requests.
bool drain(peal_context& context);

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
  return ~uint64_t{0};  // none: each test takes the lock
#endif
}
// Half a millisecond or so; nothing depends on how long they are.
inline constexpr uint64_t kTicksBetweenTests = uint64_t{1} << 20;

// Without the lock. True when there is certainly nothing new for this request, and the card was
// looked after a moment ago: most tests find that. Otherwise the lock says.
inline bool nothing_yet(peal_request& request) {
  const peal_context& context = *request.context;
  const auto state = std::atomic_ref(request.state).load(std::memory_order_acquire);
  if (state != peal_request::State::kPending || context.guard.inherited()) return false;
  return !glance_at_next(context).arrived() &&
         ticks() - context.tested_ticks.load(std::memory_order_relaxed) < kTicksBetweenTests;
}
// Of tests that took the lock.
void note_test(peal_context& context);

void set_state(peal_request& request, peal_request::State state);

// Ends every pending request with that error, for good.
void break_context(peal_context& context, peal_error error);
// Looks at connection (seldom) and heartbeat, and breaks the context when the card is gone.
void check_card(peal_context& context, uint64_t now_ns);

// Back among the free ones.
void release_request(peal_request& request);
// The caller's last word about one that is not pending. A persistent one stays until its group has
// ended as well.
void let_go(peal_request& request);

// What the card is told of a request, and tells of it.
inline uint64_t cookie_of(const peal_request& request) {
  return uint64_t{request.generation} << 32 | request.index;
}
// Of a request of the context's table, which may be another one's by now.
inline bool is_pending(const peal_context& context, uint64_t cookie) {
  const peal_request& request = context.requests[static_cast<uint32_t>(cookie)];
  return cookie_of(request) == cookie && request.state == peal_request::State::kPending;
}

uint64_t now_ns();

}  // namespace peal::host
