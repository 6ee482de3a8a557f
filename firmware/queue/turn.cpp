// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/queue/turn.h"

#include <cstring>

#include "firmware/base/kept.h"
#include "firmware/group/member.h"
#include "firmware/host/context.h"
#include "firmware/queue/failed.h"
#include "firmware/queue/fetch.h"
#include "firmware/queue/gates.h"
#include "firmware/queue/held.h"
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
  if (!is_resident(queue)) set_fetched(queue, 0);
  heed_failures(scope.card, queue);
}

// COMPLETE, and the JUMP behind it: the host may free the program as soon as it has the completion.
Then complete(const Scope& scope) {
  auto& [card, member, queue] = scope;
  if (queue.held_count > 0) return Then::kWaits;
  if (queue.under_way > 0) {
    queue.awaits = Awaits::kAllTasks;
    return Then::kWaits;
  }
  if (queue.fetched < queue.shape.count) return fetch(scope) ? Then::kWaits : Then::kAgain;
  count(card, PEAL_COUNTER_DESCRIPTORS, 2);
  if (is_last_pass(queue)) {
    end_start(scope);
    return queue.start_count == 0 ? Then::kWaits : Then::kGoesOn;
  }
  if (!queue.gated) {
    fail_by_program(card, queue, queue.shape.count - 1, PEAL_PROGRAM_REASON_CYCLE);
    return Then::kGoesOn;
  }
  jump(scope);
  return Then::kGoesOn;
}

// A start of no iterations: keys are looked at, and nothing is carried out.
Then look_at(const Scope& scope, const peal_descriptor& descriptor) {
  HostAddress address;
  if (!check_memory(scope, scope.queue.consumer, descriptor, &address)) return Then::kGoesOn;
  if (descriptor.opcode != PEAL_PROGRAM_JUMP) return pass_on(scope);
  end_start(scope);
  return Then::kGoesOn;
}

Then wait_for(Queue& queue, uint32_t counter, uint64_t count) {
  await_counter(queue, counter, count);
  return Then::kWaits;
}

void tell_own(const Scope& scope, const peal_descriptor& signal) {
  const Queue& queue = scope.queue;
  tell(scope.card, scope.member, queue.shape.rank,
       {.queue = signal.queue,
        .counter = signal.counter,
        .steps = signal.steps,
        .iteration = queue.origin.iteration});
}

// Of a descriptor that could not be issued.
Then left_by(Card& card, Issued issued) {
  if (issued == Issued::kWaits) return Then::kWaits;
  if (issued == Issued::kFailed) return Then::kGoesOn;
  count(card, PEAL_COUNTER_NO_TASK);
  return Then::kAgain;
}

// Up to here descriptors may be issued.
uint32_t scheduling_pointer(Queue& queue) {
  return is_session(queue) ? queue.scheduled + count_of(queue, 0) : ~uint32_t{0};
}

// What is seldom: not a put that is known to be good.
[[gnu::noinline]] Issued issue_seldom(const Scope& scope, uint32_t index, Way way) {
  Queue& queue = scope.queue;
  const peal_descriptor& descriptor = kept(queue.cache[index % kDescriptors]);
  if (way == Way::kPut) return issue_put(scope, index, descriptor);
  if (way == Way::kSignal) return issue_signal(scope, index, descriptor);
  if (way == Way::kGated) return issue_or_hold(scope, index, descriptor);
  // It lasts until the other rank has come to its half, and keeps a task and a record until then,
  // which a held put may need that this rank waits for.
  if (queue.held_count != 0) return Issued::kWaits;
  return issue_message(scope, index, descriptor);
}

// Carries out descriptors of one iteration, one after the other, up to where something else is to
// be looked at. Nothing has failed.
[[gnu::always_inline]] inline Then carry_out(const Scope& scope, uint32_t* quota) {
  auto& [card, member, queue] = scope;
  const uint32_t first = queue.consumer;
  uint32_t there = queue.look_at;
  if (first >= there) {
    if (!fetch(Scope(scope))) return Then::kAgain;
    if (first == queue.fetched) return Then::kWaits;
    there = queue.fetched;
  }
  const uint32_t scheduled = scheduling_pointer(queue);
  const uint32_t quota_end = first + *quota;
  const uint32_t end = least(least(there, scheduled), quota_end);
  uint32_t at = first;
  Then then = Then::kGoesOn;
  bool completes = false;
  while (at < end) {
    const Known known = queue.known[at % kDescriptors];
    const peal_descriptor& descriptor = kept(queue.cache[at % kDescriptors]);
    bool goes_on = true;
    if (is_good_put(known.step)) {
      if (!has_task(queue)) {
        then = Then::kWaits;
        break;
      }
      if (!start_put(scope, at, descriptor, known.region)) {
        then = left_by(card, Issued::kAgain);
        break;
      }
      queue.gated = true;
    } else if (known.step.way == Way::kWait) {
      if (count_of(queue, descriptor.counter) < descriptor.threshold) {
        then = wait_for(queue, descriptor.counter, descriptor.threshold);
        break;
      }
      if (!queue.gated) queue.gated = peal_is_gate(&queue.shape, &descriptor) != 0;
    } else if (known.step.way == Way::kComplete) {
      completes = true;
      break;
    } else {
      if (known.step.way == Way::kTell) {
        tell_own(Scope(scope), descriptor);
      } else {
        const Issued issued = issue_seldom(Scope(scope), at, known.step.way);
        if (issued > Issued::kOver) {
          then = left_by(card, issued);
          break;
        }
        queue.gated = true;
      }
      // It may have moved the scheduling pointer on, or have told too much.
      goes_on = !is_session(queue) && queue.issuing;
    }
    count(card, PEAL_COUNTER_DESCRIPTORS);
    queue.consumer = ++at;
    if (!goes_on) {
      *quota = quota_end - at;
      return Then::kGoesOn;
    }
  }
  *quota = quota_end - at;
  if (then != Then::kGoesOn || *quota == 0) return then;
  if (at == scheduled && at < queue.fetched) {
    completes = queue.known[at % kDescriptors].step.way == Way::kComplete;
    if (!completes) return wait_for(queue, 0, uint64_t{at} - queue.scheduled + 1);
  }
  if (!completes) return Then::kGoesOn;
  --*quota;
  return complete(Scope(scope));
}

// The first start that is outstanding begins. False: there is none.
bool begin(const Scope& scope) {
  Queue& queue = scope.queue;
  if (queue.start_count == 0) return false;
  queue.running = true;
  queue.gated = false;
  heed_failures(scope.card, queue);
  return true;
}

// Of a start that has failed: its memory is the user's again when nothing is written there. (Where
// the group is over nobody knows any more what that is of; and the member's place is another's only
// when nothing of it is under way.)
bool still_lands(const Scope& scope) {
  auto& [card, member, queue] = scope;
  if (queue.doomed) return member.membership.handle == queue.member && member.dma != 0;
  const Start& start = queue.starts[queue.first_start];
  const Network* network = card.queues.network;
  return network != nullptr &&
         network->is_landing(card, member, queue.origin.slot, queue.origin.iteration,
                             start.first + uint64_t{start.passes});
}

// What a start that has failed still needs.
[[gnu::noinline]] Then end_failed(const Scope& scope) {
  Queue& queue = scope.queue;
  if (!queue.told && !tell_failure(scope)) return Then::kAgain;
  if (!is_quiet(queue)) return Then::kWaits;
  if (!all_have_begun(scope)) return Then::kWaits;
  if (still_lands(scope)) return Then::kAgain;
  end_start(scope);
  return Then::kGoesOn;
}

// What comes of preparations, and how many descriptors of its quota they took.
struct Prepared {
  Then then;
  uint32_t taken;
};

// What is needed before descriptors are carried out, one after the other: then `issuing`.
[[gnu::noinline]] Prepared prepare(const Scope& scope) {
  Queue& queue = kept(scope.queue);
  if (!queue.running && !begin(scope)) return {Then::kWaits, 0};
  if (queue.doomed && queue.failure.status == PEAL_STATUS_OK) queue.failure = queue.doom;
  if (queue.failure.status != PEAL_STATUS_OK) return {end_failed(scope), 1};
  if (queue.sources_phase != Sources::kKnown) {
    if (!fetch_sources(scope)) return {Then::kAgain, 0};
    if (queue.sources_phase != Sources::kKnown) return {Then::kWaits, 0};
  }
  if (queue.starts[queue.first_start].passes > 0) {
    queue.issuing = true;
    return {Then::kGoesOn, 0};
  }
  if (queue.consumer == queue.fetched) return {fetch(scope) ? Then::kWaits : Then::kAgain, 0};
  return {look_at(scope, cached(queue, queue.consumer)), 1};
}

// (What other functions are handed is a copy: the scope at hand stays in registers.)
[[gnu::always_inline]] inline Then take_turn(Card& card, Member& member, Queue& queue) {
  const Scope scope = {card, member, queue};
  queue.awaits = Awaits::kAnything;
  uint32_t left = CONFIG_QUEUE_QUOTA;
  Then then = Then::kGoesOn;
  if (queue.held_count != 0) {
    uint32_t quota = left;
    const Issued issued = issue_held(Scope(scope), &quota);
    if (issued != Issued::kYes) then = left_by(card, issued);
    left = quota;
  }
  while (left > 0 && then == Then::kGoesOn) {
    if (queue.issuing) {
      then = carry_out(scope, &left);
      continue;
    }
    const Prepared prepared = prepare(Scope(scope));
    left -= prepared.taken;
    then = prepared.then;
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

// Keys have gone, so that what was found good is looked at again; or members have died, or gone:
// their programs end with them.
void look_after_queues(Card& card) {
  card.queues.gone = false;
  if (card.queues.in_use == 0) return;
  for (Queue& queue : card.queues.queues) {
    if (!queue.in_use) continue;
    for (Known& each : queue.known) each.step.good = false;
    std::memset(queue.named, 0, sizeof(queue.named));
    if (queue.leaving) continue;
    const Membership& self = card.members[queue.member & 0xffff].membership;
    queue.leaving = is_gone(card, queue);
    if (!queue.leaving && (queue.doomed || !self.poisoned)) continue;
    if (!queue.doomed) queue.doom = doom_of(self, queue);
    queue.doomed = true;
    queue.issuing = false;
    wake(card, queue);
  }
}

}  // namespace

void take_turns(Card& card) {
  QueuePool& pool = card.queues;
  if (pool.gone) look_after_queues(card);
  pool.patient = 0;
  card.due.queues = false;
  // Those that are listed meanwhile have theirs in the next turn.
  for (Queue* next = take_listed(pool); next != nullptr;) {
    Queue& queue = *next;
    next = queue.next;
    queue.listed = false;
    if (!queue.in_use) continue;
    const Then then = take_turn(card, kept(card.members[queue.member & 0xffff]), queue);
    if (then != Then::kWaits) {
      wake(card, queue);
      if (then == Then::kAgain) ++pool.patient;
    } else if (queue.leaving && queue.start_count == 0 && is_quiet(queue)) {
      const ContextId context = queue.context;
      release(card, queue);
      context_try_close(card, context);
    }
  }
}

void expect_turn(Card& card) {
  QueuePool& pool = card.queues;
  if (pool.listed == 0) return;
  // Not in this turn of the runner's: what has arrived comes first.
  card.timers.arm_no_later(pool.timer, card.now + (pool.listed > pool.patient ? 1 : kRetryNs));
}

}  // namespace peal::queue
