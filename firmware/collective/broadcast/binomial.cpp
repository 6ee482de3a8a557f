// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/broadcast/binomial.h"

#include "abi/admin.h"
#include "firmware/base/assert.h"
#include "firmware/base/mutation.h"
#include "firmware/collective/broadcast/binomial_credits.h"
#include "firmware/collective/broadcast/binomial_data.h"
#include "firmware/collective/broadcast/binomial_questions.h"
#include "firmware/collective/broadcast/binomial_repair.h"
#include "firmware/collective/broadcast/binomial_tree.h"
#include "firmware/dma/dma.h"
#include "firmware/group/early.h"
#include "firmware/host/keys.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/repair.h"

namespace peal::binomial {
namespace {

// Is the sender right above this card?
bool is_from_parent(const Scope& scope, const peal_wire_header& header) {
  const Membership& self = scope.member.membership;
  const uint32_t place = place_of(scope);
  return place != 0 && header.hop == hopping::arriving_hop(place) &&
         header.sender == minus(self.rank, 1u << header.hop, self.ranks);
}

// Is the sender below this card, by that hop?
bool is_from_child(const Scope& scope, const peal_wire_header& header) {
  const Membership& self = scope.member.membership;
  return header.hop < self.rounds && (children_of(scope) >> header.hop & 1) != 0 &&
         header.sender == plus(self.rank, 1u << header.hop, self.ranks);
}

peal_status check(Card& card, const Member& member, const peal_submission& entry,
                  Command* command) {
  if (entry.block_bytes > 0xffffffffu) return PEAL_STATUS_BAD_LENGTH;
  if (entry.block_bytes == 0) return PEAL_STATUS_OK;  // touches no memory
  if (entry.root == member.membership.rank) {
    command->send_key = entry.send_key;
    return check_range(card, member.context, entry.send_key, entry.send_offset, entry.block_bytes,
                       PEAL_ACCESS_READ, &command->send);
  }
  command->receive_key = entry.receive_key;
  return check_range(card, member.context, entry.receive_key, entry.receive_offset,
                     entry.block_bytes, PEAL_ACCESS_WRITE, &command->receive);
}

void open(const Scope& scope) {
  const Membership& self = scope.member.membership;
  Tree& tree = tree_of(scope);
  tree.place = hopping::place(self.rank, scope.operation.root, self.ranks);
  tree.children = static_cast<uint16_t>(hopping::leaving_hops(tree.place, self.ranks));
  pieces_open(scope, kPieceBytes, 0, 1);
}

void post(const Scope& scope) {
  auto& [card, member, operation] = scope;
  const Command& command = operation.command;
  const uint32_t key = place_of(scope) == 0 ? command.send_key : command.receive_key;
  tree_of(scope).readable = may_read(card, member.context, key);
}

peal_counter on_data(const Scope& scope, Packet* packet) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const peal_wire_header& header = *packet->header;
  const uint32_t number = header.piece;
  if (number >= operation.piece_count) return PEAL_COUNTER_DROP_PIECE;
  if (header.fragment >= fragments_in(operation, number)) return PEAL_COUNTER_DROP_FRAGMENT;
  if (header.length != fragment_length(operation, number, header.fragment)) {
    return PEAL_COUNTER_DROP_LENGTH;
  }
  const uint32_t place = place_of(scope);
  if (place == 0) return PEAL_COUNTER_DROP_ORIGIN;
  const uint32_t hop = hopping::arriving_hop(place);
  if (header.hop != hop) return PEAL_COUNTER_DROP_HOP;
  if (header.sender != minus(self.rank, 1u << hop, self.ranks)) return PEAL_COUNTER_DROP_SENDER;
  if (!is_under_way(operation, number)) {
    return PEAL_COUNTER_DUPLICATE;
  }
  if (number >= window_end(scope)) return PEAL_COUNTER_DROP_PIECE;
  Piece* piece = piece_open(operation, number);
  PEAL_ASSERT(piece != nullptr);
  if (has_bit(*piece, header.fragment) && !mutated(Mutation::kDuplicateAccepted)) {
    return PEAL_COUNTER_DUPLICATE;
  }
  if (!land(scope, packet, number, header.fragment)) return PEAL_COUNTER_DROP_NO_DMA;
  if (!is_posted(operation)) count(card, PEAL_COUNTER_EARLY_DATA);
  set_bit(*piece, header.fragment);
  ++piece->arrived;
  operation_progressed(scope);
  hopping::forward(scope, packet);
  return PEAL_COUNTER_RECEIVED;
}

peal_counter on_signal(const Scope& scope, const peal_wire_header& header) {
  if (!is_from_child(scope, header)) return PEAL_COUNTER_DROP_HOP;
  return take_credit(scope, header.hop, header.piece);
}

// The parent asks who below lacks that piece.
peal_counter on_credit_asked(const Scope& scope, const peal_wire_header& header,
                             const peal_nack& nack) {
  if (nack.fragments != 0) return PEAL_COUNTER_DROP_FRAGMENT;
  if (tree_of(scope).whole > header.piece && may_repair(scope.card) && tell_credit(scope, true)) {
    return PEAL_COUNTER_RECEIVED;
  }
  const Owed owed = is_posted(scope.operation) ? Owed::kByOthers : Owed::kByHost;
  send_not_yet(scope, scope.member.membership.peers[peer_behind(header.hop)].address, header, nack,
               owed);
  pieces_asked_for(scope);
  return PEAL_COUNTER_RECEIVED;
}

peal_counter on_nack(const Scope& scope, const peal_wire_header& header, const peal_nack& nack) {
  Operation& operation = scope.operation;
  const uint32_t number = header.piece;
  if (number >= operation.piece_count) return PEAL_COUNTER_DROP_PIECE;
  if (is_from_parent(scope, header)) return on_credit_asked(scope, header, nack);
  if (!is_from_child(scope, header)) return PEAL_COUNTER_DROP_HOP;
  if (nack.fragments == 0 || (nack.fragments & ~all_fragments(operation, number)) != 0) {
    return PEAL_COUNTER_DROP_FRAGMENT;
  }
  const peal_counter credit = take_credit(scope, header.hop, nack.credit);
  if (credit == PEAL_COUNTER_DROP_PIECE) return credit;
  if (piece_is_passed(operation, number)) return PEAL_COUNTER_DROP_STALE;
  promise(scope, number, nack.fragments, header.hop);
  const Answer answer = repair_fragments(scope, number, nack.fragments, header.hop);
  if (answer != Answer::kRepaired) {
    const Membership& self = scope.member.membership;
    const Owed waits = place_of(scope) == 0 ? Owed::kByHost : Owed::kByOthers;
    send_not_yet(scope, self.peers[peer_ahead(header.hop)].address, header, nack,
                 answer == Answer::kHeld ? Owed::kAgain : waits);
    if (answer == Answer::kNotYet) pieces_asked_for(scope);
  }
  if (credit == PEAL_COUNTER_RECEIVED) operation_advance(scope);
  return PEAL_COUNTER_RECEIVED;
}

void end(const Scope& scope) {
  if (place_of(scope) == 0) dma_take_back(scope);
  operation_finish(scope);
}

void advance(const Scope& scope) {
  Operation& operation = scope.operation;
  if (!is_posted(operation)) return;
  if (scope.member.membership.ranks == 1) {
    operation_finish(scope);  // nobody to tell
    return;
  }
  if (early_waits(operation) || tree_of(scope).early > 0) fetch_early(scope);
  pass_pieces(scope);
  if (place_of(scope) == 0) {
    read_own(scope);
    pass_pieces(scope);  // no bytes are read at once
  }
  send_credit(scope);
  if (operation.base == operation.piece_count && operation.dma == 0) end(scope);
}

}  // namespace

constinit const AlgorithmFunctions kFunctions = {check,   open,   post,    on_data, on_signal,
                                                 on_nack, on_dma, advance, chase};

}  // namespace peal::binomial
