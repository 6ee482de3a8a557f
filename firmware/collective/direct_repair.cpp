// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/direct_repair.h"

#include <cstring>

#include "firmware/base/mutation.h"
#include "firmware/collective/direct_blocks.h"
#include "firmware/collective/direct_sending.h"
#include "firmware/group/sent_blocks.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/repair.h"
#include "firmware/operation/transfer.h"
#include "firmware/wire/transmit.h"

namespace peal::direct {
namespace {

// Where the block for a rank can be read again.
HostAddress repair_source(const Scope& scope, uint32_t number, Rank to, bool kept) {
  if (kept && !mutated(Mutation::kNoRetention)) return kept_address(scope, number, to);
  return given_address(scope, number, to);
}

// Sends an own block again: what is not kept is still the card's in the user's memory.
bool repair(const Scope& scope, uint32_t number, const peal_peer_address& to, bool kept) {
  auto& [card, member, operation] = scope;
  const uint32_t length = length_for(scope, number, to.rank);
  if (!may_repair(card)) return false;
  Packet* packet = take_bounce(card, length > 0 ? 1 : 0);
  if (packet == nullptr) return false;
  prepare(scope, packet, to, number);
  packet->header->flags = PEAL_PACKET_REPAIR;
  count(card, PEAL_COUNTER_SENT_REPAIR);
  if (length == 0) {
    launch_packet(card, packet, false);
    return true;
  }
  transfer_read(scope, {.role = kept ? TransferRole::kRepair : TransferRole::kRepairOwn,
                        .step = kOwnRead,
                        .piece = number,
                        .host = repair_source(scope, number, to.rank, kept),
                        .card = packet->payload,
                        .bytes = length,
                        .packet = packet,
                        .detail = kNoPeer});
  return true;
}

// The same for one that stays in its packet, whose header says all.
bool repair_as_sent(const Scope& scope, Packet* sent) {
  Card& card = scope.card;
  if (!may_repair(card)) return false;
  Packet* packet = share_packet(card, sent);
  if (packet == nullptr) return false;
  std::memcpy(packet->header, sent->header, sizeof(*packet->header));
  packet->header->flags = PEAL_PACKET_REPAIR;
  count(card, PEAL_COUNTER_SENT_REPAIR);
  launch_packet(card, packet, false);
  return true;
}

// The same for a block of parts that lies in the channel, with what it is.
bool repair_framed(const Scope& scope, uint32_t number, const peal_peer_address& to) {
  auto& [card, member, operation] = scope;
  if (!may_repair(card)) return false;
  Packet* packet = take_bounce(card, 1);
  if (packet == nullptr) return false;
  prepare_header(scope, packet, to, number);
  packet->header->flags = PEAL_PACKET_REPAIR;
  count(card, PEAL_COUNTER_SENT_REPAIR);
  transfer_read(scope, {.role = TransferRole::kRepairFramed,
                        .step = kOwnRead,
                        .piece = number,
                        .host = kept_frame_address(scope, number, to.rank),
                        .card = packet->payload,
                        .bytes = place_bytes(operation),
                        .packet = packet,
                        .detail = kNoPeer});
  return true;
}

// Does what must be kept of it lie in the channel (what stays in its packet was looked for before)?
// The block for one rank does when it counts as
// sent, that for all later.
bool lies_there(const Scope& scope, uint32_t number) {
  Operation& operation = scope.operation;
  if (!is_for_all(operation) || length_for(scope, number, scope.member.membership.rank) == 0) {
    return true;
  }
  return is_retained(operation, number);
}

// The asker has it, for it has sent the piece W behind it; or it never will: all that it had to get
// was sent, and nothing was kept of this.
bool is_stale(const Operation& operation, const Pair& pair, uint32_t number) {
  if (number + kPieceWindow < pair.base) return true;
  return operation.phase == OperationPhase::kFinished && number >= pair.base;
}

Answer outcome(bool repaired) { return repaired ? Answer::kRepaired : Answer::kHeld; }

// Pieces that two ranks exchange are passed at others' pace: one may be far behind whoever has more
// to exchange with others. What it asks for is not overwritten, since it had nothing to do with
// what came later (docs/decisions/0020).
Answer answer_of_parts(const Scope& scope, uint32_t number, const peal_peer_address& to,
                       uint32_t way) {
  const Operation& operation = scope.operation;
  const Pair& pair = pair_at(scope, way);
  if (is_stale(operation, pair, number)) return Answer::kStale;
  if (operation.phase == OperationPhase::kFinished) {
    return outcome(repair_framed(scope, number, to));
  }
  if (!is_known(operation)) return Answer::kNotYet;
  if (!exchanges(pair, number)) return Answer::kStale;
  if (!is_sent(pair, number)) return Answer::kNotYet;
  if (is_kept(scope, pair, number) && lies_there(scope, number)) {
    return outcome(repair_framed(scope, number, to));
  }
  return outcome(repair(scope, number, to, false));
}

}  // namespace

Answer answer(const Scope& scope, uint32_t number, const peal_peer_address& to) {
  Operation& operation = scope.operation;
  const uint32_t way = way_of(scope.member.membership, to.rank);
  Packet* sent = sent_block_find(scope, way, number);
  if (sent != nullptr) {
    const bool delivered = scope.card.port->is_delivered(sent);
    return delivered ? Answer::kStale : outcome(repair_as_sent(scope, sent));
  }
  if (has_parts(operation)) return answer_of_parts(scope, number, to, way);
  const Pair& pair = pair_at(scope, way);
  if (is_stale(operation, pair, number)) return Answer::kStale;
  // Everybody has the pieces of an operation that is over here, but for those that are kept.
  const bool kept = is_kept(scope, pair, number);
  if (operation.phase == OperationPhase::kFinished && !kept) return Answer::kStale;
  if (!is_sent(pair, number)) return Answer::kNotYet;
  return outcome(repair(scope, number, to, kept && lies_there(scope, number)));
}

}  // namespace peal::direct
