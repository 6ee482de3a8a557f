// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/queue/turn.h"

#include "firmware/base/assert.h"
#include "firmware/group/member.h"
#include "firmware/host/context.h"
#include "firmware/queue/fetch.h"
#include "firmware/queue/gates.h"
#include "firmware/queue/list.h"
#include "firmware/queue/pool.h"
#include "firmware/queue/start.h"
#include "firmware/queue/tasks.h"

namespace peal::queue {
namespace {

constexpr TimeNs kRetryNs = 10'000;

// What a step leaves.
enum class Then : uint8_t {
  kGoesOn,
  kWaits,  // whatever it waits for wakes it
  kAgain,  // nothing says when there will be what it lacks
};

Then pass_on(const Scope& scope) {
  ++scope.queue.consumer;
  if (scope.queue.fetched == scope.queue.shape.count) return Then::kGoesOn;
  return fetch(scope) ? Then::kGoesOn : Then::kAgain;
}

bool is_last_pass(const Queue& queue) {
  return queue.passes_done + 1 >= queue.starts[queue.first_start].passes;
}

// Back to the beginning, for the next iteration.
void jump(const Scope& scope) {
  Queue& queue = scope.queue;
  pass_iterations(queue, 1);
  ++queue.passes_done;
  queue.consumer = 0;
  queue.gated = false;
  if (!is_resident(queue)) queue.fetched = 0;
}

// COMPLETE, and the JUMP behind it: the host may free the program as soon as it has the completion.
Then complete(const Scope& scope) {
  auto& [card, member, queue] = scope;
  if (queue.under_way > 0) return Then::kWaits;
  if (queue.fetched < queue.shape.count) return fetch(scope) ? Then::kWaits : Then::kAgain;
  count(card, PEAL_COUNTER_DESCRIPTORS, 2);
  if (is_last_pass(queue)) {
    end_start(scope);
    return Then::kGoesOn;
  }
  if (!queue.gated) {
    fail(card, queue,
         {.status = PEAL_STATUS_BAD_PROGRAM,
          .reason = PEAL_PROGRAM_REASON_CYCLE,
          .index = queue.shape.count - 1,
          .rank = PEAL_NO_RANK});
    return Then::kGoesOn;
  }
  jump(scope);
  return Then::kGoesOn;
}

// A start of no iterations: keys are looked at, and nothing is carried out.
Then look_at(const Scope& scope, const peal_descriptor& descriptor) {
  HostAddress address;
  if (!check_memory(scope, descriptor, &address)) return Then::kGoesOn;
  if (descriptor.opcode != PEAL_PROGRAM_JUMP) return pass_on(scope);
  end_start(scope);
  return Then::kGoesOn;
}

Then after(const Scope& scope, Issued issued) {
  switch (issued) {
    case Issued::kYes:
      count(scope.card, PEAL_COUNTER_DESCRIPTORS);
      return pass_on(scope);
    case Issued::kWaits:
      return Then::kWaits;
    case Issued::kAgain:
      count(scope.card, PEAL_COUNTER_NO_TASK);
      return Then::kAgain;
    default:
      return Then::kGoesOn;
  }
}

Issued issue(const Scope& scope, const peal_descriptor& descriptor) {
  auto& [card, member, queue] = scope;
  switch (descriptor.opcode) {
    case PEAL_PROGRAM_WAIT:
      return count_of(queue, descriptor.counter) >= descriptor.threshold ? Issued::kYes
                                                                         : Issued::kWaits;
    case PEAL_PROGRAM_SIGNAL:
      if (descriptor.rank != queue.shape.rank) return issue_task(scope, descriptor);
      tell(card, member, queue.shape.rank,
           {.queue = descriptor.queue,
            .counter = descriptor.counter,
            .steps = descriptor.steps,
            .iteration = queue.iteration});
      return Issued::kYes;
    default:
      return issue_task(scope, descriptor);
  }
}

Then carry_out(const Scope& scope, const peal_descriptor& descriptor) {
  Queue& queue = scope.queue;
  if (descriptor.opcode == PEAL_PROGRAM_COMPLETE) return complete(scope);
  if (!is_scheduled(queue)) return Then::kWaits;
  const Issued issued = issue(scope, descriptor);
  if (issued == Issued::kYes && peal_is_gate(&queue.shape, &descriptor)) queue.gated = true;
  return after(scope, issued);
}

// The first start that is outstanding begins. False: there is none.
bool begin(Queue& queue) {
  if (queue.start_count == 0) return false;
  queue.running = true;
  queue.gated = false;
  return true;
}

// One descriptor, or what is needed for it.
Then step(const Scope& scope) {
  auto& [card, member, queue] = scope;
  if (!queue.running && !begin(queue)) return Then::kWaits;
  if (queue.doomed && queue.failure.status == PEAL_STATUS_OK) queue.failure = queue.doom;
  if (queue.failure.status != PEAL_STATUS_OK) {
    if (!is_quiet(queue)) return Then::kWaits;
    end_start(scope);
    return Then::kGoesOn;
  }
  if (queue.sources_phase != Sources::kKnown) {
    if (!fetch_sources(scope)) return Then::kAgain;
    if (queue.sources_phase != Sources::kKnown) return Then::kWaits;
  }
  if (queue.consumer == queue.fetched) return fetch(scope) ? Then::kWaits : Then::kAgain;
  const peal_descriptor& descriptor = cached(queue, queue.consumer);
  if (queue.starts[queue.first_start].passes == 0) return look_at(scope, descriptor);
  return carry_out(scope, descriptor);
}

Then take_turn(const Scope& scope) {
  Then then = Then::kGoesOn;
  for (uint32_t left = CONFIG_QUEUE_QUOTA; left > 0 && then == Then::kGoesOn; --left) {
    then = step(scope);
  }
  return then;
}

bool is_gone(Card& card, const Queue& queue) {
  const Member* member = find_member(card, queue.member);
  return member == nullptr || member->phase != MemberPhase::kActive;
}

// Why the queue's group is over.
Failure doom_of(const Membership& self, const Queue& queue) {
  const bool known = self.handle == queue.member && self.poisoned;
  return {.status = known ? PEAL_STATUS_PEER_DEAD : PEAL_STATUS_CLOSED,
          .reason = PEAL_PROGRAM_REASON_NONE,
          .index = 0,
          .rank = known ? self.dead_rank : PEAL_NO_RANK};
}

// Members may have died, or gone: their programs end with them.
void look_after_members(Card& card) {
  card.queues.failing = false;
  for (Queue& queue : card.queues.queues) {
    if (!queue.in_use || queue.leaving) continue;
    const Membership& self = card.members[queue.member & 0xffff].membership;
    queue.leaving = is_gone(card, queue);
    if (!queue.leaving && (queue.doomed || !self.poisoned)) continue;
    if (!queue.doomed) queue.doom = doom_of(self, queue);
    queue.doomed = true;
    wake(card, queue);
  }
}

}  // namespace

void take_turns(Card& card) {
  QueuePool& pool = card.queues;
  if (pool.failing) look_after_members(card);
  pool.patient = 0;
  // Those that are listed meanwhile have theirs in the next turn.
  for (uint32_t left = pool.listed; left > 0; --left) {
    Queue& queue = take_listed(card);
    if (!queue.in_use) continue;
    const Then then = take_turn({card, card.members[queue.member & 0xffff], queue});
    if (then != Then::kWaits) {
      wake(card, queue);
      if (then == Then::kAgain) ++pool.patient;
    } else if (queue.leaving && queue.start_count == 0 && is_quiet(queue)) {
      const ContextId context = queue.context;
      release(card, queue);
      context_try_close(card, context);
    }
  }
  pool.due = pool.listed > 0;
}

void expect_turn(Card& card) {
  QueuePool& pool = card.queues;
  if (pool.listed == 0) return;
  // Not in this turn of the runner's: what has arrived comes first.
  card.timers.arm_no_later(pool.timer, card.now + (pool.listed > pool.patient ? 1 : kRetryNs));
}

}  // namespace peal::queue
