// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/alltoallv/bruck_steps.h"

#include <bit>

#include "firmware/collective/alltoallv/bruck_blocks.h"
#include "firmware/collective/alltoallv/bruck_logs.h"
#include "firmware/collective/direct_blocks.h"
#include "firmware/group/inquiry.h"
#include "firmware/group/sent_blocks.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/refusal.h"
#include "firmware/operation/transfer.h"
#include "firmware/wire/transmit.h"

namespace peal::bruckv {
namespace {

using direct::steps_of;

uint32_t all_steps(const Membership& self) { return (uint32_t{1} << self.rounds) - 1; }

// Are the own blocks all where they go on?
bool own_are_placed(const Scope& scope) {
  const Steps& steps = steps_of(scope);
  return steps.own_next == scope.member.membership.ranks && steps.own_reads == 0;
}

// May what came go on?
bool is_ready(const Scope& scope) {
  const Operation& operation = scope.operation;
  if (!direct::is_known(operation)) return false;
  if (steps_of(scope).begun != scope.member.membership.rounds) return false;
  return !operation.command.in_place || own_are_placed(scope);
}

void set_final(const Scope& scope, Rank origin) {
  steps_of(scope).final[origin / 64] |= bit_of(origin);
}

// Is the own block for this rank to be read? Not what has no bytes, or goes directly; nor, in
// place, what a rank has for itself.
bool is_read(const Scope& scope, Rank to) {
  if (direct::part_for(scope, to).bytes == 0 || goes_directly(scope, to)) return false;
  return to != scope.member.membership.rank || !scope.operation.command.in_place;
}

// Own blocks that are read together with the one of this rank: they lie one behind the other, and
// no head has to come before them.
uint32_t run_of(const Scope& scope, Rank first, uint32_t* bytes) {
  const Rank ranks = scope.member.membership.ranks;
  const peal_part part = direct::part_for(scope, first);
  *bytes = static_cast<uint32_t>(part.bytes);
  if (!steps_of(scope).stay) return 1;
  uint64_t end = part.offset + part.bytes;
  uint32_t run = 1;
  for (; first + run < ranks && is_read(scope, first + run); ++run) {
    const peal_part next = direct::part_for(scope, first + run);
    if (next.offset != end || *bytes + next.bytes > CONFIG_MTU_BYTES) break;
    end += next.bytes;
    *bytes += static_cast<uint32_t>(next.bytes);
  }
  return run;
}

void read_own(const Scope& scope) {
  Steps& steps = steps_of(scope);
  const Rank ranks = scope.member.membership.ranks;
  while (steps.own_next < ranks && steps.own_reads < kPieceTransfers) {
    const Rank first = steps.own_next;
    if (!is_read(scope, first)) {
      ++steps.own_next;
      continue;
    }
    Packet* packet = take_bounce_or_starve(scope);
    if (packet == nullptr) return;
    uint32_t bytes = 0;
    const uint32_t run = run_of(scope, first, &bytes);
    ++steps.own_reads;
    steps.own_next = static_cast<uint16_t>(first + run);
    transfer_read(scope, {.role = TransferRole::kWhole,
                          .step = kOwnRead,
                          .piece = 0,
                          .host = direct::given_address(scope, 0, first),
                          .card = packet->payload + kHeadBytes,
                          .bytes = bytes,
                          .packet = packet,
                          .detail = run << 16 | first});
  }
}

// A block to the user. There is a DMA record.
void land(const Scope& scope, Rank origin, Packet* packet, uint8_t* block, uint32_t bytes) {
  ++own_state<direct::Exchange>(scope.operation).landing;
  transfer_write(scope, {.role = TransferRole::kWhole,
                         .step = kLanded,
                         .piece = 0,
                         .host = direct::result_address(scope, 0, origin),
                         .card = block,
                         .bytes = bytes,
                         .packet = packet});
}

// Own blocks have been read. The read has just given its record back, so there is one: for the
// rank's own block, or for one that is alone.
void place_own(const Scope& scope, const TransferDone& done) {
  const Membership& self = scope.member.membership;
  const Rank first = done.detail & 0xffff;
  const uint32_t run = done.detail >> 16;
  uint8_t* block = done.packet->payload + kHeadBytes;
  for (Rank to = first; to < first + run; ++to) {
    const auto bytes = static_cast<uint32_t>(direct::part_for(scope, to).bytes);
    const uint32_t way = minus(self.rank, to, self.ranks);
    if (way == 0) {
      land(scope, to, done.packet, block, bytes);
    } else if (!log_may_grow(scope, step_of(way), kHeadBytes + bytes)) {
      return;  // refused: what was fetched from the channel has taken its room
    } else if (log_of(scope, step_of(way)).packet != nullptr) {
      log_append_own(scope, step_of(way), way, block, bytes);
    } else {
      put_head(block - kHeadBytes, way, bytes);
      log_append(scope, step_of(way), done.packet, block - kHeadBytes);
    }
    block += bytes;
  }
}

// Bytes of a block that step k may bring, its head included, of which so many are left in the
// packet; or 0.
uint32_t block_of(const Scope& scope, uint32_t k, const uint8_t* at, uint32_t left) {
  if (left < kHeadBytes) return 0;
  const peal_step_block head = head_at(at);
  const bool good = head.way < scope.member.membership.ranks && (head.way >> k & 1) != 0 &&
                    head.bytes <= steps_of(scope).most && head.bytes <= left - kHeadBytes;
  return good ? kHeadBytes + head.bytes : 0;
}

// How many such blocks, each once, these bytes are; or kNotBlocks.
constexpr uint32_t kNotBlocks = ~0u;
uint32_t count_blocks(const Scope& scope, uint32_t k, const Packet* packet, uint32_t length) {
  uint64_t seen[kPairWords] = {};
  uint32_t blocks = 0;
  for (uint32_t at = 0; at < length; ++blocks) {
    const uint32_t bytes = block_of(scope, k, packet->payload + at, length - at);
    if (bytes == 0) return kNotBlocks;
    const uint32_t way = head_at(packet->payload + at).way;
    if ((seen[way / 64] & bit_of(way)) != 0) return kNotBlocks;
    seen[way / 64] |= bit_of(way);
    at += bytes;
  }
  return blocks;
}

// Is it what the table says of the block that comes from there? If not that is refused.
bool is_as_told(const Scope& scope, Rank origin, uint32_t bytes) {
  const bool good =
      bytes == 0 ? goes_directly(scope, origin)
                 : !goes_directly(scope, origin) && direct::part_from(scope, origin).bytes == bytes;
  if (!good) refuse(scope, PEAL_STATUS_MISMATCH, origin);
  return good;
}

// A block that has come in step k goes on. False: not now, or it is refused.
bool take_block(const Scope& scope, uint32_t k, Packet* packet, uint8_t* at) {
  const Membership& self = scope.member.membership;
  const peal_step_block head = head_at(at);
  const uint32_t left = bits_from(head.way, k + 1);
  if (left != 0) {
    if (!log_may_grow(scope, step_of(left), kHeadBytes + head.bytes)) return false;
    log_append(scope, step_of(left), packet, at);
    return true;
  }
  const Rank origin = plus(self.rank, head.way, self.ranks);
  if (!is_as_told(scope, origin, head.bytes)) return false;
  if (head.bytes > 0) {
    if (!has_dma_or_starves(scope)) return false;
    land(scope, origin, packet, at + kHeadBytes, head.bytes);
  }
  set_final(scope, origin);
  return true;
}

// As much as can be of what has come in step k goes on. True: all of it has. (What is fetched from
// host memory again need not be what it was when the first of it went on.)
bool take(const Scope& scope, uint32_t k, Packet* packet) {
  StepLog& log = log_of(scope, k);
  while (log.taken < log.come) {
    uint8_t* at = packet->payload + log.taken;
    const uint32_t bytes = block_of(scope, k, at, log.come - log.taken);
    if (bytes == 0) {
      refuse(scope, PEAL_STATUS_DMA_FAULT, scope.member.membership.rank);
      return false;
    }
    if (!take_block(scope, k, packet, at)) return false;
    log.taken = static_cast<uint16_t>(log.taken + bytes);
  }
  steps_of(scope).taken |= 1u << k;
  return true;
}

// May so many blocks that have just come go on? Not where some would, and the rest could not be
// kept and had to come again.
bool may_take(const Scope& scope, uint32_t blocks) {
  if (blocks == 0) return true;
  return is_ready(scope) &&
         (has_room_for_sent(scope.card, scope.member) || dma_available(scope.card, blocks));
}

// Keeps what has come until it can go on. False: there is no room.
bool keep(const Scope& scope, uint32_t k, Packet* packet) {
  auto& [card, member, operation] = scope;
  if (has_room_for_sent(card, member)) {
    sent_block_keep(scope, packet, k, kArrivalNumber);
    return true;
  }
  if (!dma_available(card, 1)) return false;
  transfer_write(scope, {.role = TransferRole::kWhole,
                         .step = kStored,
                         .piece = 0,
                         .host = arrival_address(scope, k),
                         .card = packet->payload,
                         .bytes = packet->header->length,
                         .packet = packet,
                         .detail = k});
  return true;
}

// It has been read from there.
void take_fetched(const Scope& scope, uint32_t k, Packet* packet) {
  if (count_blocks(scope, k, packet, log_of(scope, k).come) == kNotBlocks) {
    refuse(scope, PEAL_STATUS_DMA_FAULT, scope.member.membership.rank);
  } else if (!take(scope, k, packet)) {
    steps_of(scope).stored |= 1u << k;
  }
}

// Reads it from the channel again. False: not now.
bool fetch(const Scope& scope, uint32_t k) {
  Packet* packet = take_bounce_or_starve(scope);
  if (packet == nullptr) return false;
  steps_of(scope).stored &= ~(1u << k);
  transfer_read(scope, {.role = TransferRole::kWhole,
                        .step = kFetched,
                        .piece = 0,
                        .host = arrival_address(scope, k),
                        .card = packet->payload,
                        .bytes = log_of(scope, k).come,
                        .packet = packet,
                        .detail = k});
  return true;
}

// What waits goes on. False: not now, or it is refused.
bool take_waiting(const Scope& scope) {
  Steps& steps = steps_of(scope);
  for (uint32_t left = steps.come & ~steps.taken; left != 0; left &= left - 1) {
    const auto k = static_cast<uint32_t>(std::countr_zero(left));
    if ((steps.stored >> k & 1) != 0) {
      if (!fetch(scope, k)) return false;
      continue;
    }
    Packet* packet = sent_block_find(scope, k, kArrivalNumber);
    if (packet == nullptr) continue;  // it is on its way to or from the channel
    if (!take(scope, k, packet)) return false;
    sent_block_let_go(scope, k, kArrivalNumber);
  }
  return true;
}

// Steps whose blocks are all together.
void send_steps(const Scope& scope) {
  Steps& steps = steps_of(scope);
  while (steps.sent < scope.member.membership.rounds) {
    const uint32_t k = steps.sent;
    const uint32_t before = (1u << k) - 1;
    if ((steps.taken & before) != before || log_of(scope, k).writes > 0) return;
    if (!log_send(scope, k)) return operation_starved(scope);
    ++steps.sent;
  }
}

// Of these ranks something should have come in steps, and has not; or kNoPeer.
Rank find_missing(const Scope& scope) {
  for (Rank origin = 0; origin < scope.member.membership.ranks; ++origin) {
    const bool come = (steps_of(scope).final[origin / 64] & bit_of(origin)) != 0;
    if (!come && comes_in_steps(scope, origin)) return origin;
  }
  return kNoPeer;
}

void end_if_over(const Scope& scope) {
  const Membership& self = scope.member.membership;
  Steps& steps = steps_of(scope);
  if (steps.sent != self.rounds || steps.taken != all_steps(self)) return;
  steps.over = true;
  --own_state<direct::Exchange>(scope.operation).left;
  const Rank missing = find_missing(scope);
  if (missing != kNoPeer) refuse(scope, PEAL_STATUS_MISMATCH, missing);
}

// Asks rank + 2^k for its step.
bool ask(const Scope& scope, uint32_t k) {
  auto& [card, member, operation] = scope;
  const peal_peer_address& to = member.membership.peers[peer_ahead(k)].address;
  if (!operation_may_ask(scope, to.rank)) return false;
  const peal_nack nack = question(card, 1);
  const SmallPacket what = {.piece = PEAL_PIECE_STEP,
                            .origin = to.rank,
                            .hop = static_cast<uint8_t>(k),
                            .payload = &nack,
                            .length = sizeof(nack)};
  if (send_small(card, member.membership, to, packet_kind(operation, PEAL_PACKET_NACK), what)) {
    count(card, PEAL_COUNTER_SENT_NACK);
  }
  return true;
}

// Can anything go on, now that such a transfer is done? Not where own blocks are still being read,
// or the user has one block more.
bool lets_go_on(const Scope& scope, uint8_t step) {
  const Steps& steps = steps_of(scope);
  if (scope.operation.starved) return true;
  if (step == kLanded) return steps.over;
  return step != kOwnRead || steps.own_next < scope.member.membership.ranks || steps.own_reads == 0;
}

// What its header says of where it belongs: kPacketGood, or why not.
peal_counter check_step(const Membership& self, const peal_wire_header& header) {
  if (header.hop >= self.rounds) return PEAL_COUNTER_DROP_HOP;
  if (header.fragment != 0) return PEAL_COUNTER_DROP_FRAGMENT;
  if (header.origin >= self.ranks || header.origin == self.rank) return PEAL_COUNTER_DROP_ORIGIN;
  const Rank from = self.peers[peer_ahead(header.hop)].address.rank;
  if (header.origin != from || header.sender != from) return PEAL_COUNTER_DROP_SENDER;
  return header.block_bytes == 0 ? kPacketGood : PEAL_COUNTER_DROP_LENGTH;
}

}  // namespace

void open_steps(const Scope& scope) {
  const Membership& self = scope.member.membership;
  Steps& steps = steps_of(scope);
  own_state<direct::Exchange>(scope.operation).stepped = true;
  steps.come = steps.stored = steps.taken = 0;
  steps.most = static_cast<uint16_t>(short_bytes(self.ranks));
  steps.begun = steps.sent = 0;
  steps.stay = true;
  steps.over = false;
  steps.own_next = steps.own_reads = 0;
  for (uint32_t k = 0; k < self.rounds; ++k) steps.logs[k] = {};
  for (uint32_t word = 0; word < (self.ranks + 63) / 64; ++word) steps.final[word] = 0;
}

void go_on_in_steps(const Scope& scope) {
  Steps& steps = steps_of(scope);
  if (steps.over) return;
  while (steps.begun < scope.member.membership.rounds) {
    if (!log_begin(scope, steps.begun)) return;
    steps.stay = steps.stay && log_of(scope, steps.begun).packet != nullptr;
    ++steps.begun;
  }
  read_own(scope);
  if (is_ready(scope) && !take_waiting(scope)) return;
  if (!own_are_placed(scope)) return;
  send_steps(scope);
  end_if_over(scope);
}

peal_counter on_step_data(const Scope& scope, Packet* packet) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const peal_wire_header& header = *packet->header;
  const peal_counter step = check_step(self, header);
  if (step != kPacketGood) return step;
  const uint32_t k = header.hop;
  Steps& steps = steps_of(scope);
  const bool finished = operation.phase == OperationPhase::kFinished;
  if (finished || (steps.come >> k & 1) != 0) return PEAL_COUNTER_DUPLICATE;
  const uint32_t blocks = count_blocks(scope, k, packet, header.length);
  if (blocks == kNotBlocks) {
    // It would be sent again, and be the same.
    refuse(scope, PEAL_STATUS_MISMATCH, header.sender);
    return PEAL_COUNTER_DROP_LENGTH;
  }
  steps.logs[k].come = header.length;
  const bool goes_on = may_take(scope, blocks) && take(scope, k, packet);
  if (!goes_on && !is_refused(operation) && !keep(scope, k, packet)) {
    return PEAL_COUNTER_DROP_NO_DMA;
  }
  steps.come |= 1u << k;
  if (!is_posted(operation)) count(card, PEAL_COUNTER_EARLY_DATA);
  operation_progressed(scope);
  return PEAL_COUNTER_RECEIVED;
}

peal_counter on_step_nack(const Scope& scope, const peal_wire_header& header,
                          const peal_nack& nack) {
  const Membership& self = scope.member.membership;
  if (header.hop >= self.rounds) return PEAL_COUNTER_DROP_HOP;
  const uint32_t k = header.hop;
  const peal_peer_address& asker = self.peers[peer_behind(k)].address;
  if (header.sender != asker.rank) return PEAL_COUNTER_DROP_SENDER;
  if (nack.fragments != 1) return PEAL_COUNTER_DROP_FRAGMENT;
  if (k >= steps_of(scope).sent) {
    send_not_yet(scope, asker, header, nack, Owed::kByHost);
    operation_asked_for(scope);
  } else if (!log_repair(scope, k)) {
    // Silence would cost the asker's patience, whatever the reason.
    send_not_yet(scope, asker, header, nack, Owed::kAgain);
  }
  return PEAL_COUNTER_RECEIVED;
}

bool on_step_dma(const Scope& scope, const TransferDone& done) {
  Steps& steps = steps_of(scope);
  const uint32_t k = done.detail;
  if (done.step == kOwnRead) --steps.own_reads;
  if (done.step == kLogWritten) log_written(scope, k);
  if (done.step == kLanded) --own_state<direct::Exchange>(scope.operation).landing;
  if (!done.ok || is_refused(scope.operation)) return true;
  if (done.step == kOwnRead) place_own(scope, done);
  if (done.step == kStored) steps.stored |= 1u << k;
  if (done.step == kFetched) take_fetched(scope, k, done.packet);
  return lets_go_on(scope, done.step);
}

void chase_steps(const Scope& scope) {
  const Operation& operation = scope.operation;
  if (!direct::is_known(operation)) return;
  const bool suspects = asks_suspects(operation.inquiry);
  const Steps& steps = steps_of(scope);
  for (uint32_t k = 0; k < scope.member.membership.rounds; ++k) {
    if ((steps.come >> k & 1) != 0) continue;
    if (ask(scope, k) || !suspects) return;
  }
}

}  // namespace peal::bruckv
