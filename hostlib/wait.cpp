// SPDX-License-Identifier: BSD-2-Clause
// Adaptive waiting; see wait.h.
#include "hostlib/wait.h"

#include <algorithm>
#include <chrono>

#include "hostlib/between_looks.h"
#include "hostlib/rings.h"

namespace peal::host {
namespace {

// Between looks at the card while asleep: what a dead card's waiters take to notice, at most.
constexpr int kSleepMs = 100;

// What is waited for may come behind something else.
template <typename Done>
bool look_on(peal_context& context, uint64_t until_ns, Lock& lock, Done done) {
  do {
    const Glance next = glance_at_next(context);
    lock.unlock();
    while (!next.arrived() && now_ns() < until_ns) pause_briefly();
    lock.lock();
    drain(context);
    if (done()) return true;
  } while (now_ns() < until_ns);
  return false;
}

template <typename Done>
bool wait_until(peal_context& context, uint64_t deadline_ns, Lock& lock, uint8_t operation,
                Done done) {
  drain(context);
  if (done()) return true;
  uint64_t now = now_ns();
  Wait wait(context.habit, now, operation);
  // One that had to end before would teach nothing.
  const uint64_t look_on_ns = wait.look_on_ns();
  if (look_on_ns != 0 && now + look_on_ns <= deadline_ns) {
    const bool there = look_on(context, now + look_on_ns, lock, done);
    const uint64_t before = now;
    now = now_ns();
    wait.looked_on(now - before, there);
    if (there) {
      wait.end(now);
      return true;
    }
  }
  while (now < deadline_ns && wait.looks(now)) {
    const bool alone = context.habit.alone;
    const bool timed = wait.times_yield();
    const Glance next = glance_at_next(context);
    lock.unlock();
    for (int i = 0; alone && i < Wait::kPollsAlone && !next.arrived(); i++) pause_briefly();
    const uint64_t own_ns = next.arrived() ? 0 : yield(timed);
    const uint64_t before = now;
    now = now_ns();
    lock.lock();
    wait.yielded(now - before, alone, own_ns);
    drain(context);
    if (done()) {
      wait.end(now);
      return true;
    }
    check_card(context, now);
    if (done()) return true;
  }
  while (now < deadline_ns) {
    const uint64_t left_ms = (deadline_ns - now) / 1'000'000 + 1;
    if (sleep_once(context, static_cast<int>(std::min<uint64_t>(left_ms, kSleepMs)), lock))
      context.sleeps++;
    now = now_ns();
    if (done()) {
      wait.end(now);
      return true;
    }
    check_card(context, now);
    if (done()) return true;
  }
  check_card(context, now);  // for those who come often and wait for nothing
  return done();
}

}  // namespace

bool sleep_once(peal_context& context, int timeout_ms, Lock& lock) {
  if (context.sleeper) {
    context.woken.wait_for(lock, std::chrono::milliseconds(timeout_ms));
    drain(context);
    return true;
  }
  // Announce it, fence, look again (abi/ring.h):
  // either the card sees the flag, or we its completion.
  peal_host_ring_set_sleeping(&context.ring, 1);
  const uint32_t token = context.transport->sleep_token();
  const bool sleeps = !drain(context) && context.broken == PEAL_OK;
  if (sleeps) {
    context.sleeper = true;
    lock.unlock();
    context.transport->sleep(token, timeout_ms);
    lock.lock();
    context.sleeper = false;
    drain(context);
  }
  peal_host_ring_set_sleeping(&context.ring, 0);
  context.woken.notify_all();
  return sleeps;
}

bool wait_done(peal_context& context, const peal_request& request, uint64_t deadline_ns,
               Lock& lock) {
  return wait_until(context, deadline_ns, lock, request.operation,
                    [&] { return request.state != peal_request::State::kPending; });
}

size_t first_done(std::span<peal_request* const> requests) {
  for (size_t i = 0; i < requests.size(); i++) {
    if (requests[i] != nullptr && requests[i]->state == peal_request::State::kDone) return i;
  }
  return PEAL_NO_INDEX;
}

bool wait_first(peal_context& context, std::span<peal_request* const> requests,
                uint64_t deadline_ns, Lock& lock) {
  const auto pending = [](const peal_request* each) {
    return each != nullptr && each->state == peal_request::State::kPending;
  };
  return wait_until(context, deadline_ns, lock, PEAL_OPERATION_NONE, [&] {
    return first_done(requests) != PEAL_NO_INDEX ||
           std::none_of(requests.begin(), requests.end(), pending);
  });
}

void wait_outstanding(peal_context& context, const peal_group& group, uint32_t outstanding,
                      Lock& lock) {
  wait_until(context, kForever, lock, PEAL_OPERATION_NONE,
             [&] { return group.outstanding <= outstanding; });
}

void wait_idle(peal_context& context, const peal_group& group, Lock& lock) {
  wait_until(context, kForever, lock, PEAL_OPERATION_NONE,
             [&] { return group.outstanding + group.unordered == 0; });
}

void wait_own_turn(peal_context& context, const peal_group& group, Lock& lock) {
  wait_until(context, kForever, lock, PEAL_OPERATION_NONE, [&] {
    return context.broken != PEAL_OK ||
           (group.own_request.state == peal_request::State::kFree &&
            group.outstanding < group.outstanding_max && ring_has_place(context));
  });
}

void wake_waiters(peal_context& context) {
  if (context.sleeper) context.transport->wake();
  context.woken.notify_all();
}

void wait_place(peal_context& context, Lock& lock) {
  wait_until(context, kForever, lock, PEAL_OPERATION_NONE,
             [&] { return context.broken != PEAL_OK || ring_has_place(context); });
}

}  // namespace peal::host
