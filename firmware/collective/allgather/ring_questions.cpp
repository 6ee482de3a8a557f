// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/allgather/ring_questions.h"

#include <bit>

#include "firmware/collective/allgather/gathering.h"
#include "firmware/collective/allgather/ring_piece.h"
#include "firmware/group/inquiry.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/repair.h"
#include "firmware/wire/edge.h"
#include "firmware/wire/transmit.h"

namespace peal::ring {
namespace {

// Blocks that one question can name, by distance from the first one.
constexpr uint32_t kNamed = 64;

// Distances from `first` on, but for `end`.
struct Stretch {
  uint32_t first;
  uint32_t end;
};

Stretch everything(const Membership& self) { return {1, self.ranks}; }

bool is_missing(const Membership& self, const Piece& piece, uint32_t distance) {
  return !has_bit(piece, minus(self.rank, distance, self.ranks));
}

// The next stretch's missing blocks that one question can name: bit i is `first` + i. No bit: none.
struct Named {
  uint32_t first;
  uint64_t bits;
};
Named name_missing(const Membership& self, const Piece& piece, const Stretch& in) {
  Named named = {in.first, 0};
  while (named.first < in.end && !is_missing(self, piece, named.first)) ++named.first;
  for (uint32_t i = 0; i < kNamed && named.first + i < in.end; ++i) {
    if (is_missing(self, piece, named.first + i)) named.bits |= uint64_t{1} << i;
  }
  return named;
}

// False: not now.
bool ask(const Scope& scope, uint32_t number, const Named& named, Wanted wanted) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  if (!operation_may_ask(scope, left_of(self), wanted)) return false;
  const peal_nack nack = question(card, named.bits);
  const SmallPacket what = {
      .piece = number,
      .origin = static_cast<uint16_t>(minus(self.rank, named.first, self.ranks)),
      .payload = &nack,
      .length = sizeof(nack)};
  if (send_small(card, self, self.peers[left_entry(self)].address,
                 packet_kind(operation, PEAL_PACKET_NACK), what)) {
    count(card, PEAL_COUNTER_SENT_NACK);
  }
  return true;
}

// Asks for all that is missing of a stretch. False: for nothing, or not for all.
bool ask_for(const Scope& scope, uint32_t number, const Piece& piece, Stretch in) {
  const Membership& self = scope.member.membership;
  bool asked = false;
  while (in.first < in.end) {
    const Named named = name_missing(self, piece, in);
    if (named.bits == 0) break;
    if (!ask(scope, number, named, Wanted::kAgain)) return false;
    asked = true;
    in.first = named.first + kNamed;
  }
  return asked;
}

// Pieces that may be asked for now.
struct Window {
  uint32_t first;
  uint32_t end;
};
Window window_of(const Operation& operation) {
  const uint32_t end = operation.base + kPieceWindow;
  return {operation.base, end < operation.piece_count ? end : operation.piece_count};
}

// The piece's record, null where this rank has nothing to ask for: before the post, of what it has
// not heard.
Piece* wanted_piece(const Scope& scope, uint32_t number) {
  Operation& operation = scope.operation;
  if (!is_posted(operation) && !piece_is_open(operation, number)) return nullptr;
  Piece* piece = piece_open(operation, number);
  const Membership& self = scope.member.membership;
  if (piece == nullptr || come_of(self, *piece) == self.ranks - 1u) return nullptr;
  return is_posted(operation) || piece->arrived > 0 ? piece : nullptr;
}

// What is known to be lost, and was not asked for yet. False: nothing.
bool ask_for_fresh(const Scope& scope) {
  Operation& operation = scope.operation;
  const Window window = window_of(operation);
  bool asked = false;
  for (uint32_t number = window.first; number < window.end; ++number) {
    Piece* piece = wanted_piece(scope, number);
    if (piece == nullptr) continue;
    Heard& heard = own_state<Blocks>(*piece).heard;
    if (heard.fresh_first == heard.fresh_end) continue;
    asked |= ask_for(scope, number, *piece, {heard.fresh_first, heard.fresh_end});
    heard.fresh_first = heard.fresh_end = 0;
  }
  return asked;
}

// All that is known to be lost. False: nothing.
bool ask_for_lost_ones(const Scope& scope) {
  const Window window = window_of(scope.operation);
  bool asked = false;
  for (uint32_t number = window.first; number < window.end; ++number) {
    const Piece* piece = wanted_piece(scope, number);
    if (piece == nullptr) continue;
    const Heard& heard = own_state<Blocks>(*piece).heard;
    if (heard.lost > 0) asked |= ask_for(scope, number, *piece, {1, heard.farthest});
  }
  return asked;
}

// Something of the edge is lost, and no piece knows it to be its own: then it is the end of one
// that stands still. A piece is behind when a later one has come farther.
bool ask_for_ends(const Scope& scope) {
  Operation& operation = scope.operation;
  const Window window = window_of(operation);
  const uint32_t slots = operation.base + kPieceSlots;
  for (uint32_t number = window.first; number < window.end; ++number) {
    const Piece* piece = wanted_piece(scope, number);
    if (piece == nullptr) continue;
    if (operation.inquiry.all_sent) {
      return ask_for(scope, number, *piece, everything(scope.member.membership));
    }
    const uint32_t farthest = own_state<Blocks>(*piece).heard.farthest;
    uint32_t end = 0;
    for (uint32_t later = number + 1; later < slots && later < operation.piece_count; ++later) {
      if (!piece_is_open(operation, later)) continue;
      const uint32_t come = own_state<Blocks>(piece_slot(operation, later)).heard.farthest;
      if (come > end) end = come;
    }
    if (ask_for(scope, number, *piece, {farthest + 1, end + 1})) return true;
  }
  return false;
}

// Nothing has come for long. One question for the edge: what may be late is not named piece by
// piece.
void ask_in_silence(const Scope& scope) {
  const Membership& self = scope.member.membership;
  const Window window = window_of(scope.operation);
  for (uint32_t number = window.first; number < window.end; ++number) {
    const Piece* piece = wanted_piece(scope, number);
    if (piece == nullptr) continue;
    const bool lost = own_state<Blocks>(*piece).heard.lost > 0;
    ask(scope, number, name_missing(self, *piece, everything(self)),
        lost ? Wanted::kAgain : Wanted::kFirst);
    return;
  }
}

// What becomes of a question for one block.
enum class Answer : uint8_t { kRepaired, kHeld, kNotYet, kStale };

Answer answer(const Scope& scope, uint32_t number, Rank origin) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  if (!piece_is_open(operation, number)) {
    const bool passed = !is_under_way(operation, number);
    return passed ? Answer::kStale : Answer::kNotYet;
  }
  const Piece& piece = piece_slot(operation, number);
  // It is lost farther up, and asked for there; or late.
  if (!has_bit(piece, origin)) return Answer::kNotYet;
  if (!gathering::is_in(own_state<Blocks>(piece).kept, origin)) return Answer::kHeld;
  if (!may_repair(card)) return Answer::kHeld;
  const ImagePart part = {number, origin, 0, piece_length(operation, number)};
  const DataPlace place = {static_cast<uint16_t>(origin), 0, 0};
  const bool sent = send_from_image(scope, part, place, right_entry(self), true);
  return sent ? Answer::kRepaired : Answer::kHeld;
}

}  // namespace

void listen(const Scope& scope, Piece& piece, const peal_wire_header& header) {
  auto& [card, member, operation] = scope;
  Membership& self = member.membership;
  Heard& heard = own_state<Blocks>(piece).heard;
  const uint32_t distance = distance_of(self, header.origin);
  if ((header.flags & PEAL_PACKET_REPAIR) != 0) return heard_again(heard, distance);
  const uint32_t lost = heard_first(heard, distance, come_of(self, piece), header.fragment);
  if (lost == 0) return;
  const uint32_t entry = left_entry(self);
  // What the edge has lost is known: nobody else need look for it.
  edge_explained(self.peers[entry], header, lost);
  inquiry_suspect(operation.inquiry, entry);
  ask_for_fresh(scope);
  if (!inquiry_cleared(card, member, operation.inquiry)) return;
  card.timers.arm_no_later(operation.timer, inquiry_next(card, operation.inquiry));
}

void chase(const Scope& scope) {
  const Operation& operation = scope.operation;
  const Membership& self = scope.member.membership;
  if (operation.phase == OperationPhase::kFinished || self.ranks == 1) return;
  if (!asks_suspects(operation.inquiry)) return ask_in_silence(scope);
  if (operation.inquiry.repeats) {
    if (!ask_for_lost_ones(scope)) ask_in_silence(scope);
    return;
  }
  if (inquiry_doubts(operation.inquiry, left_entry(self))) return;
  ask_for_ends(scope);
}

peal_counter on_nack(const Scope& scope, const peal_wire_header& header, const peal_nack& nack) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  if (header.hop != 0) return PEAL_COUNTER_DROP_HOP;
  if (header.piece >= operation.piece_count) return PEAL_COUNTER_DROP_PIECE;
  if (header.sender != right_of(self)) return PEAL_COUNTER_DROP_SENDER;
  if (header.origin >= self.ranks || header.origin == header.sender) {
    return PEAL_COUNTER_DROP_ORIGIN;
  }
  // The farthest that this rank passes on is N - 2 away.
  const uint32_t most = self.ranks - 1 - distance_of(self, header.origin);
  if (nack.fragments == 0 || (most < kNamed && nack.fragments >> most != 0)) {
    return PEAL_COUNTER_DROP_FRAGMENT;
  }
  bool repaired = false;
  bool held = false;
  bool owing = false;
  Owed owed = Owed::kByOthers;
  for (uint64_t bits = nack.fragments; bits != 0; bits &= bits - 1) {
    const auto i = static_cast<uint32_t>(std::countr_zero(bits));
    const Rank origin = minus(header.origin, i, self.ranks);
    const Answer done = answer(scope, header.piece, origin);
    repaired |= done == Answer::kRepaired;
    held |= done == Answer::kHeld;
    owing |= done == Answer::kNotYet;
    if (done == Answer::kNotYet && origin == self.rank) owed = Owed::kByHost;
  }
  if (!repaired && !held && !owing) return PEAL_COUNTER_DROP_STALE;
  if (held) owed = Owed::kAgain;
  if (held || !repaired) {
    send_not_yet(scope, self.peers[right_entry(self)].address, header, nack, owed);
  }
  return PEAL_COUNTER_RECEIVED;
}

}  // namespace peal::ring
