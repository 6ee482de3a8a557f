// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/operation.h"

#include <cstring>

#include "firmware/base/assert.h"
#include "firmware/base/kept.h"
#include "firmware/base/mutation.h"
#include "firmware/dma/dma.h"
#include "firmware/group/at_hand.h"
#include "firmware/group/early.h"
#include "firmware/group/inquiry.h"
#include "firmware/group/liveness.h"
#include "firmware/group/promises.h"
#include "firmware/group/recycling.h"
#include "firmware/group/sent_blocks.h"
#include "firmware/group/staging.h"
#include "firmware/group/unsettled.h"
#include "firmware/operation/algorithm.h"
#include "firmware/operation/part_places.h"

namespace peal {
namespace {

bool is_oldest(const Scope& scope) {
  for (const Operation& other : scope.member.operations) {
    if (is_waiting(other) && other.sequence < scope.operation.sequence) return false;
  }
  return true;
}

// When questions are dear, the oldest operation asks and the later ones wait: it is what holds up
// the channels. So they do while an answer is awaited and nothing was lost yet, as far as is known:
// the others would ask for what is late for the same reason.
bool must_wait_its_turn(const Scope& scope) {
  Card& card = scope.card;
  Member& member = scope.member;
  const bool has_asked = member.patience.lossless && member.pace.waiting_ns != 0;
  if (!has_asked && !pace_is_scarce(member.pace, card.timeouts, card.now)) return false;
  return !is_oldest(scope);
}

// More transfers of a card are a queue before its engine: twice what an operation begins.
uint32_t engine_queue(const Card& card) {
  return least(2 * card.transfers_most, CONFIG_DMA_RECORDS / 4);
}

// Its own transfers wait in one, and so do those of others, most likely: where pairs go on by
// themselves each rank sends as many blocks as it gets. Losses have made its patience short, but
// what it waits for is none of those that it knows. docs/decisions/0054
bool waits_for_engine(const Scope& scope) {
  const auto& [card, member, operation] = scope;
  return operation.dma > 0 && card.dma_in_use > engine_queue(card) && !member.patience.lossless &&
         watches_all_the_time(*operation.algorithm);
}

// It has not posted this, and waits for nothing of this card: it is late. (One that waits is held
// up by others, perhaps by a loss.)
bool host_is_away(const Scope& scope) {
  return scope.operation.phase == OperationPhase::kEarly &&
         scope.member.finished == scope.member.next_sequence;
}

// Nothing had to be asked for.
[[gnu::noinline]] void note_undisturbed(const Scope& scope) {
  auto& [card, member, operation] = scope;
  const TimeNs longest_ns = operation.inquiry.longest_ns;
  patience_undisturbed(member.patience, card.timeouts, longest_ns);
  patience_undisturbed(member.late_patience, card.timeouts, longest_ns);
}

bool is_alike(const Operation& operation, const Algorithm& algorithm, uint32_t block_bytes,
              uint16_t root) {
  return operation.algorithm == &algorithm && operation.block_bytes == block_bytes &&
         operation.root == root;
}

// What the record is of, and with it its pattern, where the one that it was of before was not like
// that. The last operation may have been.
[[gnu::noinline]] void take_kind(const Member& member, Operation& operation,
                                 const Algorithm& algorithm, uint64_t sequence,
                                 uint32_t block_bytes, uint16_t root) {
  const Begins root_begins = root == member.membership.rank ? Begins::kSelf : Begins::kAnother;
  operation.begins = algorithm.synchronises ? Begins::kEverybody : root_begins;
  operation.algorithm = &algorithm;
  operation.block_bytes = block_bytes;
  operation.root = root;
  const Operation& before = kept(member.operations[(sequence - 1) % kChannels]);
  if (is_alike(before, algorithm, block_bytes, root)) {
    operation.pattern = before.pattern;
  } else {
    const Membership& self = member.membership;
    const uint32_t signature =
        signature_of(self, algorithm.operation, algorithm.algorithm, root, block_bytes);
    operation.pattern = operation_pattern(self, algorithm.operation, algorithm.algorithm,
                                          usual_type(algorithm), signature, sequence);
    operation.pattern.flags = PEAL_PACKET_NUMBERED;
    operation.pattern.block_bytes = block_bytes;
    operation.pattern.origin = root;
  }
  operation.signature = operation.pattern.signature;
}

}  // namespace

bool is_waiting(const Operation& operation) {
  if (is_refused(operation)) return false;
  switch (operation.phase) {
    case OperationPhase::kEarly:
    case OperationPhase::kRunning:
      return true;
    case OperationPhase::kFinished:
      return operation.in_debt;
    case OperationPhase::kFree:
      return false;
  }
  return false;
}

void operation_open(const Scope& scope, const Algorithm& algorithm, uint64_t sequence,
                    uint32_t block_bytes, Rank root) {
  const auto [card, member, operation] = scope;
  operation.phase = OperationPhase::kEarly;
  operation.starved = operation.in_debt = false;
  operation.listens = !member.membership.poisoned;
  operation.first_sender = member.membership.rank;
  operation.verdict = PEAL_STATUS_OK;
  operation.verdict_rank = PEAL_NO_RANK;
  operation.sequence = sequence;
  // Most are like the one that had the record before: their patterns differ in the sequence alone.
  if (!is_alike(operation, algorithm, block_bytes, static_cast<uint16_t>(root))) {
    take_kind(member, operation, algorithm, sequence, block_bytes, static_cast<uint16_t>(root));
  }
  operation.pattern.sequence = static_cast<uint32_t>(sequence);
  PEAL_ASSERT((operation.early_count | operation.at_hand_count) == 0);
  operation.dma = 0;
  operation.staging_answers = false;
  operation.parts_phase = PartsPhase::kNone;
  operation.parts_read = 0;
  std::memset(operation.state, 0, sizeof(operation.state));
  // What the one before has kept to answer late questions: nobody has any.
  if (operation.staging_mask != 0) release_staging(card, member, operation);
  card.timers.arm(operation.timer, inquiry_open(card, member, operation.inquiry));
  if (member.recycling_withheld) recycling_begun(card, member, operation);
  algorithm.does.open(scope);
}

void operation_posted(const Scope& scope) {
  auto& [card, member, operation] = scope;
  inquiry_begin(card, member, operation.inquiry);
  card.timers.arm_no_later(operation.timer, inquiry_next(card, operation.inquiry));
}

void operation_disturbed(const Scope& scope) { operation_posted(scope); }

void operation_starved(const Scope& scope) {
  scope.operation.starved = true;
  scope.card.timers.arm_no_later(scope.operation.timer,
                                 scope.card.now + scope.card.timeouts.nack_ns / 4 + 1);
}

void operation_waits_for_turn(const Scope& scope) {
  scope.operation.starved = true;
  scope.card.timers.arm_no_later(scope.operation.timer, scope.card.now + 1);
}

bool operation_may_ask(const Scope& scope, Rank peer, Wanted wanted) {
  // Who is late is late for the oldest operation first. Where nobody is known to be, what seems so
  // may be lost, and each operation asks for its own.
  if (wanted == Wanted::kLate && knows_of_lateness(scope.member) && !is_oldest(scope)) {
    await_peer(scope.card, scope.member, peer);
    return false;
  }
  return inquiry_may_ask(scope.card, scope.member, scope.operation.inquiry, peer, wanted);
}

void operation_owes(const Scope& scope, Rank parent) {
  auto& [card, member, operation] = scope;
  operation.in_debt = true;
  operation.inquiry.promised = 0;
  inquiry_begin(card, member, operation.inquiry);
  const Membership& self = member.membership;
  inquiry_doubt(card, member, operation.inquiry, peer_entry(self.rank, parent, self.ranks));
  card.timers.arm_no_later(operation.timer, inquiry_next(card, operation.inquiry));
}

void operation_doubts(const Scope& scope, uint32_t entry) {
  auto& [card, member, operation] = scope;
  inquiry_doubt(card, member, operation.inquiry, entry);
  card.timers.arm_no_later(operation.timer, inquiry_next(card, operation.inquiry));
}

void operation_fail(const Scope& scope, peal_status status, Rank rank) {
  Operation& operation = scope.operation;
  if (!is_open(operation)) return;
  if (!is_refused(operation)) {
    operation.verdict = status;
    operation.verdict_rank = rank;
    operation.listens = false;
  }
  scope.card.timers.disarm(operation.timer);
  operation_end_if_refused(scope);
}

void operation_end_if_refused(const Scope& scope) {
  Operation& operation = scope.operation;
  if (!is_refused(operation)) return;
  early_drop(scope.card, operation);
  at_hand_drop(scope);
  sent_blocks_drop(scope.card, scope.member, operation);
  // Not only when it is over: whoever closes its context may be told before.
  if (is_posted(operation)) dma_take_back(scope);
  if (operation.dma > 0) return;
  if (is_posted(operation)) {
    operation_finish(scope);
  } else if (scope.member.membership.poisoned) {
    // In a dead group nothing is begun any more: what is posted fails without a record.
    release_staging(scope.card, scope.member, operation);
    operation.phase = OperationPhase::kFree;
  }
}

void operation_finish(const Scope& scope) {
  const auto [card, member, operation] = scope;
  PEAL_ASSERT(operation.phase == OperationPhase::kRunning);
  PEAL_ASSERT((operation.dma | operation.early_count) == 0);
  operation.phase = OperationPhase::kFinished;
  if (!operation.inquiry.ever_asked && !is_refused(operation) &&
      patience_may_come_down(member.patience, member.late_patience, card.timeouts)) {
    note_undisturbed(scope);
  }
  if (!operation.in_debt) card.timers.disarm(operation.timer);
  if (operation.staging_mask != 0) {
    if (operation.staging_answers && !is_refused(operation)) {
      keep_staging(member, operation);
    } else if (!holds_staging(member, operation) || is_refused(operation)) {
      release_staging(card, member, operation);
    }
  }
  part_place_release(member, operation);
  note_ended(card, member, operation);
}

void on_operation_timer(const Scope& scope) {
  auto& [card, member, operation] = scope;
  if (!is_waiting(operation) || member.membership.poisoned) return;
  if (operation.starved) {
    operation.starved = false;
    operation.in_turn = true;
    operation_advance(scope);
    operation.in_turn = false;
    if (!is_waiting(operation)) return;
  }
  Inquiry& inquiry = operation.inquiry;
  if (inquiry_is_due(card, member, inquiry) &&
      (waits_for_engine(scope) || must_wait_its_turn(scope))) {
    count(card, PEAL_COUNTER_HELD_BACK_NACK);
    inquiry_put_off(card, inquiry);
  }
  const bool looks = inquiry_look(card, member, inquiry);
  if (looks || watches_all_the_time(*operation.algorithm)) operation.algorithm->does.chase(scope);
  inquiry_looked(inquiry);
  if (!is_waiting(operation)) return;  // its debts are paid
  TimeNs next_ns = inquiry_next(card, inquiry);
  if (mutated(Mutation::kRandomness)) {
    static uint32_t hidden_state;  // outlives the card: a second run starts where the first ended
    next_ns += ++hidden_state % 4096;
  }
  card.timers.arm_no_later(operation.timer, next_ns);
}

void operation_asked_for(const Scope& scope) {
  auto& [card, member, operation] = scope;
  inquiry_asked_for(card, member, operation.inquiry, operation.timer);
}

void send_not_yet(const Scope& scope, const peal_peer_address& to, const peal_wire_header& header,
                  const peal_nack& nack, Owed owed) {
  const bool away = owed == Owed::kByHost && host_is_away(scope);
  const bool late = away || owed == Owed::kByTheLate || scope.operation.inquiry.told_late;
  uint16_t patience_ms = 0;
  if (late && owed != Owed::kAgain) {
    const bool alone = waits_for_one(*scope.operation.algorithm);
    note_lateness(scope.card, scope.member, alone ? Lessons::kEach : Lessons::kFirst);
    if (alone && away) note_away(scope.card, scope.member);
    if (alone) patience_ms = patience_to_tell(scope.member.patience);
  }
  const uint16_t waits = late ? PEAL_NOT_YET_LATE : PEAL_NOT_YET_WAITS;
  const uint16_t reason = owed == Owed::kAgain ? PEAL_NOT_YET_SENT : waits;
  const peal_not_yet body = {nack.asked_us, reason, patience_ms};
  const SmallPacket what = {.piece = header.piece,
                            .origin = header.origin,
                            .hop = header.hop,
                            .payload = &body,
                            .length = sizeof(body)};
  if (send_small(scope.card, scope.member.membership, to,
                 packet_kind(scope.operation, PEAL_PACKET_NOT_YET), what)) {
    count(scope.card, PEAL_COUNTER_SENT_NOT_YET);
  }
  if (owed == Owed::kAgain) return;
  note_promise(scope.card, scope.member, scope.operation, to.rank);
}

}  // namespace peal
