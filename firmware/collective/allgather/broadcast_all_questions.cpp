// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/allgather/broadcast_all_questions.h"

#include <bit>

#include "firmware/base/assert.h"
#include "firmware/collective/allgather/broadcast_all_blocks.h"
#include "firmware/collective/allgather/broadcast_all_repair.h"
#include "firmware/group/inquiry.h"
#include "firmware/operation/operation.h"
#include "firmware/wire/transmit.h"

namespace peal::broadcast_all {
namespace {

constexpr uint32_t kDebtsPerTimeout = 8;
constexpr int kFewMissing = 8;

// The i-th of the origins whose blocks reach this rank over this hop.
Rank origin_over(const Membership& self, uint32_t hop, uint32_t i) {
  return minus(self.rank, (1u << hop) + i, self.ranks);
}
uint32_t origins_over(const Membership& self, uint32_t hop) {
  const uint32_t left = self.ranks - (1u << hop);
  return 1u << hop < left ? 1u << hop : left;
}

// What one question names: blocks that come over the same hop, a bit each. Bit i is the block of
// the rank i below `first`; behind those of all ranks over the hop, where `first` is the nearest of
// them, come those of the next piece, and so on. docs/decisions/0058
struct Asked {
  uint32_t hop;
  Rank first;
  uint32_t piece;
  uint64_t bits;
};

Asked asked_for(const Membership& self, uint32_t number, Rank origin) {
  const uint32_t place = hopping::place(self.rank, origin, self.ranks);
  const uint32_t hop = hopping::arriving_hop(place);
  const uint32_t i = place - (1u << hop);
  return {hop, origin_over(self, hop, i - i % kAskedMost), number, uint64_t{1} << (i % kAskedMost)};
}

void ask_parent(const Scope& scope, const Asked& asked) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const peal_nack nack = question(card, asked.bits);
  const SmallPacket what = {.piece = asked.piece,
                            .origin = static_cast<uint16_t>(asked.first),
                            .hop = static_cast<uint8_t>(asked.hop),
                            .payload = &nack,
                            .length = sizeof(nack)};
  if (send_small(card, self, self.peers[peer_behind(asked.hop)].address,
                 packet_kind(operation, PEAL_PACKET_NACK), what)) {
    count(card, PEAL_COUNTER_SENT_NACK);
  }
}

bool may_ask_parent(const Scope& scope, uint32_t hop, Wanted wanted) {
  const Rank parent = scope.member.membership.peers[peer_behind(hop)].address.rank;
  return operation_may_ask(scope, parent, wanted);
}

// Asks again for what was promised to ranks below. Each time it begins where it stopped before, so
// that all get their turn.
void chase_debts(const Scope& scope) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const uint32_t places = kPieceSlots * self.ranks;
  operation.in_debt = false;
  const bool has_them = reads_result(scope);
  if (has_them) settle_landed(scope);
  auto& turn = own_state<Turn>(operation);
  const uint32_t first = turn.debt;
  uint32_t budget = kDebtsPerTimeout;
  for (uint32_t i = 0; i < places; ++i) {
    const uint32_t at = (first + i) % places;
    const uint32_t debt = at % self.ranks;
    const Piece& piece = operation.pieces[at / self.ranks];
    if (piece.number == 0 || !owes(piece, debt)) continue;
    operation.in_debt = true;
    const Rank origin = origin_of(self, debt);
    if (has_them && has_bit(piece, origin)) continue;  // it is landing
    // Of a block that several ask for, the first debt asks.
    const uint32_t hops = hops_owed(self, piece, origin);
    if (1u << hopping::arriving_hop(debt) != (hops & -hops)) continue;
    turn.debt = at;
    if (budget == 0) return;
    --budget;
    turn.debt = (at + 1) % places;
    const Asked asked = asked_for(self, piece.number - 1, origin);
    if (may_ask_parent(scope, asked.hop, Wanted::kAgain)) ask_parent(scope, asked);
  }
}

// Has any of the first window's blocks of this rank come?
bool has_begun(const Scope& scope, Rank origin) {
  const Operation& operation = scope.operation;
  for (uint32_t number = 0; number < kPieceWindow && number < operation.piece_count; ++number) {
    if (!piece_is_open(operation, number)) continue;
    if (has_bit(piece_slot(operation, number), origin)) return true;
  }
  return false;
}

// Does a rank's silence say more than that one packet of it is missing?
bool tells_late_from_lost(const Operation& operation) {
  return kPieceWindow > 1 && operation.piece_count > 1 && operation.base == 0;
}

// What of this piece is missing over the hop is late, most likely: of the ranks whose blocks they
// are nothing has come, and several packets of each would have to be lost. (Who has posted has sent
// the pieces of the first window at once, and later ones when it could.)
bool seems_late(const Scope& scope, const Piece& piece, uint32_t hop) {
  const Membership& self = scope.member.membership;
  if (!tells_late_from_lost(scope.operation)) return false;
  for (uint32_t i = 0; i < origins_over(self, hop); ++i) {
    const Rank origin = origin_over(self, hop, i);
    if (!has_bit(piece, origin) && has_begun(scope, origin)) return false;
  }
  return true;
}

// Which blocks of the piece are missing that come over the hop, a bit each, of kAskedMost ranks,
// the `from`-th first.
uint64_t missing_over(const Membership& self, const Piece& piece, uint32_t hop, uint32_t from) {
  uint64_t bits = 0;
  for (uint32_t i = from; i < from + kAskedMost && i < origins_over(self, hop); ++i) {
    if (!has_bit(piece, origin_over(self, hop, i))) bits |= uint64_t{1} << (i - from);
  }
  return bits;
}

// The piece's record, if the operation wants it: an unposted one repairs what it has heard of; a
// posted one wants everything in its window.
const Piece* wanted_piece(const Scope& scope, uint32_t number) {
  Operation& operation = scope.operation;
  if (!is_posted(operation) && !piece_is_open(operation, number)) return nullptr;
  const Piece* piece = piece_open(operation, number);
  PEAL_ASSERT(piece != nullptr);
  return piece;
}
uint32_t behind_window(const Operation& operation) {
  const uint32_t last = operation.base + kPieceWindow;
  return last < operation.piece_count ? last : operation.piece_count;
}

// Has the block been sent, as others of its rank were? A rank sends its pieces in order, and those
// of the first window together.
bool was_sent(const Operation& operation, uint32_t number, Rank origin) {
  const bool first_window = number < kPieceWindow;
  if (first_window && operation.base > 0) return true;
  for (uint32_t other = first_window ? 0 : number + 1; other < operation.base + kPieceSlots;
       ++other) {
    if (piece_is_open(operation, other) && has_bit(piece_slot(operation, other), origin)) {
      return true;
    }
  }
  return false;
}
uint64_t sent_over(const Scope& scope, uint32_t number, uint32_t hop, uint32_t from,
                   uint64_t missing) {
  uint64_t bits = 0;
  for (uint64_t left = missing; left != 0; left &= left - 1) {
    const auto i = static_cast<uint32_t>(std::countr_zero(left));
    const Rank origin = origin_over(scope.member.membership, hop, from + i);
    if (was_sent(scope.operation, number, origin)) bits |= left & -left;
  }
  return bits;
}

// The same question names what must have been sent of the pieces behind it, as far as it has room.
void name_what_was_sent(const Scope& scope, Asked* asked) {
  const Membership& self = scope.member.membership;
  const uint32_t origins = origins_over(self, asked->hop);
  for (uint32_t number = asked->piece + 1; number < behind_window(scope.operation); ++number) {
    const uint32_t place = (number - asked->piece) * origins;
    if (place + origins > kAskedMost) return;
    const Piece* piece = wanted_piece(scope, number);
    if (piece == nullptr) continue;
    const uint64_t missing = missing_over(self, *piece, asked->hop, 0);
    asked->bits |= sent_over(scope, number, asked->hop, 0, missing) << place;
  }
}

// A question for each neighbour above that owes a block of the piece (what seems late, or what does
// not), but for those (hops, a bit each) that have been asked for an earlier one.
void chase_piece(const Scope& scope, const Piece& piece, uint32_t number, Wanted wanted,
                 uint32_t* hops) {
  const Membership& self = scope.member.membership;
  for (uint32_t hop = 0; hop < self.rounds; ++hop) {
    if ((*hops >> hop & 1) != 0) continue;
    if ((wanted == Wanted::kLate) != seems_late(scope, piece, hop)) continue;
    for (uint32_t from = 0; from < origins_over(self, hop); from += kAskedMost) {
      const uint64_t bits = missing_over(self, piece, hop, from);
      if (bits == 0) continue;
      *hops |= 1u << hop;
      if (!may_ask_parent(scope, hop, wanted)) continue;
      Asked asked = {hop, origin_over(self, hop, from), number, bits};
      name_what_was_sent(scope, &asked);
      ask_parent(scope, asked);
    }
  }
}

void chase_pieces(const Scope& scope, Wanted wanted, uint32_t* hops) {
  const Operation& operation = scope.operation;
  for (uint32_t number = operation.base; number < behind_window(operation); ++number) {
    const Piece* piece = wanted_piece(scope, number);
    if (piece != nullptr) chase_piece(scope, *piece, number, wanted, hops);
  }
}

// Asks a neighbour that has lost something on its way here for what is missing of the pieces up to
// the last, in as few questions as can name it.
void ask_for_lost_over(const Scope& scope, uint32_t hop, uint32_t last) {
  const Membership& self = scope.member.membership;
  const uint32_t origins = origins_over(self, hop);
  Asked asked = {};
  const auto ask = [&] {
    if (asked.bits != 0 && may_ask_parent(scope, hop, Wanted::kFirst)) ask_parent(scope, asked);
  };
  for (uint32_t number = scope.operation.base; number < last; ++number) {
    const Piece* piece = wanted_piece(scope, number);
    if (piece == nullptr) continue;
    for (uint32_t from = 0; from < origins; from += kAskedMost) {
      const uint64_t bits = missing_over(self, *piece, hop, from);
      // Where much is missing, most of it is on its way; a later packet or silence will tell.
      if (bits == 0 || std::popcount(bits) > kFewMissing) continue;
      const uint32_t place = (number - asked.piece) * origins;
      if (asked.bits != 0 && place + origins <= kAskedMost) {
        asked.bits |= bits << place;
        continue;
      }
      ask();
      asked = {hop, origin_over(self, hop, from), number, bits};
    }
  }
  ask();
}

void chase_lost(const Scope& scope) {
  for (uint32_t hop = 0; hop < scope.member.membership.rounds; ++hop) {
    ask_for_lost_over(scope, hop, behind_window(scope.operation));
  }
}

}  // namespace

void chase(const Scope& scope) {
  Operation& operation = scope.operation;
  // Debts are older than what this card itself still lacks, and others wait for them.
  if (operation.in_debt) chase_debts(scope);
  if (operation.phase == OperationPhase::kFinished) return;
  if (asks_suspects(operation.inquiry)) return chase_lost(scope);
  // Before the post nobody waits for what lacks here, but for those below who have asked for it.
  if (!is_posted(operation) && !own_state<Turn>(operation).wanted) return;
  uint32_t hops = 0;
  chase_pieces(scope, Wanted::kFirst, &hops);
  chase_pieces(scope, Wanted::kLate, &hops);
}

void want(const Scope& scope) {
  auto& [card, member, operation] = scope;
  auto& turn = own_state<Turn>(operation);
  if (is_posted(operation) || turn.wanted) return;
  turn.wanted = true;
  inquiry_begin(card, member, operation.inquiry);
  card.timers.arm_no_later(operation.timer, inquiry_next(card, operation.inquiry));
}

void ask_for_what_holds_up(const Scope& scope) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  Inquiry& inquiry = operation.inquiry;
  auto& turn = own_state<Turn>(operation);
  if (!inquiry_is_silent(card, inquiry) || card.now < turn.held_up_ns) return;
  turn.held_up_ns = card.now + card.timeouts.nack_ns;
  for (uint32_t hop = 0; hop < self.rounds; ++hop) {
    const Rank parent = self.peers[peer_behind(hop)].address.rank;
    const uint32_t entry = peer_entry(self.rank, parent, self.ranks);
    if (inquiry_doubts(inquiry, entry)) continue;
    inquiry_suspect(inquiry, entry);
    ask_for_lost_over(scope, hop, operation.base + 1);
    inquiry_looked(inquiry);
  }
}

bool is_taken_for_late(const Scope& scope, Rank origin) {
  return tells_late_from_lost(scope.operation) && inquiry_is_lossless(scope.operation.inquiry) &&
         takes_silence_for_lateness(scope.card, scope.member) && !has_begun(scope, origin);
}

void relay_question(const Scope& scope, uint32_t number, Rank origin) {
  const Membership& self = scope.member.membership;
  const Asked asked = asked_for(self, number, origin);
  operation_owes(scope, self.peers[peer_behind(asked.hop)].address.rank);
  if (may_ask_parent(scope, asked.hop, Wanted::kAgain)) {
    ask_parent(scope, asked);
    count(scope.card, PEAL_COUNTER_RELAYED_NACK);
  }
}

}  // namespace peal::broadcast_all
