// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/direct_questions.h"

#include <bit>

#include "firmware/collective/direct_blocks.h"
#include "firmware/collective/direct_pace.h"
#include "firmware/collective/direct_pair.h"
#include "firmware/group/inquiry.h"
#include "firmware/group/liveness.h"
#include "firmware/group/remote.h"
#include "firmware/operation/operation.h"
#include "firmware/wire/transmit.h"

namespace peal::direct {
namespace {

// Does its edge show a loss?
bool is_suspect(const Scope& scope, Rank rank) {
  const Membership& self = scope.member.membership;
  const uint32_t entry = peer_entry(self.rank, rank, self.ranks);
  return entry != kNoPeer && (scope.operation.inquiry.suspects >> entry & 1) != 0;
}

// Which pieces of the pair's window have not come, a bit each. Where a peer's edge shows a loss,
// those that should have come before what shows it.
uint32_t missing_of(const Scope& scope, const Pair& pair) {
  uint32_t missing = 0;
  for (uint32_t i = 0; i < kPieceWindow; ++i) {
    const uint32_t number = pair.base + i;
    if (!exchanges(pair, number)) break;
    // The other is held up as this rank is, most likely; but what shows a loss was sent.
    if (!asks_suspects(scope.operation.inquiry) && !keeps_pace(scope, number)) break;
    if ((pair.come >> i & 1) == 0) missing |= 1u << i;
  }
  const bool before = pair.come != 0 && follows_perhaps(scope.operation.inquiry);
  return before ? missing & (std::bit_floor(pair.come) - 1u) : missing;
}

// False: there was no packet.
bool ask(const Scope& scope, const Pair& pair, Rank origin, uint32_t missing) {
  auto& [card, member, operation] = scope;
  const auto first = static_cast<uint32_t>(std::countr_zero(missing));
  const peal_nack nack = question(card, missing >> first);
  const SmallPacket what = {.piece = pair.base + first,
                            .origin = static_cast<uint16_t>(origin),
                            .payload = &nack,
                            .length = sizeof(nack)};
  if (!send_small_to(card, member, origin, packet_kind(operation, PEAL_PACKET_NACK), what)) {
    return false;
  }
  count(card, PEAL_COUNTER_SENT_NACK);
  return true;
}

// Who has sent none of several pieces is late, most likely: they would all have to be lost.
bool seems_late(const Pair& pair) { return !has_come(pair) && exchanges(pair, 1); }

// What such a rank owes is asked for after a patience of its own, where it sends several at once,
// and no edge shows that something was lost.
Wanted unsent_by(const Scope& scope, const Pair& pair) {
  const bool waits = kPieceWindow > 1 && !asks_suspects(scope.operation.inquiry);
  return waits && seems_late(pair) ? Wanted::kLate : Wanted::kFirst;
}

enum class Whom : uint8_t { kAnybody, kOthers, kLate };

bool is_one(Whom whom, const Pair& pair) {
  return whom == Whom::kAnybody || (whom == Whom::kLate) == seems_late(pair);
}

// What this rank is asked for in this look, a bit each, and why.
struct Lacking {
  uint32_t pieces;
  Wanted wanted;
};
Lacking lacking(const Scope& scope, const Pair& pair, Rank origin) {
  const uint32_t lost = pair.lost & ((1u << kPieceWindow) - 1u);
  const bool all = !asks_suspects(scope.operation.inquiry) || is_suspect(scope, origin);
  return {lost | (all ? missing_of(scope, pair) : 0),
          lost != 0 ? Wanted::kLost : unsent_by(scope, pair)};
}

// A piece of the pair's window has not come, and the other does not wait as well.
bool owes(const Scope& scope, const Pair& pair) {
  if (pair.lost != 0) return true;
  const auto first = static_cast<uint32_t>(std::countr_one(pair.come));
  return first < kPieceWindow && exchanges(pair, pair.base + first) &&
         keeps_pace(scope, pair.base + first);
}

// Whoever is asked, all that owe something are watched: a dead one's peers may have got its blocks.
void watch_all(const Scope& scope) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  for (uint32_t way = 1; way < self.ranks; ++way) {
    if (owes(scope, pair_at(scope, way))) await_peer(card, member, rank_at(self, way));
  }
}

// The gap on its edge shows what it was asked for at once.
bool shows_again(const Scope& scope, Pair& pair, Rank origin) {
  Inquiry& inquiry = scope.operation.inquiry;
  if (!pair.asked || pair.shown || !asks_suspects(inquiry) || inquiry.repeats) return false;
  if (!is_suspect(scope, origin)) return false;
  pair.shown = true;
  inquiry.asked_suspect = true;
  return true;
}

// One question for each of these that owes something, of so many at a time, by turns.
void chase_these(const Scope& scope, Whom whom, uint32_t at_a_time, uint16_t* turn) {
  const Membership& self = scope.member.membership;
  const bool suspects = asks_suspects(scope.operation.inquiry);
  uint32_t visited = 0;
  uint32_t last = *turn;
  for (uint32_t i = 1; i < self.ranks && visited < at_a_time; ++i) {
    const uint32_t way = 1 + (*turn + i) % (self.ranks - 1);
    const Rank origin = minus(self.rank, way, self.ranks);
    Pair& pair = pair_at(scope, way_of(self, origin));
    if (!is_one(whom, pair)) continue;
    const auto [missing, wanted] = lacking(scope, pair, origin);
    if (missing == 0) continue;
    if (shows_again(scope, pair, origin)) {
      ++visited;
      continue;
    }
    const bool asked = operation_may_ask(scope, origin, wanted);
    if (asked) (void)ask(scope, pair, origin, missing);
    if (suspects && !asked) continue;
    ++visited;
    last = way - 1;
  }
  *turn = static_cast<uint16_t>(last);
}

// What its asker has sent of the pair's window, and has not come, nor is known to be lost, a bit
// each.
PieceBits sent_by_asker(const Pair& pair, uint32_t number) {
  const uint32_t ahead = number - pair.base;
  const uint32_t sent = ahead < kPieceWindow ? 0 : ahead - kPieceWindow + 1;
  return static_cast<PieceBits>(((1u << sent) - 1u) & ~(pair.come | pair.lost));
}

bool lacks_lost(const Scope& scope) {
  for (uint32_t way = 1; way < scope.member.membership.ranks; ++way) {
    if (pair_at(scope, way).lost != 0) return true;
  }
  return false;
}

}  // namespace

void note_lost(const Scope& scope, uint32_t way, PieceBits lost) {
  set(pair_at(scope, way).lost, lost);
  note_loss(scope.card, scope.member);
  if (!inquiry_doubts(scope.operation.inquiry, kLostEntry)) operation_doubts(scope, kLostEntry);
}

void ask_at_once(const Scope& scope, uint32_t way, PieceBits lost) {
  auto& [card, member, operation] = scope;
  note_lost(scope, way, lost);
  const Rank origin = rank_at(member.membership, way);
  inquiry_suspect(operation.inquiry, kLostEntry);
  if (operation_may_ask(scope, origin, Wanted::kLost)) {
    Pair& pair = pair_at(scope, way);
    pair.asked = ask(scope, pair, origin, lost);
    pair.shown = false;
  }
  inquiry_looked(operation.inquiry);
}

void note_asked_for(const Scope& scope, uint32_t way, uint32_t number) {
  const Pair& pair = pair_at(scope, way);
  if (!scope.member.membership.losses || !is_known(scope.operation)) return;
  if (!exchanges(pair, number) || number - pair.base >= kPieceSlots) return;
  const PieceBits lost = sent_by_asker(pair, number);
  if (lost != 0) {
    ask_at_once(scope, way, lost);
  } else if (!keeps_pace(scope, number)) {
    operation_asked_for(scope);
  }
}

void on_lost(const Scope& scope, const peal_wire_header& header) {
  const uint32_t way = way_of(scope.member.membership, header.sender);
  const Pair& pair = pair_at(scope, way);
  if (!is_known(scope.operation) || !exchanges(pair, header.piece)) return;
  if (header.piece - pair.base >= kPieceSlots) return;
  const PieceBits bit = bit_in(pair, header.piece);
  if ((pair.come & bit) == 0) note_lost(scope, way, bit);
}

void ask_soon_again(const Scope& scope) {
  if (inquiry_doubts(scope.operation.inquiry, kLostEntry)) operation_doubts(scope, kLostEntry);
}

// Of those that seem late one is asked, as the others would say the same.
void chase(const Scope& scope) {
  Operation& operation = scope.operation;
  if (!is_known(operation)) return;
  watch_all(scope);
  if (operation.inquiry.asking == Asking::kNobody) return;
  auto& exchange = own_state<Exchange>(operation);
  if (asks_suspects(operation.inquiry)) {
    chase_these(scope, Whom::kAnybody, kAskedAtOnce, &exchange.way);
    if (!lacks_lost(scope)) inquiry_settled(operation.inquiry, kLostEntry);
    return;
  }
  chase_these(scope, Whom::kOthers, kAskedAtOnce, &exchange.way);
  chase_these(scope, Whom::kLate, 1, &exchange.late_way);
}

}  // namespace peal::direct
