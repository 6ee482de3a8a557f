// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/recycling.h"

#include "firmware/base/kept.h"
#include "firmware/group/dissemination.h"
#include "firmware/group/inquiry.h"
#include "firmware/group/parking.h"
#include "firmware/group/sent_blocks.h"
#include "firmware/group/staging.h"
#include "firmware/group/unsettled.h"

namespace peal {
namespace {

// Silences of the dead, after which an epoch is asked for though nobody waits for it.
constexpr TimeNs kInTheEnd = 4;

Dissemination& epoch_state(Member& member, uint64_t epoch) {
  return kept(member.recycling[epoch & 1]);
}

PacketKind epoch_kind(const Member& member, uint8_t type, uint64_t epoch) {
  return {member.recycling_pattern, type, static_cast<uint32_t>(epoch)};
}

// What an epoch's dissemination is of.
struct OfEpoch {
  static constexpr peal_counter kCounter = PEAL_COUNTER_SENT_RECYCLE;
  Card& of_card;
  Member& member;
  uint64_t epoch;
  [[nodiscard]] Card& card() const { return of_card; }
  [[nodiscard]] Membership& self() const { return member.membership; }
  [[nodiscard]] Dissemination& state() const { return epoch_state(member, epoch); }
  void begin(peal_wire_header* header) const {
    *header = member.recycling_pattern;
    header->sequence = static_cast<uint32_t>(epoch);
  }
};

// A packet that cannot be had now is asked for by its receiver, or sent at our next time-out.
[[gnu::noinline]] void send_signals(Card& card, Member& member, uint64_t epoch) {
  (void)dissemination_send(OfEpoch{card, member, epoch});
}

bool is_finished(const Member& member, uint64_t epoch) {
  return member.epoch_finished[epoch & 1] >= kEpochOperations;
}

bool is_entered(Member& member, uint64_t epoch) { return is_entered(epoch_state(member, epoch)); }

// The epoch whose signals are awaited: the oldest one. False: none is.
bool find_entered(Member& member, uint64_t* epoch) {
  *epoch = member.recycled;
  if (!is_entered(member, *epoch)) ++*epoch;
  return is_entered(member, *epoch);
}

// Does somebody wait for the oldest epoch? The own host, or who asked for a signal that comes after
// one that is missing here. In the end the card itself does, which would look after its peers for
// ever.
bool is_awaited(const Card& card, const Member& member) {
  if (card.now - member.recycling_inquiry.heard_ns >= kInTheEnd * card.timeouts.dead_ns)
    return true;
  return member.recycling[0].asked || member.recycling[1].asked ||
         (member.parked_count > 0 && first_parked(member).sequence >= recycling_limit(member));
}

// When to look again. Who is silent is looked after all the same.
TimeNs next_look(const Card& card, Member& member) {
  Inquiry& inquiry = member.recycling_inquiry;
  if (!is_awaited(card, member)) inquiry_rest(card, inquiry);
  return inquiry_next(card, inquiry);
}

void arm_next_look(Card& card, Member& member) {
  uint64_t entered;
  if (find_entered(member, &entered)) {
    card.timers.arm_no_later(member.timer, next_look(card, member));
  }
}

[[gnu::noinline]] void drop_sent_blocks(Card& card, Member& member, Operation* first) {
  for (uint64_t i = 0; i < kEpochOperations; ++i) sent_blocks_drop(card, member, first[i]);
}

void retire_oldest(Card& card, Member& member) {
  const uint64_t epoch = member.recycled;
  Operation* const first = &member.operations[(epoch & 1) * kEpochOperations];
  if (member.sent_blocks != 0) drop_sent_blocks(card, member, first);
  for (uint64_t i = 0; i < kEpochOperations; ++i) {
    Operation& operation = kept(first[i]);
    if (operation.timer.place != 0) card.timers.disarm(operation.timer);
    operation.phase = OperationPhase::kFree;
    operation.listens = false;
    if (holds_staging(member, operation)) release_staging(card, member, operation);
  }
  const bool entered = is_entered(member, epoch);
  epoch_state(member, epoch) = dissemination_start(member.membership);
  member.epoch_finished[epoch & 1] = 0;
  member.epoch_proof[epoch & 1] = EpochProof::kSignals;
  ++member.recycled;
  if (entered) {
    (void)inquiry_open(card, member, member.recycling_inquiry);
    arm_next_look(card, member);
  }
  note_unsettled(card, member);  // what is parked may start
}

// Everybody has finished the oldest epoch, and so have we: it is retired, when whoever waits for
// our signals has them. False: there is no packet for them, they go when there is.
bool prove_oldest(Card& card, Member& member) {
  const uint64_t epoch = member.recycled;
  if (is_entered(member, epoch)) {
    dissemination_prove(epoch_state(member, epoch));
    send_signals(card, member, epoch);
    if (!is_complete(epoch_state(member, epoch))) return false;
  }
  retire_oldest(card, member);
  return true;
}

// Enters what may be entered, sends what may be sent, retires what is complete.
void advance(Card& card, Member& member) {
  for (uint64_t epoch = member.recycled; epoch < member.recycled + 2;) {
    Dissemination& state = epoch_state(member, epoch);
    if (!is_entered(state)) {
      if (!is_finished(member, epoch)) return;
      if (member.epoch_proof[epoch & 1] == EpochProof::kOperation) {
        ++epoch;
        continue;
      }
      dissemination_enter(state);
      inquiry_begin(card, member, member.recycling_inquiry);
      card.timers.arm_no_later(member.timer, next_look(card, member));
    }
    send_signals(card, member, epoch);
    if (is_complete(state) && epoch != member.recycled) {
      // Everybody entered the later epoch, so everybody had finished the earlier one.
      if (!prove_oldest(card, member)) return;
    }
    if (is_complete(state)) {
      retire_oldest(card, member);
      epoch = member.recycled;
    } else {
      ++epoch;
    }
  }
}

// An operation is over that may have been the last of its epoch, or proves that everybody is past
// the one before.
[[gnu::noinline]] void follow_end(Card& card, Member& member, uint64_t epoch, bool proves) {
  if (proves) {
    EpochProof& proof = member.epoch_proof[epoch & 1];
    if (proof == EpochProof::kSignals) proof = EpochProof::kOperation;
    if (epoch != member.recycled && is_finished(member, member.recycled)) {
      (void)prove_oldest(card, member);  // where no packet is to be had, at the next time-out
    }
  }
  if (is_finished(member, epoch)) advance(card, member);
}

// Somebody needs the signals of an epoch.
void join(Card& card, Member& member, uint64_t epoch) {
  member.epoch_proof[epoch & 1] = EpochProof::kAsked;
  advance(card, member);
}

// Recovers the 64-bit epoch from the wire's 32 bits; distance from the oldest open one in *ahead.
uint64_t epoch_of(const Member& member, uint32_t wire, int32_t* ahead) {
  *ahead = static_cast<int32_t>(wire - static_cast<uint32_t>(member.recycled));
  return member.recycled + static_cast<uint64_t>(static_cast<int64_t>(*ahead));
}

}  // namespace

void recycling_connect(Member& member) {
  const Membership& self = member.membership;
  member.recycling_pattern =
      operation_pattern(self, PEAL_OPERATION_RECYCLE, kSignalAlgorithm, PEAL_PACKET_SIGNAL,
                        signature_of(self, PEAL_OPERATION_RECYCLE, kSignalAlgorithm, 0, 0), 0);
  member.recycling_pattern.flags = PEAL_PACKET_NUMBERED;
  for (Dissemination& state : member.recycling) state = dissemination_start(self);
}

void recycling_awaited(Card& card, Member& member) {
  inquiry_wake(card, member.recycling_inquiry);
  arm_next_look(card, member);
}

void recycling_finished(Card& card, Member& member, uint64_t sequence, bool everybody) {
  const uint64_t epoch = sequence / kEpochOperations;
  const uint16_t finished = ++member.epoch_finished[epoch & 1];
  const bool proves = everybody && is_proving_place(sequence);
  if (proves || finished >= kEpochOperations) follow_end(card, member, epoch, proves);
}

bool recycling_prove(Card& card, Member& member) {
  if (!is_finished(member, member.recycled)) return false;
  if (!prove_oldest(card, member)) return false;  // the sender's data comes again
  advance(card, member);
  return true;
}

peal_counter recycling_on_signal(Card& card, Member& member, const peal_wire_header& header) {
  int32_t ahead;
  const uint64_t epoch = epoch_of(member, header.sequence, &ahead);
  if (ahead < 0) return PEAL_COUNTER_DUPLICATE;
  if (ahead > 1) return PEAL_COUNTER_DROP_FUTURE;
  if (!dissemination_signal(epoch_state(member, epoch), header.hop)) return PEAL_COUNTER_DUPLICATE;
  if (inquiry_heard(card, member.recycling_inquiry)) {
    inquiry_begin(card, member, member.recycling_inquiry);
    arm_next_look(card, member);
  }
  join(card, member, epoch);
  return PEAL_COUNTER_RECEIVED;
}

peal_counter recycling_on_nack(Card& card, Member& member, const peal_wire_header& header,
                               const peal_nack& nack) {
  int32_t ahead;
  const uint64_t epoch = epoch_of(member, header.sequence, &ahead);
  const Membership& self = member.membership;
  const peal_peer_address& to = self.peers[peer_ahead(header.hop)].address;
  const auto was_sent = [&] {
    return epoch < member.recycled ||
           (ahead <= 1 && is_sent(epoch_state(member, epoch), header.hop));
  };
  if (was_sent()) {
    dissemination_repair(card, self, to, epoch_kind(member, PEAL_PACKET_SIGNAL, epoch), header.hop);
    return PEAL_COUNTER_RECEIVED;
  }
  if (ahead > 1) return PEAL_COUNTER_DROP_FUTURE;
  if (!is_entered(member, epoch)) join(card, member, epoch);
  if (was_sent()) return PEAL_COUNTER_RECEIVED;
  epoch_state(member, epoch).asked = true;
  recycling_awaited(card, member);
  const bool away = member.finished == member.next_sequence && !is_entered(member, epoch);
  const bool late = away || member.recycling_inquiry.told_late;
  const peal_not_yet body = {nack.asked_us, late ? PEAL_NOT_YET_LATE : PEAL_NOT_YET_WAITS};
  const SmallPacket what = {.hop = header.hop, .payload = &body, .length = sizeof(body)};
  if (send_small(card, self, to, epoch_kind(member, PEAL_PACKET_NOT_YET, epoch), what)) {
    count(card, PEAL_COUNTER_SENT_NOT_YET);
  }
  return PEAL_COUNTER_RECEIVED;
}

void recycling_ask(Card& card, Member& member) {
  uint64_t epoch;
  if (!find_entered(member, &epoch)) return;
  dissemination_chase(card, member, epoch_state(member, epoch), member.recycling_inquiry,
                      epoch_kind(member, PEAL_PACKET_NACK, epoch));
}

TimeNs recycling_chase(Card& card, Member& member) {
  uint64_t epoch;
  if (!find_entered(member, &epoch)) return kNever;
  const uint64_t recycled = member.recycled;
  Inquiry& inquiry = member.recycling_inquiry;
  const bool awaited = is_awaited(card, member);
  if (!awaited) inquiry_rest(card, inquiry);
  if (!awaited || inquiry_is_due(card, member, inquiry))
    advance(card, member);  // what a packet was missing for
  if (member.recycled == recycled) {
    if (inquiry_look(card, member, inquiry)) recycling_ask(card, member);
    inquiry_looked(inquiry);
  }
  return next_look(card, member);
}

}  // namespace peal
