// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/allgather/broadcast_all_answers.h"

#include <bit>

#include "firmware/collective/allgather/broadcast_all_blocks.h"
#include "firmware/collective/allgather/broadcast_all_questions.h"
#include "firmware/collective/allgather/broadcast_all_repair.h"
#include "firmware/operation/operation.h"

namespace peal::broadcast_all {
namespace {

// What becomes of a question for one block.
enum class Answer : uint8_t { kRepaired, kNotYet, kStale };

Answer answer(const Scope& scope, uint32_t number, Rank origin, const peal_peer_address& child) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const bool window = is_under_way(operation, number);
  // What has not come here either: our own timer asks for it; here it is enough to say so.
  if (window && !has_bit(piece_slot(operation, number), origin)) {
    if (origin != self.rank) {
      want(scope);
    } else if (is_posted(operation) && number >= operation.base + kPieceWindow) {
      ask_for_what_holds_up(scope);
    }
    return Answer::kNotYet;
  }
  if (repair_block(scope, number, origin, child)) return Answer::kRepaired;
  // A slot that serves a later piece: everybody has this one (decision 0003), the question is old.
  if (!piece_is_open(operation, number)) return Answer::kStale;
  Piece& piece = piece_slot(operation, number);
  if (origin == self.rank || is_staged(operation)) return Answer::kNotYet;
  const bool asks = hops_owed(self, piece, origin) == 0;
  owe(piece, hopping::place(child.rank, origin, self.ranks));
  if (reads_result(scope)) {
    // It is sent when it has landed, or when what could not be had now can be.
    operation.in_debt = true;
    if (has_landed(operation, piece)) operation_starved(scope);
    return Answer::kRepaired;
  }
  if (asks) relay_question(scope, number, origin);
  return Answer::kNotYet;
}

}  // namespace

peal_counter on_nack(const Scope& scope, const peal_wire_header& header, const peal_nack& nack) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const uint32_t number = header.piece;
  if (number >= operation.piece_count) return PEAL_COUNTER_DROP_PIECE;
  if (!is_expected(self, header.origin)) return PEAL_COUNTER_DROP_ORIGIN;
  // The asker is our child in the trees of all origins it names.
  const uint32_t asking = hopping::place(header.sender, header.origin, self.ranks);
  if (header.hop >= self.rounds || asking == 0 || hopping::arriving_hop(asking) != header.hop ||
      header.sender != plus(self.rank, 1u << header.hop, self.ranks)) {
    return PEAL_COUNTER_DROP_HOP;
  }
  const uint32_t below = 2u << header.hop < self.ranks ? 2u << header.hop : self.ranks;
  const uint32_t ranks = below - asking;  // from the first on
  // Behind those of all ranks over the hop come those of the next piece.
  const bool all = asking == 1u << header.hop;
  const uint32_t pieces = all ? kPieceWindow : 1;
  if (nack.fragments == 0 ||
      (ranks * pieces < kAskedMost && nack.fragments >> (ranks * pieces) != 0)) {
    return PEAL_COUNTER_DROP_FRAGMENT;
  }
  const uint32_t most = static_cast<uint32_t>(std::bit_width(nack.fragments)) - 1;
  const uint32_t last = number + most / ranks;
  if (last >= operation.piece_count) return PEAL_COUNTER_DROP_PIECE;
  for (uint32_t asked = number; asked <= last; ++asked) {
    if (is_under_way(operation, asked) && piece_open(operation, asked) == nullptr) {
      return PEAL_COUNTER_DROP_PIECE;
    }
  }
  const peal_peer_address& child = self.peers[peer_ahead(header.hop)].address;
  bool repaired = false;
  bool owing = false;
  Owed owed = Owed::kByTheLate;
  for (uint64_t bits = nack.fragments; bits != 0; bits &= bits - 1) {
    const auto i = static_cast<uint32_t>(std::countr_zero(bits));
    const Rank origin = minus(header.origin, i % ranks, self.ranks);
    const Answer done = answer(scope, number + i / ranks, origin, child);
    repaired |= done == Answer::kRepaired;
    owing |= done == Answer::kNotYet;
    if (done != Answer::kNotYet || owed == Owed::kByHost) continue;
    if (origin == self.rank) {
      owed = Owed::kByHost;
    } else if (!is_taken_for_late(scope, origin)) {
      owed = Owed::kByOthers;
    }
  }
  if (!repaired && !owing) return PEAL_COUNTER_DROP_STALE;
  if (!repaired) send_not_yet(scope, child, header, nack, owed);
  return PEAL_COUNTER_RECEIVED;
}

}  // namespace peal::broadcast_all
