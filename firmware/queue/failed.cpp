// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/queue/failed.h"

#include <bit>

#include "firmware/base/assert.h"
#include "firmware/group/liveness.h"
#include "firmware/group/member.h"
#include "firmware/p2p/abandoned.h"
#include "firmware/queue/list.h"
#include "firmware/queue/pool.h"
#include "firmware/wire/transmit.h"

namespace peal::queue {
namespace {

// What becomes of news.
enum class Noted : uint8_t { kNew, kKnown, kNoRoom };

struct News {
  uint16_t name;  // of the program
  uint8_t hops;
  bool together;
  uint64_t from;
  uint64_t to;
  Failure why;  // its rank: whose start failed
};

uint16_t all_rounds(const Membership& self) {
  return static_cast<uint16_t>((1u << self.rounds) - 1);
}

bool is_complete(const Membership& self, const FailedIterations& failed) {
  return failed.entered && failed.heard == all_rounds(self);
}

bool lasts(Card& card, const FailedIterations& failed) {
  const Member* member = find_member(card, failed.member);
  return member != nullptr && member->phase == MemberPhase::kActive && !member->membership.poisoned;
}

// May its place be taken? Not before all peers know it, and the own program is past it.
bool is_spent(Card& card, const FailedIterations& failed) {
  if (!lasts(card, failed)) return true;
  if (failed.untold != 0) return false;
  const Member& member = *find_member(card, failed.member);
  if (failed.together && !is_complete(member.membership, failed)) return false;
  const Queue* queue = find_named(card, member, failed.name);
  return queue == nullptr || queue->origin.iteration >= failed.to;
}

FailedIterations* find_known(QueuePool& pool, uint32_t member, const News& news) {
  for (uint32_t i = 0; i < pool.failed_top; ++i) {
    FailedIterations& each = pool.failed[i];
    if (each.in_use && each.member == member && each.name == news.name && each.from <= news.from &&
        each.to >= news.to) {
      return &each;
    }
  }
  return nullptr;
}

// One of the same rank that this goes on: a rank that fails start after start needs one place.
FailedIterations* find_growing(QueuePool& pool, uint32_t member, const News& news) {
  for (uint32_t i = 0; i < pool.failed_top; ++i) {
    FailedIterations& each = pool.failed[i];
    if (each.in_use && !each.together && each.member == member && each.name == news.name &&
        each.why.rank == news.why.rank && each.from <= news.to && each.to >= news.from) {
      return &each;
    }
  }
  return nullptr;
}

FailedIterations* find_one(QueuePool& pool, uint32_t member, uint16_t name, uint64_t iteration) {
  const News one = {.name = name,
                    .hops = 0,
                    .together = false,
                    .from = iteration,
                    .to = iteration + 1,
                    .why = {}};
  return find_known(pool, member, one);
}

// Of the iteration that the queue is in.
FailedIterations* find_of(Card& card, const Queue& queue) {
  return find_one(card.queues, queue.member, queue.name, queue.origin.iteration);
}

// A free place, or that of the oldest that is spent. Null: none.
FailedIterations* find_place(Card& card, uint32_t member, bool own) {
  QueuePool& pool = card.queues;
  const ContextId context = card.members[member & 0xffff].context;
  FailedIterations* hole = nullptr;
  FailedIterations* oldest = nullptr;
  uint32_t of_member = 0;
  uint32_t of_context = 0;
  for (uint32_t i = 0; i < pool.failed_top; ++i) {
    FailedIterations& each = pool.failed[i];
    if (!each.in_use) {
      hole = &each;
    } else if (is_spent(card, each)) {
      if (oldest == nullptr || each.noted_ns < oldest->noted_ns) oldest = &each;
    } else {
      if (each.member == member) ++of_member;
      if (card.members[each.member & 0xffff].context == context) ++of_context;
    }
  }
  if (of_context >= kFailedOfContext || (!own && of_member >= kFailedOfMember)) return nullptr;
  if (hole != nullptr) return hole;
  return pool.failed_top < kFailures ? &pool.failed[pool.failed_top++] : oldest;
}

peal_failed body_of(const FailedIterations& failed) {
  return {.from = failed.from,
          .to = failed.to,
          .rank = failed.why.rank,
          .index = failed.why.index,
          .program = failed.name,
          .status = static_cast<uint16_t>(failed.why.status),
          .reason = static_cast<uint16_t>(failed.why.reason),
          .hops = failed.hops,
          .begun = failed.begun};
}

void send(Card& card, const Membership& self, uint32_t entry, uint8_t type,
          const peal_failed& body) {
  const SmallPacket what = {.payload = &body, .length = sizeof(body)};
  if (send_small(card, self, self.peers[entry].address, membership_kind(self, type), what)) {
    count(card, PEAL_COUNTER_SENT_FAILURE);
  }
}

// To those that have not answered: a card that stays silent is dead in the end.
void tell_untold(Card& card, FailedIterations& failed) {
  Member& member = *find_member(card, failed.member);
  const Membership& self = member.membership;
  for (uint32_t left = failed.untold; left != 0; left &= left - 1) {
    const auto entry = static_cast<uint32_t>(std::countr_zero(left));
    send(card, self, entry, PEAL_PACKET_FAILURE, body_of(failed));
    await_peer(card, member, self.peers[entry].address.rank);
  }
  const TimeNs longest = card.timeouts.nack_max_ns;
  const TimeNs wait = card.timeouts.nack_ns << failed.backoff;
  failed.next_ns = card.now + (wait < longest ? wait : longest);
  if (wait < longest) ++failed.backoff;
  if (failed.untold != 0) card.timers.arm_no_later(card.queues.failure_timer, failed.next_ns);
}

uint32_t all_peers(const Membership& self) {
  uint32_t mask = 0;
  for (uint32_t entry = 0; entry < 2u * self.rounds; ++entry) {
    if (!is_repeated_entry(entry, self.ranks)) mask |= 1u << entry;
  }
  return mask;
}

// Has this rank begun these iterations? A program that is gone here has done with them.
bool has_begun(const Queue* queue, const FailedIterations& failed) {
  if (queue == nullptr || queue->origin.iteration > failed.from) return true;
  return queue->running && queue->origin.iteration == failed.from &&
         queue->starts[queue->first_start].passes > 0;
}

// As a dissemination: who has begun, and has heard of rank - 2^i in all rounds i below k, says so
// to rank + 2^k. What was heard before this rank has got so far counts.
// False: it is as far as before.
bool advance(Card& card, const Member& member, FailedIterations& failed) {
  if (!failed.together) return false;
  const Membership& self = member.membership;
  Queue* queue = find_named(card, member, failed.name);
  failed.entered = failed.entered || has_begun(queue, failed);
  if (queue != nullptr && is_complete(self, failed)) wake(card, *queue);
  const int reached = failed.entered ? 1 + std::countr_one(failed.heard) : 0;
  const auto begun = static_cast<uint8_t>(PEAL_FAILED_TOGETHER | reached);
  if (failed.begun == begun) return false;
  failed.begun = begun;
  for (int round = 0; round < reached && round < self.rounds; ++round) {
    failed.untold |= 1u << peer_ahead(static_cast<uint32_t>(round));
  }
  return true;
}

void advance_and_tell(Card& card, const Member& member, FailedIterations& failed) {
  if (!advance(card, member, failed)) return;
  failed.backoff = 0;
  tell_untold(card, failed);
}

// A peer says how far it is.
void hear_begun(Card& card, const Member& member, uint32_t entry, uint8_t begun,
                FailedIterations& failed) {
  if ((begun & PEAL_FAILED_TOGETHER) == 0) return;
  const Membership& self = member.membership;
  failed.together = true;
  const uint32_t reached = begun & ~uint32_t{PEAL_FAILED_TOGETHER};
  for (uint32_t round = 0; round < self.rounds && round < reached; ++round) {
    const bool behind =
        self.peers[peer_behind(round)].address.rank == self.peers[entry].address.rank;
    if (behind) failed.heard |= static_cast<uint16_t>(1u << round);
  }
  advance_and_tell(card, member, failed);
}

// Its own program's start, if it is in those iterations now.
void end_own(Card& card, const Member& member, const FailedIterations& failed) {
  Queue* queue = find_named(card, member, failed.name);
  if (queue != nullptr && queue->running) heed(card, *queue);
}

// `teller`: the entry of the peer that said so, or kNoPeer: it is this rank's own.
Noted note(Card& card, Member& member, const News& news, uint32_t teller) {
  QueuePool& pool = card.queues;
  const Membership& self = member.membership;
  if (find_known(pool, self.handle, news) != nullptr) return Noted::kKnown;
  const bool own = teller == kNoPeer;
  FailedIterations* failed = find_growing(pool, self.handle, news);
  if (failed != nullptr) {
    if (news.from < failed->from) failed->from = news.from;
    if (news.to > failed->to) failed->to = news.to;
  } else {
    failed = find_place(card, self.handle, own);
    if (failed == nullptr) return Noted::kNoRoom;
    *failed = {};
    failed->in_use = true;
    failed->name = news.name;
    failed->member = self.handle;
    failed->from = news.from;
    failed->to = news.to;
  }
  failed->why = news.why;
  failed->hops = news.hops;
  const Queue* queue = find_named(card, member, news.name);
  failed->together = queue != nullptr ? queue->origin.together : news.together;
  failed->backoff = 0;
  failed->noted_ns = card.now;
  const bool goes_on = own || news.hops > 0;
  if (goes_on) failed->untold = all_peers(self);
  const bool whole = failed->from == news.from && failed->to == news.to;
  if (!own && whole) failed->untold &= ~(1u << teller);
  (void)advance(card, member, *failed);
  tell_untold(card, *failed);
  if (pool.network != nullptr) pool.network->throw_away(card, member);
  end_own(card, member, *failed);
  return Noted::kNew;
}

News news_of(const Queue& queue, const Membership& self, uint64_t from, uint64_t to) {
  News news = {.name = queue.name,
               .hops = self.rounds,
               .together = queue.origin.together,
               .from = from,
               .to = to,
               .why = queue.failure};
  if (!news.why.elsewhere) news.why.rank = self.rank;
  news.why.elsewhere = true;
  return news;
}

struct Iteration {
  uint16_t program;  // its name
  bool together;
  uint64_t number;
};
// One that has failed on that rank; this one may not be in it. False: there is no room.
bool note_one(Card& card, Member& member, const Iteration& iteration, Rank rank, Failure why) {
  why.rank = rank;
  why.elsewhere = true;
  const News news = {.name = iteration.program,
                     .hops = member.membership.rounds,
                     .together = iteration.together,
                     .from = iteration.number,
                     .to = iteration.number + 1,
                     .why = why};
  return note(card, member, news, kNoPeer) != Noted::kNoRoom;
}

// There is no record for what will not be said again. What lies between two such fails with them.
void remember(Card& card, Queue& queue, uint64_t iteration, const Failure& why) {
  count(card, PEAL_COUNTER_NO_FAILURE);
  if (iteration < queue.origin.iteration) return;  // it is over
  Unnoted& unnoted = queue.unnoted;
  if (unnoted.to <= queue.origin.iteration) unnoted = {iteration, iteration, why};
  if (iteration < unnoted.from) unnoted.from = iteration;
  if (iteration >= unnoted.to) unnoted.to = iteration + 1;
  card.queues.unnoted = 1;
}

// The same of one of this queue's, which is not in it.
void note_other(Card& card, Member& member, Queue& queue, uint64_t iteration, Rank rank,
                Failure why) {
  if (note_one(card, member, {queue.name, queue.origin.together, iteration}, rank, why)) return;
  why.rank = rank;
  why.elsewhere = true;
  remember(card, queue, iteration, why);
}

// As it is in a slot.
uint16_t name_of(uint16_t program) { return static_cast<uint16_t>(program - 1); }

Failure failure_of(const p2p::MissingPut& put) {
  return {.status = put.status,
          .reason = PEAL_PROGRAM_REASON_NONE,
          .index = put.index,
          .rank = put.rank,
          .elsewhere = false};
}

// Was it this program's last iteration, and well? The next one is where it may be told, then, that
// a put of that one is there.
bool has_just_ended_well(const Queue& queue, uint64_t iteration) {
  return queue.origin.iteration == iteration + 1 && queue.failed_before <= iteration;
}

// Of the program of that name, which tells or is told of the put. False: there is no room.
bool note_missing_of(Card& card, Member& member, uint16_t name, const p2p::MissingPut& put,
                     Rank rank) {
  const Queue* queue = find_named(card, member, name);
  const Failure why = failure_of(put);
  // (The later one first: when this is asked again for want of room, the next one may have ended.)
  if (put.late && queue != nullptr && has_just_ended_well(*queue, put.iteration) &&
      !note_one(card, member, {name, put.together, put.iteration + 1}, rank, why)) {
    return false;
  }
  return note_one(card, member, {name, put.together, put.iteration}, rank, why);
}

// By it that rank's start has failed, and so have those that it tells of what is behind it. False
// (counted): there is no room.
bool note_missing(Card& card, Member& member, const p2p::MissingPut& put, Rank rank) {
  bool noted = note_missing_of(card, member, name_of(put.program), put, rank);
  for (const uint16_t told : put.told) {
    if (told == 0) break;
    noted = noted && note_missing_of(card, member, name_of(told), put, rank);
  }
  if (!noted) count(card, PEAL_COUNTER_NO_FAILURE);
  return noted;
}

// Values of a packet that cannot be.
bool is_sound(const Membership& self, const peal_failed& body) {
  return body.from < body.to && body.rank < self.ranks && body.program != PEAL_NO_QUEUE &&
         body.status != PEAL_STATUS_OK && body.status < PEAL_STATUS_COUNT &&
         body.reason < PEAL_PROGRAM_REASON_COUNT && body.hops <= self.rounds &&
         (body.begun == 0 || ((body.begun & PEAL_FAILED_TOGETHER) != 0 &&
                              (body.begun & ~PEAL_FAILED_TOGETHER) <= self.rounds + 1));
}

}  // namespace

bool tell_failure(const Scope& scope) {
  auto& [card, member, queue] = scope;
  const Start& start = queue.starts[queue.first_start];
  // (A start of no iterations is this rank's alone; a group that is over has told everybody.)
  if (start.passes == 0 || queue.doomed) {
    queue.told = true;
    return true;
  }
  News news = news_of(queue, member.membership, queue.origin.iteration,
                      start.first + uint64_t{start.passes});
  bool noted = note(card, member, news, kNoPeer) != Noted::kNoRoom;
  // Who waits for this program to tell another one waits in vain, too.
  for (uint32_t i = 0; i < queue.tells_count && noted; ++i) {
    news.name = name_of(queue.tells[i]);
    noted = note(card, member, news, kNoPeer) != Noted::kNoRoom;
  }
  if (!noted) {
    count(card, PEAL_COUNTER_NO_FAILURE);
    return false;
  }
  queue.told = true;
  FailedIterations* failed = find_of(card, queue);
  if (failed != nullptr) advance_and_tell(card, member, *failed);
  if (card.queues.network != nullptr) card.queues.network->give_up(card, queue.index);
  return true;
}

void fail_iteration(Card& card, Queue& queue, uint64_t iteration, const Failure& why) {
  Member& member = card.members[queue.member & 0xffff];
  note_other(card, member, queue, iteration, member.membership.rank, why);
}

bool fail_posted(Card& card, p2p::MissingPut& refused) {
  Member& member = card.members[refused.member];
  if (member.phase != MemberPhase::kActive || refused.program == 0) return true;
  Queue* queue = find_named(card, member, name_of(refused.program));
  if (queue != nullptr && queue->running && queue->origin.iteration == refused.iteration) {
    fail(card, *queue, failure_of(refused));
    return true;
  }
  // This rank's start of it is over: it is the others that wait.
  p2p::list_told(card, refused.member, refused.program, refused.told);
  if (!note_missing(card, member, refused, member.membership.rank)) return false;
  // (Where it failed its host knows, and those that it told.)
  refused.late = queue == nullptr || queue->failed_before != refused.iteration + 1;
  return true;
}

bool fail_skipped(Card& card, const p2p::MissingPut& skipped) {
  Member& member = card.members[skipped.member];
  if (member.phase != MemberPhase::kActive || member.membership.poisoned) return true;
  return note_missing(card, member, skipped, skipped.rank);
}

bool fail_uncopied(Card& card, p2p::MissingPut& uncopied) {
  Member& member = card.members[uncopied.member];
  if (member.phase != MemberPhase::kActive || member.membership.poisoned) return true;
  Queue* queue = find_named(card, member, name_of(uncopied.program));
  if (queue != nullptr && queue->running) {
    fail(card, *queue, failure_of(uncopied));
    if (!queue->told && !tell_failure({card, member, *queue})) return false;
    if (queue->origin.iteration == uncopied.iteration) return true;
  }
  // Of a start of several iterations it is an earlier one's.
  p2p::list_told(card, uncopied.member, uncopied.program, uncopied.told);
  return note_missing(card, member, uncopied, member.membership.rank);
}

bool is_told_in_vain(Card& card, Member& member, const p2p::Noticed& noticed) {
  const p2p::Notice& notice = noticed.notice;
  const uint64_t iteration = notice.iteration;
  if (noticed.program == 0 || iteration == ~uint64_t{0}) return false;  // (None has that number.)
  const uint16_t name = name_of(noticed.program);
  const FailedIterations* failed = find_one(card.queues, member.membership.handle, name, iteration);
  if (failed == nullptr) return false;
  count(card, PEAL_COUNTER_NOTICES_STALE);
  Queue* told = notice.queue == name ? nullptr : find_named(card, member, notice.queue);
  if (told == nullptr || !may_tell(*told, noticed.source, notice.counter)) return true;
  const Failure why = failed->why;
  if (told->running && told->origin.iteration == iteration) {
    count(card, PEAL_COUNTER_STARTS_TOLD);
    fail(card, *told, why);
  } else {
    note_other(card, member, *told, iteration, why.rank, why);
  }
  return true;
}

bool all_have_begun(const Scope& scope) {
  auto& [card, member, queue] = scope;
  if (!queue.origin.together || queue.doomed) return true;
  const FailedIterations* failed = find_of(card, queue);
  return failed == nullptr || is_complete(member.membership, *failed);
}

Rank awaited_to_begin(Card& card, const Queue& queue) {
  const Membership& self = card.members[queue.member & 0xffff].membership;
  const FailedIterations* failed = queue.origin.together ? find_of(card, queue) : nullptr;
  if (failed == nullptr || failed->heard == all_rounds(self)) return PEAL_NO_RANK;
  return self.peers[peer_behind(static_cast<uint32_t>(std::countr_one(failed->heard)))]
      .address.rank;
}

void heed(Card& card, Queue& queue) {
  if (queue.failure.status != PEAL_STATUS_OK) return;
  if (queue.starts[queue.first_start].passes == 0) return;
  const uint64_t iteration = queue.origin.iteration;
  const FailedIterations* failed = find_of(card, queue);
  const Unnoted& unnoted = queue.unnoted;
  if (failed == nullptr && (iteration < unnoted.from || iteration >= unnoted.to)) return;
  count(card, PEAL_COUNTER_STARTS_TOLD);
  fail(card, queue, failed != nullptr ? failed->why : unnoted.why);
}

peal_counter on_failed(Card& card, Member& member, uint32_t entry, const peal_failed& body) {
  const Membership& self = member.membership;
  if (!is_sound(self, body)) return PEAL_COUNTER_DROP_ORIGIN;
  const News news = {.name = body.program,
                     .hops = static_cast<uint8_t>(body.hops > 0 ? body.hops - 1 : 0),
                     .together = (body.begun & PEAL_FAILED_TOGETHER) != 0,
                     .from = body.from,
                     .to = body.to,
                     .why = {.status = static_cast<peal_status>(body.status),
                             .reason = static_cast<peal_program_reason>(body.reason),
                             .index = body.index,
                             .rank = body.rank,
                             .elsewhere = true}};
  const Noted noted = note(card, member, news, entry);
  if (noted == Noted::kNoRoom) return PEAL_COUNTER_NO_FAILURE;
  FailedIterations* known = find_known(card.queues, self.handle, news);
  PEAL_ASSERT(known != nullptr);
  if (known->together) {
    hear_begun(card, member, entry, body.begun, *known);
  } else {
    (void)on_known(card, member, entry, body);  // who says it knows it
  }
  send(card, self, entry, PEAL_PACKET_KNOWN, body);
  return noted == Noted::kNew ? PEAL_COUNTER_RECEIVED : PEAL_COUNTER_DUPLICATE;
}

peal_counter on_known(Card& card, const Member& member, uint32_t entry, const peal_failed& body) {
  QueuePool& pool = card.queues;
  bool expected = false;
  for (uint32_t i = 0; i < pool.failed_top; ++i) {
    FailedIterations& each = pool.failed[i];
    if (!each.in_use || each.member != member.membership.handle || each.name != body.program) {
      continue;
    }
    // (It may have grown since.)
    if (body.from > each.from || body.to < each.to) continue;
    if (each.together && body.begun != each.begun) continue;
    expected = expected || (each.untold >> entry & 1) != 0;
    each.untold &= ~(1u << entry);
  }
  return expected ? PEAL_COUNTER_RECEIVED : PEAL_COUNTER_DUPLICATE;
}

void answer_failed(Card& card, const Membership& self, uint32_t entry, const peal_failed& body) {
  send(card, self, entry, PEAL_PACKET_KNOWN, body);
}

void repeat_failures(Card& card) {
  QueuePool& pool = card.queues;
  for (uint32_t i = 0; i < pool.failed_top; ++i) {
    FailedIterations& each = pool.failed[i];
    if (!each.in_use) continue;
    if (!lasts(card, each)) {
      each.in_use = false;
    } else if (each.untold != 0 && card.now >= each.next_ns) {
      tell_untold(card, each);
    } else if (each.untold != 0) {
      card.timers.arm_no_later(pool.failure_timer, each.next_ns);
    }
  }
  while (pool.failed_top > 0 && !pool.failed[pool.failed_top - 1].in_use) --pool.failed_top;
}

}  // namespace peal::queue
