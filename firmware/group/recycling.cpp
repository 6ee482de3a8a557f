// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/recycling.h"

#include "firmware/base/kept.h"
#include "firmware/group/inquiry.h"
#include "firmware/group/parking.h"
#include "firmware/group/recycling_tree.h"
#include "firmware/group/sent_blocks.h"
#include "firmware/group/staging.h"
#include "firmware/group/unsettled.h"
#include "firmware/wire/edge.h"

namespace peal {
namespace {

// Silences of the dead, after which an epoch is asked for though nobody waits for it.
constexpr TimeNs kInTheEnd = 4;
// First intervals for which what comes with data is waited for.
constexpr TimeNs kLonger = 2;
constexpr TimeNs kLongerLossless = 4;

EpochTree& epoch_state(Member& member, uint64_t epoch) { return kept(member.recycling[epoch & 1]); }

PacketKind epoch_kind(const Member& member, uint8_t type, uint64_t epoch) {
  return {member.recycling_pattern, type, static_cast<uint32_t>(epoch)};
}

bool is_finished(const Member& member, uint64_t epoch) {
  return member.epoch_finished[epoch & 1] >= kEpochOperations;
}

// The epoch whose signals are awaited: the oldest one. False: none is.
bool find_entered(Member& member, uint64_t* epoch) {
  *epoch = member.recycled;
  if (!is_entered(epoch_state(member, *epoch))) ++*epoch;
  return is_entered(epoch_state(member, *epoch));
}

// Does somebody wait for the oldest epoch? The own host, or who asked for what is not known here.
bool is_awaited(const Member& member) {
  return (member.recycling[0].asked | member.recycling[1].asked) != 0 ||
         (member.parked_count > 0 && first_parked(member).sequence >= recycling_limit(member));
}

// Nobody waits for it, and all that is missing is that all have finished it, which may come with
// data, or when somebody needs it.
bool may_rest(const Member& member, const EpochTree& state) {
  return is_passed(state) && !is_awaited(member);
}

// In the end a card asks those below it though nobody waits: it would look after them for ever.
bool asks_in_silence(const Card& card, const Member& member) {
  return is_awaited(member) ||
         card.now - member.recycling_inquiry.heard_ns >= kInTheEnd * card.timeouts.dead_ns;
}

// What all know comes with data that another rank begins with: it is asked for after so many first
// intervals, and fewer where packets are lost; at once where somebody asks who has lost some.
bool comes_with_data(const Card& card, const Member& member, const EpochTree& state) {
  const Inquiry& inquiry = member.recycling_inquiry;
  const bool lossless = member.patience.lossless;
  const bool begins =
      member.parked_count > 0 && first_parked(member).root == member.membership.rank;
  if (begins || asks_suspects(inquiry) || (state.asked != 0 && !lossless)) return false;
  const TimeNs waits_ns = inquiry_first_interval(card, member, inquiry);
  return card.now - inquiry.heard_ns < (lossless ? kLongerLossless : kLonger) * waits_ns;
}

// When to look again. Who is silent is looked after all the same.
TimeNs next_look(const Card& card, Member& member, const EpochTree& state) {
  member.recycling_rests = may_rest(member, state);
  if (member.recycling_rests) return kNever;
  Inquiry& inquiry = member.recycling_inquiry;
  if (!asks_in_silence(card, member)) inquiry_rest(card, inquiry);
  return inquiry_next(card, inquiry);
}

void arm_next_look(Card& card, Member& member) {
  uint64_t entered;
  if (!find_entered(member, &entered)) return;
  const TimeNs next = next_look(card, member, epoch_state(member, entered));
  if (next != kNever) card.timers.arm_no_later(member.timer, next);
}

void begin_wait(Card& card, Member& member) {
  inquiry_begin(card, member, member.recycling_inquiry);
  arm_next_look(card, member);
}

// Tells those below of all epochs up to this one.
void tell_down(Card& card, Member& member, uint64_t epoch, Rank root) {
  member.recycling_withheld = false;
  if (epoch < member.recycled_told) return;
  member.recycled_told = epoch + 1;
  signal_all(card, member, epoch, root);
}

[[gnu::noinline]] void drop_sent_blocks(Card& card, Member& member, Operation* first) {
  for (uint64_t i = 0; i < kEpochOperations; ++i) sent_blocks_drop(card, member, first[i]);
}

// Everybody has finished the oldest epoch, and so have we.
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
  const EpochTree before = epoch_state(member, epoch);
  epoch_state(member, epoch) = epoch_tree_start();
  member.epoch_finished[epoch & 1] = 0;
  member.epoch_proof[epoch & 1] = EpochProof::kSignals;
  ++member.recycled;
  member.recycling_withheld = false;
  if ((before.asked >> PEAL_RECYCLE_ALL & 1) != 0) tell_down(card, member, epoch, before.root);
  if (is_entered(before)) {
    (void)inquiry_open(card, member, member.recycling_inquiry);
    arm_next_look(card, member);
  }
  note_unsettled(card, member);  // what is parked may start
}

// The same of all up to this one. False if that cannot be: this card has not finished them.
bool retire_until(Card& card, Member& member, uint64_t last) {
  if (last > member.recycled + 1 || !is_finished(member, last)) return false;
  if (!is_finished(member, member.recycled)) return false;
  while (member.recycled <= last) retire_oldest(card, member);
  return true;
}

// Does the operation's own data tell everybody that all have finished the epoch, as this rank
// knows, or is the operation itself the proof of that?
bool proof_travels(const Operation& operation, uint64_t epoch) {
  if (operation.begins != Begins::kEverybody) return operation.begins == Begins::kSelf;
  const uint64_t proved = operation.sequence / kEpochOperations - 1;
  return is_proving_place(operation.sequence) && proved == epoch;
}

const Operation& newest(const Member& member) {
  const Operation* newest = &member.operations[0];
  for (const Operation& each : member.operations) {
    if (each.phase != OperationPhase::kFree && each.sequence > newest->sequence) newest = &each;
  }
  return *newest;
}

// The root has heard of all. The others hear of it with the data of the next epoch, where that
// comes from here by the same tree and nobody has asked.
void all_have_finished(Card& card, Member& member, uint64_t epoch) {
  const bool travels = proof_travels(newest(member), epoch);
  (void)retire_until(card, member, epoch);
  if (travels) {
    member.recycling_withheld = epoch >= member.recycled_told;
  } else {
    tell_down(card, member, epoch, member.membership.rank);
  }
}

// All from this card down have finished the epoch.
void pass(Card& card, Member& member, uint64_t epoch) {
  EpochTree& state = epoch_state(member, epoch);
  if (is_tree_root(member.membership, state)) return all_have_finished(card, member, epoch);
  if (state.told) return;
  state.told = true;
  signal_below(card, member, epoch, state.root);
  arm_next_look(card, member);
}

// The root of the epoch's last operation, which has 0 where there is none. (Who disagreed may have
// meant another one than the others.)
Rank root_of(const Member& member, uint64_t epoch) {
  const Operation& last = member.operations[(epoch & 1) * kEpochOperations + kEpochOperations - 1];
  return last.verdict == PEAL_STATUS_MISMATCH ? 0 : last.root;
}

// Whoever has another tree than others goes over to rank 0's, and so do they when they hear of it.
void agree_on(const Member& member, EpochTree& state, Rank root) {
  if (state.root == root) return;
  const bool splits = state.root != kNoTree;
  state.split |= splits;
  if (state.root != 0) epoch_tree_root(member.membership, state, splits ? 0 : root);
}

// Enters what may be entered, says what may be said.
void advance(Card& card, Member& member) {
  for (uint64_t epoch = member.recycled; epoch < member.recycled + 2; ++epoch) {
    EpochTree& state = epoch_state(member, epoch);
    if (!is_entered(state)) {
      if (!is_finished(member, epoch)) return;
      if (member.epoch_proof[epoch & 1] == EpochProof::kOperation) continue;
      agree_on(member, state, root_of(member, epoch));
      epoch_tree_enter(state);
      begin_wait(card, member);
    }
    if (is_passed(state)) pass(card, member, epoch);
  }
}

// An operation is over that may have been the last of its epoch, or proves that everybody is past
// the one before.
[[gnu::noinline]] void follow_end(Card& card, Member& member, uint64_t epoch, bool proves) {
  if (proves) {
    EpochProof& proof = member.epoch_proof[epoch & 1];
    if (proof == EpochProof::kSignals) proof = EpochProof::kOperation;
    if (epoch != member.recycled && is_finished(member, member.recycled)) {
      retire_oldest(card, member);
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
// False: there was none.
bool find_epoch(const Member& member, uint32_t wire, uint64_t* epoch, int32_t* ahead) {
  *ahead = static_cast<int32_t>(wire - static_cast<uint32_t>(member.recycled));
  *epoch = member.recycled + static_cast<uint64_t>(static_cast<int64_t>(*ahead));
  return *ahead >= 0 || *epoch < member.recycled;
}

// All have finished it.
peal_counter on_all(Card& card, Member& member, uint64_t epoch, int32_t ahead, Rank root) {
  if (ahead >= 0 && !retire_until(card, member, epoch)) return PEAL_COUNTER_DROP_FUTURE;
  const bool news = ahead >= 0 || epoch >= member.recycled_told;
  tell_down(card, member, epoch, root);
  advance(card, member);
  return news ? PEAL_COUNTER_RECEIVED : PEAL_COUNTER_DUPLICATE;
}

// Who has passed an epoch has passed the one before: if that was said, it was lost.
void pass_before(Member& member, const peal_wire_header& header) {
  EpochTree& state = epoch_state(member, member.recycled);
  if (state.root != header.origin || !epoch_tree_passed(state, header.hop)) return;
  Peer& from = member.membership.peers[peer_behind(header.hop)];
  edge_explained(member.membership.peers[from.known_by], header, 1);
}

// All from the sender down have.
peal_counter on_below(Card& card, Member& member, uint64_t epoch, int32_t ahead,
                      const peal_wire_header& header) {
  if (ahead < 0) return PEAL_COUNTER_DUPLICATE;
  if (ahead > 1 && !recycling_prove(card, member, epoch)) return PEAL_COUNTER_DROP_FUTURE;
  EpochTree& state = epoch_state(member, epoch);
  agree_on(member, state, header.origin);
  const bool news = state.root == header.origin && epoch_tree_passed(state, header.hop);
  if (news && epoch != member.recycled) pass_before(member, header);
  if (news && inquiry_heard(card, member.recycling_inquiry)) begin_wait(card, member);
  join(card, member, epoch);
  return news ? PEAL_COUNTER_RECEIVED : PEAL_COUNTER_DUPLICATE;
}

// Was it said that all from this card down, in the tree of that root, have finished the epoch?
bool was_told(Member& member, uint64_t epoch, Rank root) {
  if (epoch < member.recycled) return true;  // in whatever tree
  const EpochTree& state = epoch_state(member, epoch);
  return state.told && state.root == root;
}

// It has not posted all of the epoch, and waits for nothing of this card.
bool host_is_away(const Member& member, const EpochTree& state) {
  return member.finished == member.next_sequence && !is_entered(state);
}

// Why not yet: of the own host, which is away, or of another.
uint16_t reason_of(const Member& member, const EpochTree& state, const peal_wire_header& question) {
  if (state.root != question.origin) return PEAL_NOT_YET_SPLIT;
  const bool late = host_is_away(member, state) || member.recycling_inquiry.told_late;
  return late ? PEAL_NOT_YET_LATE : PEAL_NOT_YET_WAITS;
}

void answer_not_yet(Card& card, Member& member, uint64_t epoch, const peal_wire_header& header,
                    const peal_nack& nack) {
  const Membership& self = member.membership;
  const EpochTree& state = epoch_state(member, epoch);
  peal_not_yet body = {nack.asked_us, reason_of(member, state, header), 0};
  if (body.reason == PEAL_NOT_YET_LATE) {
    if (host_is_away(member, state)) note_away(card, member);
    body.patience_ms = patience_to_tell(member.patience);
  }
  const SmallPacket what = {.piece = header.piece,
                            .origin = header.origin,
                            .hop = header.hop,
                            .payload = &body,
                            .length = sizeof(body)};
  const peal_peer_address& to = self.peers[peer_ahead(header.hop)].address;
  if (send_small(card, self, to, epoch_kind(member, PEAL_PACKET_NOT_YET, epoch), what)) {
    count(card, PEAL_COUNTER_SENT_NOT_YET);
  }
}

// Asks who is to say that, if the inquiry lets it. False: it is another one's turn.
bool ask(Card& card, Member& member, uint64_t epoch, uint32_t about, uint32_t hop) {
  const Membership& self = member.membership;
  const EpochTree& state = epoch_state(member, epoch);
  const peal_peer_address& to = self.peers[peer_behind(hop)].address;
  Inquiry& inquiry = member.recycling_inquiry;
  // What it is to say may be all that follows for long: where packets are lost, or trees were not
  // the same, that nothing was on its way when it was last heard of says little.
  const bool believes = member.patience.lossless && !state.split;
  const Wanted wanted = believes ? Wanted::kFirst : Wanted::kAgain;
  if (!inquiry_may_ask(card, member, inquiry, to.rank, wanted)) {
    return !asks_suspects(inquiry);
  }
  const peal_nack body = question(card, 0);
  const SmallPacket what = {.piece = about,
                            .origin = state.root,
                            .hop = static_cast<uint8_t>(hop),
                            .payload = &body,
                            .length = sizeof(body)};
  if (send_small(card, self, to, epoch_kind(member, PEAL_PACKET_NACK, epoch), what)) {
    count(card, PEAL_COUNTER_SENT_NACK);
  }
  return true;
}

}  // namespace

void recycling_connect(Member& member) {
  const Membership& self = member.membership;
  member.recycling_pattern = pattern_of_recycling(self);
  for (EpochTree& state : member.recycling) state = epoch_tree_start();
}

void recycling_awaited(Card& card, Member& member) {
  if (member.recycling_rests) return begin_wait(card, member);
  inquiry_wake(card, member.recycling_inquiry);
  arm_next_look(card, member);
}

void recycling_finished(Card& card, Member& member, uint64_t sequence, bool everybody) {
  const uint64_t epoch = sequence / kEpochOperations;
  const uint16_t finished = ++member.epoch_finished[epoch & 1];
  const bool proves = everybody && is_proving_place(sequence);
  if (proves || finished >= kEpochOperations) follow_end(card, member, epoch, proves);
}

bool recycling_prove(Card& card, Member& member, uint64_t begun) {
  if (!retire_until(card, member, begun - 2)) return false;
  advance(card, member);
  return true;
}

void recycling_begun(Card& card, Member& member, const Operation& operation) {
  const uint64_t epoch = member.recycled - 1;
  if (!proof_travels(operation, epoch)) tell_down(card, member, epoch, member.membership.rank);
}

peal_counter recycling_on_signal(Card& card, Member& member, const peal_wire_header& header) {
  int32_t ahead;
  uint64_t epoch;
  if (!find_epoch(member, header.sequence, &epoch, &ahead)) return PEAL_COUNTER_DROP_STALE;
  if (header.piece == PEAL_RECYCLE_ALL) return on_all(card, member, epoch, ahead, header.origin);
  return on_below(card, member, epoch, ahead, header);
}

peal_counter recycling_on_nack(Card& card, Member& member, const peal_wire_header& header,
                               const peal_nack& nack) {
  int32_t ahead;
  uint64_t epoch;
  if (!find_epoch(member, header.sequence, &epoch, &ahead)) return PEAL_COUNTER_DROP_STALE;
  if (ahead > 1 && !recycling_prove(card, member, epoch)) return PEAL_COUNTER_DROP_FUTURE;
  const bool below = header.piece == PEAL_RECYCLE_BELOW;
  if (ahead >= 0) agree_on(member, epoch_state(member, epoch), header.origin);
  const auto is_said = [&] {
    return below ? was_told(member, epoch, header.origin) : epoch < member.recycled_told;
  };
  if (is_said()) {
    tell_again(card, member.membership, header);
    return PEAL_COUNTER_RECEIVED;
  }
  if (ahead >= 0) join(card, member, epoch);
  if (is_said()) return PEAL_COUNTER_RECEIVED;
  if (epoch < member.recycled) {
    signal_all_by(card, member, epoch, header.origin, header.hop);
    return PEAL_COUNTER_RECEIVED;
  }
  EpochTree& state = epoch_state(member, epoch);
  const bool first = (state.asked >> header.piece & 1) == 0;
  state.asked |= static_cast<uint8_t>(1u << header.piece);
  recycling_awaited(card, member);
  if (first && is_entered(state) && !member.patience.lossless) recycling_ask(card, member);
  answer_not_yet(card, member, epoch, header, nack);
  return PEAL_COUNTER_RECEIVED;
}

void recycling_on_split(Card& card, Member& member, const peal_wire_header& header) {
  int32_t ahead;
  uint64_t epoch;
  if (!find_epoch(member, header.sequence, &epoch, &ahead) || ahead < 0 || ahead > 1) return;
  EpochTree& state = epoch_state(member, epoch);
  state.split = true;
  agree_on(member, state, 0);
  join(card, member, epoch);
}

void recycling_ask(Card& card, Member& member) {
  uint64_t epoch;
  if (!find_entered(member, &epoch)) return;
  const uint32_t below = epoch_state(member, epoch).missing >> 1;
  for (uint32_t hops = below; hops != 0; hops &= hops - 1) {
    const auto hop = static_cast<uint32_t>(__builtin_ctz(hops));
    if (ask(card, member, epoch, PEAL_RECYCLE_BELOW, hop)) return;
  }
  const EpochTree& state = epoch_state(member, epoch);
  if (below != 0 || may_rest(member, state) || comes_with_data(card, member, state)) return;
  (void)ask(card, member, epoch, PEAL_RECYCLE_ALL, hop_from_above(member.membership, state.root));
}

TimeNs recycling_chase(Card& card, Member& member) {
  uint64_t epoch;
  if (!find_entered(member, &epoch)) return kNever;
  const EpochTree& state = epoch_state(member, epoch);
  if (may_rest(member, state)) return next_look(card, member, state);
  Inquiry& inquiry = member.recycling_inquiry;
  if (!asks_in_silence(card, member)) inquiry_rest(card, inquiry);
  if (inquiry_look(card, member, inquiry)) recycling_ask(card, member);
  inquiry_looked(inquiry);
  return next_look(card, member, state);
}

}  // namespace peal
