// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/receive.h"

#include <bit>
#include <cstring>

#include "firmware/base/kept.h"
#include "firmware/group/death.h"
#include "firmware/group/dissemination.h"
#include "firmware/group/inquiry.h"
#include "firmware/group/liveness.h"
#include "firmware/group/member.h"
#include "firmware/group/recycling.h"
#include "firmware/group/recycling_tree.h"
#include "firmware/group/remote.h"
#include "firmware/group/tombstone.h"
#include "firmware/operation/algorithm.h"
#include "firmware/operation/gone_on.h"
#include "firmware/operation/lookup.h"
#include "firmware/operation/lost.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/refusal.h"
#include "firmware/operation/usual.h"
#include "firmware/p2p/p2p.h"
#include "firmware/queue/failed.h"
#include "firmware/wire/edge.h"
#include "firmware/wire/header_match.h"
#include "firmware/wire/transmit.h"
#include "firmware/wire/wire_check.h"

namespace peal {
namespace {

// Packets of no operation, and of the group's own dissemination.
constexpr PacketRules kGroupPackets = {
    .types = packet_types({PEAL_PACKET_DEATH, PEAL_PACKET_PROBE, PEAL_PACKET_ALIVE,
                           PEAL_PACKET_FAREWELL, PEAL_PACKET_FAILURE, PEAL_PACKET_KNOWN}),
    .blocks = true};
constexpr PacketRules kPointToPointPackets = {
    .types =
        packet_types({PEAL_PACKET_OPEN, PEAL_PACKET_ACCEPT, PEAL_PACKET_CLOSE, PEAL_PACKET_CLOSED,
                      PEAL_PACKET_ACK, PEAL_PACKET_REFUSED, PEAL_PACKET_SKIP, PEAL_PACKET_PUT,
                      PEAL_PACKET_STREAM, PEAL_PACKET_ANNOUNCE, PEAL_PACKET_READY, PEAL_PACKET_GET,
                      PEAL_PACKET_DONE, PEAL_PACKET_SEEK}),
    .blocks = true};
constexpr bool is_point_to_point(uint8_t type) {
  return (type >= PEAL_PACKET_OPEN && type <= PEAL_PACKET_DONE) || type == PEAL_PACKET_SEEK;
}
constexpr PacketRules kRecyclePackets = {
    .types = packet_types({PEAL_PACKET_SIGNAL, PEAL_PACKET_NACK, PEAL_PACKET_NOT_YET}),
    .blocks = false};

struct Arrival {
  Packet* packet;
  const peal_wire_header& header;
  const Algorithm* algorithm;  // null: of the group itself
  uint32_t sender_entry;       // in the peer table, or kNoPeer
};

template <typename Body>
Body body_of(const Arrival& arrival) {
  Body body;
  std::memcpy(&body, arrival.packet->payload, sizeof(body));
  return body;
}

// Who carries out what the packet is of, and whether there are such packets; kPacketGood or why
// not.
peal_counter check_kind(Arrival& arrival) {
  const peal_wire_header& header = arrival.header;
  arrival.algorithm = find_algorithm(header.operation, header.algorithm);
  if (arrival.algorithm != nullptr) return check_type(header, arrival.algorithm->packets);
  if (header.operation == PEAL_OPERATION_RECYCLE && header.algorithm == kRecyclingAlgorithm) {
    return check_type(header, kRecyclePackets);
  }
  if (header.operation == PEAL_OPERATION_NONE && header.algorithm == PEAL_ALGORITHM_NONE) {
    return check_type(header,
                      is_point_to_point(header.type) ? kPointToPointPackets : kGroupPackets);
  }
  return PEAL_COUNTER_DROP_TYPE;
}

// Group and sender; kPacketGood or why not. DROP_SENDER of a rank that is no peer: see
// on_remote_packet().
peal_counter check_sender(const Membership& self, Arrival& arrival) {
  const peal_wire_header& header = arrival.header;
  if (header.group != static_cast<uint32_t>(self.group)) return PEAL_COUNTER_DROP_GROUP;
  if (header.sender >= self.ranks) return PEAL_COUNTER_DROP_SENDER;
  arrival.sender_entry = peer_entry(self.rank, header.sender, self.ranks);
  if (arrival.sender_entry == kNoPeer) return PEAL_COUNTER_DROP_SENDER;
  if (header.identity != self.peers[arrival.sender_entry].identity) {
    return PEAL_COUNTER_DROP_STRANGER;
  }
  // The low half of the group id is on the wire; all of it is in the seed.
  if (header.operation == PEAL_OPERATION_NONE && header.signature != self.seed) {
    return PEAL_COUNTER_DROP_SIGNATURE;
  }
  return kPacketGood;
}

// How long ago the question was asked, by our own clock.
TimeNs asked_before_ns(const Card& card, const peal_not_yet& body) {
  const auto now_us = static_cast<uint32_t>(card.now / 1000);
  return (now_us - body.asked_us) * TimeNs{1000};
}

// Is it one of the answers that there are, to a question that may have been asked? Patience is told
// where each learns it by itself, by who is late.
bool is_answer(const Card& card, const peal_not_yet& body, bool learns_alone) {
  const bool told = body.patience_ms != 0;
  const bool may_tell = learns_alone && body.reason == PEAL_NOT_YET_LATE;
  return body.reason <= PEAL_NOT_YET_SPLIT && (!told || may_tell) &&
         asked_before_ns(card, body) <= card.now;
}

// How long an answer took sets the price of the next questions. Returns it.
TimeNs note_answer(const Card& card, Member& member, Inquiry& inquiry, Rank rank,
                   const peal_not_yet& body) {
  const TimeNs after_ns = asked_before_ns(card, body);
  pace_answered(member.pace, card.timeouts, after_ns, card.behind_ns);
  inquiry_not_repaired(inquiry, rank);
  return after_ns;
}

// What it tells that whoever was asked waits as well: that somebody is late, most likely, or
// perhaps.
enum class Tells : uint8_t { kNothing, kPerhaps, kOfTheLate };

// That its sender lives was noted already. It is a promise, too: whoever gave it sends when it has.
peal_counter on_not_yet(Card& card, Member& member, Inquiry& inquiry, const Arrival& arrival,
                        Tells waiting) {
  const auto body = body_of<peal_not_yet>(arrival);
  const TimeNs after_ns = note_answer(card, member, inquiry, arrival.header.sender, body);
  inquiry_promised(card, member, inquiry, arrival.sender_entry, after_ns,
                   body.reason == PEAL_NOT_YET_LATE);
  patience_told(member.patience, card.timeouts, body.patience_ms);
  if (body.reason == PEAL_NOT_YET_WAITS && waiting != Tells::kNothing) {
    inquiry_in_doubt(card, member, inquiry, after_ns, waiting == Tells::kOfTheLate);
  }
  return PEAL_COUNTER_RECEIVED;
}

// What a repair was worth, and with it the question. One that had to be dropped is lost again.
void on_repair(const Card& card, Member& member, Inquiry& inquiry, const Arrival& arrival,
               peal_counter result) {
  if ((arrival.header.flags & PEAL_PACKET_REPAIR) == 0) return;
  if (result != PEAL_COUNTER_RECEIVED && result != PEAL_COUNTER_DUPLICATE) return;
  inquiry_answered(inquiry, arrival.sender_entry);
  inquiry_repaired(card, member, inquiry, arrival.header.sender);
  if (result == PEAL_COUNTER_RECEIVED) {
    if (inquiry.all_begun) patience_not_for_lateness(member.patience, card.timeouts);
    patience_worth_it(member.patience, card.timeouts, card.now);
    patience_worth_it(member.late_patience, card.timeouts, card.now);
    if (!member.patience.lossless) note_loss(card, member);
  } else if (!inquiry_was_certain(inquiry, arrival.sender_entry)) {
    patience_in_vain(member.patience, card.timeouts, card.now);
  }
}

// Who says that an epoch is over has finished it, which tells of its operations.
peal_counter take_recycling_signal(Card& card, Member& member, const peal_wire_header& header) {
  if (takes_silence_for_lateness(card, member)) note_epoch_over(card, member, header.sequence);
  return recycling_on_signal(card, member, header);
}

peal_counter on_recycle(Card& card, Member& member, const Arrival& arrival) {
  const peal_wire_header& header = arrival.header;
  if (header.signature != member.recycling_pattern.signature) return PEAL_COUNTER_DROP_SIGNATURE;
  const peal_counter edge = check_tree_edge(member.membership, header);
  if (edge != kPacketGood) return edge;
  if (header.type == PEAL_PACKET_SIGNAL) {
    const peal_counter result = take_recycling_signal(card, member, header);
    on_repair(card, member, member.recycling_inquiry, arrival, result);
    return result;
  }
  if (header.type == PEAL_PACKET_NACK) {
    note_epoch_over(card, member, header.sequence);
    return recycling_on_nack(card, member, header, body_of<peal_nack>(arrival));
  }
  const auto body = body_of<peal_not_yet>(arrival);
  if (!is_answer(card, body, true)) return PEAL_COUNTER_DROP_TYPE;
  if (body.reason == PEAL_NOT_YET_SPLIT) recycling_on_split(card, member, header);
  return on_not_yet(card, member, member.recycling_inquiry, arrival, Tells::kOfTheLate);
}

peal_counter on_refuse(const Scope& scope, const Arrival& arrival) {
  const auto verdict = body_of<peal_verdict>(arrival);
  if (verdict.rank >= scope.member.membership.ranks) return PEAL_COUNTER_DROP_ORIGIN;
  if (verdict.status != PEAL_STATUS_MISMATCH && verdict.status != PEAL_STATUS_DMA_FAULT) {
    return PEAL_COUNTER_DROP_TYPE;
  }
  refuse(scope, static_cast<peal_status>(verdict.status), verdict.rank);
  return PEAL_COUNTER_RECEIVED;
}

// Is the signature that of the header's own fields? Where the operation has its record that knows.
bool signature_is_right(const Member& member, const peal_wire_header& header,
                        const Algorithm& algorithm) {
  static_assert((kChannels & (kChannels - 1)) == 0, "the wire's 32 bits must find the same place");
  const Rank root = algorithm.rooted ? header.origin : 0;
  const uint32_t block_bytes = algorithm.lengths == Lengths::kOne ? header.block_bytes : 0;
  const Operation& known = member.operations[header.sequence % kChannels];
  if (known.phase != OperationPhase::kFree && known.signature == header.signature &&
      known.algorithm == &algorithm && known.block_bytes == block_bytes && known.root == root) {
    return true;
  }
  return root < member.membership.ranks &&
         header.signature ==
             signature_of(member.membership, header.operation, header.algorithm, root, block_bytes);
}

constexpr uint32_t kTelling = PEAL_PACKET_REPAIR | PEAL_PACKET_LOSSES;

// What the flags of a packet of the group say, whatever becomes of it: that something was sent
// again, that somebody knows of losses.
[[gnu::noinline]] void note_flags(Card& card, Member& member, const Arrival& arrival) {
  const peal_wire_header& header = arrival.header;
  // (That of a packet of no operation was looked at before, and so were rows of algorithms.)
  const bool of_none = header.operation == PEAL_OPERATION_NONE;
  const bool right = arrival.algorithm != nullptr
                         ? signature_is_right(member, header, *arrival.algorithm)
                         : of_none || header.signature == member.recycling_pattern.signature;
  if (!right) return;
  if ((header.flags & PEAL_PACKET_REPAIR) != 0) pace_repaired(member.pace);
  if ((header.flags & PEAL_PACKET_LOSSES) != 0 && !member.membership.poisoned) {
    note_loss(card, member);
  }
}

// What was asked for was sent, and so is lost, or on its way: it is asked for again soon.
peal_counter on_held(const Scope& scope, const Arrival& arrival, const peal_not_yet& body) {
  auto& [card, member, operation] = scope;
  note_answer(card, member, operation.inquiry, arrival.header.sender, body);
  if (!is_waiting(operation)) return PEAL_COUNTER_RECEIVED;
  const auto on_lost = operation.algorithm->does.on_lost;
  if (on_lost != nullptr) {
    on_lost(scope, arrival.header);
  } else if (!inquiry_doubts(operation.inquiry, arrival.sender_entry)) {
    operation_doubts(scope, arrival.sender_entry);
  }
  if (inquiry_doubts(operation.inquiry, arrival.sender_entry)) {
    inquiry_held(operation.inquiry, arrival.sender_entry);
  }
  return PEAL_COUNTER_RECEIVED;
}

// Whoever waits for nobody else knows of nobody else who could be late. With several operations
// under way one that is late has others under way as well, and says that it waits: after a silence
// in which what was lost would have been asked for. But where pairs go on by themselves (and not in
// steps) the one that was asked is.
Tells what_waiting_tells(const Card& card, const Member& member, const Operation& operation,
                         const peal_wire_header& answer) {
  const Algorithm& algorithm = *operation.algorithm;
  if (waits_for_one(algorithm)) return Tells::kOfTheLate;
  if (watches_all_the_time(algorithm) && answer.piece != PEAL_PIECE_STEP) return Tells::kNothing;
  const TimeNs silent_ns = card.now - operation.inquiry.heard_ns;
  const bool deep = member.depth > 1 && silent_ns >= card.timeouts.nack_ns;
  const bool likely = deep || takes_silence_for_lateness(card, member);
  return likely ? Tells::kOfTheLate : Tells::kPerhaps;
}

// A gap has made this operation ask the sender for what was lost.
bool shows_gap(const Operation& operation, const Arrival& arrival) {
  return arrival.sender_entry != kRemoteEntry &&
         inquiry_has_gap(operation.inquiry, arrival.sender_entry);
}

// It was not of this operation.
void ask_others_for_lost(const Scope& scope, const Arrival& arrival) {
  auto& [card, member, operation] = scope;
  ask_for_lost(card, member, arrival.sender_entry, arrival.header, operation.sequence + 1);
}

peal_counter on_operation_not_yet(const Scope& scope, const Arrival& arrival) {
  auto& [card, member, operation] = scope;
  const auto body = body_of<peal_not_yet>(arrival);
  if (!is_answer(card, body, waits_for_one(*operation.algorithm)) ||
      body.reason == PEAL_NOT_YET_SPLIT) {
    return PEAL_COUNTER_DROP_TYPE;
  }
  if (body.reason == PEAL_NOT_YET_SENT) return on_held(scope, arrival, body);
  const bool gap = shows_gap(operation, arrival);
  if (body.reason == PEAL_NOT_YET_LATE && operation.inquiry.all_begun) note_misled(member);
  const peal_counter result =
      on_not_yet(card, member, operation.inquiry, arrival,
                 what_waiting_tells(card, member, operation, arrival.header));
  if (gap) ask_others_for_lost(scope, arrival);
  return result;
}

// A packet of an operation of this group.
peal_counter on_operation_packet(Card& card, Member& member, const Arrival& arrival) {
  const peal_wire_header& header = arrival.header;
  if (arrival.algorithm == nullptr) return on_recycle(card, member, arrival);
  if (!signature_is_right(member, header, *arrival.algorithm)) return PEAL_COUNTER_DROP_SIGNATURE;
  peal_counter why = PEAL_COUNTER_DROP_STALE;
  const bool opens = header.type != PEAL_PACKET_NOT_YET;
  const Algorithm& algorithm = *arrival.algorithm;
  Operation* operation = find_operation(card, member, header, algorithm, opens, &why);
  if (operation == nullptr) return why;
  const Scope scope = {card, member, *operation};
  if (header.type == PEAL_PACKET_REFUSE) return on_refuse(scope, arrival);
  if (is_refused(*operation)) {
    if (header.type == PEAL_PACKET_NACK) {
      tell_refusal(scope, arrival.sender_entry, header.sender);
    }
    return PEAL_COUNTER_DROP_CLOSED;
  }
  if (operation->signature != header.signature) {
    refuse(scope, PEAL_STATUS_MISMATCH, header.sender);
    return PEAL_COUNTER_DROP_SIGNATURE;
  }
  peal_counter result;
  switch (header.type) {
    case PEAL_PACKET_DATA:
      result = algorithm.does.on_data(scope, arrival.packet);
      break;
    case PEAL_PACKET_SIGNAL:
      result = algorithm.does.on_signal(scope, header);
      break;
    case PEAL_PACKET_NACK:
      return algorithm.does.on_nack(scope, header, body_of<peal_nack>(arrival));
    default:
      return on_operation_not_yet(scope, arrival);
  }
  const bool repair = (header.flags & PEAL_PACKET_REPAIR) != 0;
  const bool in_vain = repair && result == PEAL_COUNTER_DUPLICATE && shows_gap(*operation, arrival);
  on_repair(card, member, operation->inquiry, arrival,
            result == kTakenIn ? PEAL_COUNTER_RECEIVED : result);
  if (in_vain) ask_others_for_lost(scope, arrival);
  return go_on(scope, arrival.sender_entry, result);
}

peal_counter answer_probe(Card& card, const Membership& self, const Arrival& arrival) {
  (void)say_alive(card, self, self.peers[arrival.sender_entry].address);
  return PEAL_COUNTER_RECEIVED;
}

// Nothing but the truth comes out of a poisoned group.
peal_counter answer_poisoned(Card& card, const Membership& self, const Arrival& arrival) {
  const uint8_t type = arrival.header.type;
  if (type != PEAL_PACKET_DEATH && type != PEAL_PACKET_FAREWELL) {
    tell_death(card, self, self.peers[arrival.sender_entry].address);
  }
  return PEAL_COUNTER_DROP_CLOSED;
}

// A packet of point-to-point; its sender lives there.
peal_counter on_point_to_point(Card& card, Member& member, const Arrival& arrival,
                               const peal_peer_address& sender) {
  return p2p::receive(card, member, arrival.packet, sender);
}

// A packet of a member's group; its sender is known.
peal_counter on_group_packet(Card& card, Member& member, Arrival& arrival) {
  Membership& self = member.membership;
  switch (arrival.header.type) {
    case PEAL_PACKET_PROBE:
      return answer_probe(card, self, arrival);
    case PEAL_PACKET_ALIVE:
      return PEAL_COUNTER_RECEIVED;
    case PEAL_PACKET_FAREWELL:
      member.farewells |= rounds_ahead_of(self, arrival.header.sender);
      return PEAL_COUNTER_RECEIVED;
    case PEAL_PACKET_DEATH: {
      const auto verdict = body_of<peal_verdict>(arrival);
      if (verdict.rank >= self.ranks || verdict.status != PEAL_STATUS_PEER_DEAD) {
        return PEAL_COUNTER_DROP_ORIGIN;
      }
      poison(card, member, verdict.rank);
      return PEAL_COUNTER_RECEIVED;
    }
    case PEAL_PACKET_FAILURE:
      return queue::on_failed(card, member, arrival.sender_entry, body_of<peal_failed>(arrival));
    case PEAL_PACKET_KNOWN:
      return queue::on_known(card, member, arrival.sender_entry, body_of<peal_failed>(arrival));
    default:
      if (is_point_to_point(arrival.header.type)) {
        return on_point_to_point(card, member, arrival, self.peers[arrival.sender_entry].address);
      }
      return on_operation_packet(card, member, arrival);
  }
}

// May a rank that is no peer send this?
bool is_for_everybody(const Membership& self, const Arrival& arrival) {
  const peal_wire_header& header = arrival.header;
  if (arrival.algorithm != nullptr) return arrival.algorithm->senders == Senders::kGroup;
  const bool alive = header.type == PEAL_PACKET_PROBE || header.type == PEAL_PACKET_ALIVE;
  const bool told = alive || header.type == PEAL_PACKET_DEATH || is_point_to_point(header.type);
  return header.operation == PEAL_OPERATION_NONE && told && header.signature == self.seed;
}

// A member talks to itself.
peal_counter on_own_packet(Card& card, Member& member, const Arrival& arrival) {
  const Membership& self = member.membership;
  if (arrival.header.identity != self.identity) return PEAL_COUNTER_DROP_STRANGER;
  if (arrival.header.signature != self.seed) return PEAL_COUNTER_DROP_SIGNATURE;
  if (self.poisoned) return PEAL_COUNTER_DROP_CLOSED;
  return on_point_to_point(card, member, arrival, own_address(card, self));
}

// A packet of a rank that is no peer: known by the table of addresses. Where that is still to be
// read the packet waits.
[[gnu::cold]] [[gnu::noinline]] peal_counter on_remote_packet(Card& card, Member& member,
                                                              Arrival& arrival) {
  const Membership& self = member.membership;
  const peal_wire_header& header = arrival.header;
  if (header.group != static_cast<uint32_t>(self.group)) return PEAL_COUNTER_DROP_GROUP;
  const bool talks = is_point_to_point(header.type);
  if (talks && header.sender == self.rank) return on_own_packet(card, member, arrival);
  if (header.sender >= self.ranks || header.sender == self.rank ||
      !(talks ? member.remote.key != 0 : knows_everybody(member)) ||
      !is_for_everybody(self, arrival)) {
    return PEAL_COUNTER_DROP_SENDER;
  }
  const peal_peer_address* sender = find_address(card, member, header.sender);
  if (sender == nullptr) {
    const bool waits = wait_for_address(card, member, arrival.packet, header.sender, false);
    return waits ? PEAL_COUNTER_AWAITS_ADDRESS : PEAL_COUNTER_DROP_NO_ADDRESS;
  }
  if (header.identity != peal_identity(sender)) return PEAL_COUNTER_DROP_STRANGER;
  arrival.sender_entry = kRemoteEntry;
  hear_remote(member, header.sender);
  if ((header.flags & kTelling) != 0) note_flags(card, member, arrival);
  if (self.poisoned) {
    if (header.type != PEAL_PACKET_DEATH) tell_death(card, self, *sender);
    return PEAL_COUNTER_DROP_CLOSED;
  }
  if (talks) {
    const peal_peer_address address = *sender;  // its place may be needed for another one's
    return on_point_to_point(card, member, arrival, address);
  }
  if (header.type != PEAL_PACKET_PROBE) return on_group_packet(card, member, arrival);
  (void)say_alive(card, self, *sender);
  return PEAL_COUNTER_RECEIVED;
}

peal_counter on_member_packet(Card& card, Member& member, Arrival& arrival) {
  Membership& self = member.membership;
  if (member.phase == MemberPhase::kReserved) return PEAL_COUNTER_DROP_NOT_CONNECTED;
  const peal_counter sender = check_sender(self, arrival);
  if (sender != kPacketGood) {
    return arrival.sender_entry == kNoPeer ? on_remote_packet(card, member, arrival) : sender;
  }
  Peer& peer = self.peers[arrival.sender_entry];
  hear_peer(peer);
  if ((arrival.header.flags & kTelling) != 0) note_flags(card, member, arrival);
  if (self.poisoned) return answer_poisoned(card, self, arrival);
  const peal_counter result = on_group_packet(card, member, arrival);
  listen_to_edge(card, member, arrival.sender_entry, arrival.header, result);
  return result;
}

// The group is gone here; some peer may still wait for a signal of its last barriers.
peal_counter on_tombstone_packet(Card& card, Tombstone& tombstone, Arrival& arrival) {
  const Membership& self = tombstone.membership;
  const peal_wire_header& header = arrival.header;
  const peal_counter sender = check_sender(self, arrival);
  if (sender != kPacketGood) return sender;
  if (self.poisoned) return answer_poisoned(card, self, arrival);
  if (header.type == PEAL_PACKET_PROBE) return answer_probe(card, self, arrival);
  if (header.type == PEAL_PACKET_FAILURE) {
    queue::answer_failed(card, self, arrival.sender_entry, body_of<peal_failed>(arrival));
    return PEAL_COUNTER_RECEIVED;
  }
  if (header.type == PEAL_PACKET_FAREWELL) {
    tombstone.awaited &= static_cast<uint16_t>(~rounds_ahead_of(self, header.sender));
    if (tombstone.awaited == 0) tombstone.in_use = false;
    return PEAL_COUNTER_RECEIVED;
  }
  if (header.type != PEAL_PACKET_NACK) return PEAL_COUNTER_DROP_CLOSED;
  if (header.operation == PEAL_OPERATION_RECYCLE) {
    // All epochs were finished by all before anybody could be done with the destroy.
    const peal_counter edge = check_tree_edge(self, header);
    if (edge == kPacketGood) tell_again(card, self, header);
    return edge == kPacketGood ? PEAL_COUNTER_RECEIVED : edge;
  }
  const bool last = header.operation == PEAL_OPERATION_DESTROY &&
                    header.algorithm == kSignalAlgorithm &&
                    header.signature == tombstone.destroy_signature &&
                    header.sequence == static_cast<uint32_t>(tombstone.destroy_sequence);
  if (!last) return PEAL_COUNTER_DROP_CLOSED;
  const peal_counter round = check_round(self, header, false);
  if (round != kPacketGood) return round;
  const peal_wire_header pattern =
      operation_pattern(self, header.operation, header.algorithm, PEAL_PACKET_SIGNAL,
                        header.signature, header.sequence);
  dissemination_repair(card, self, self.peers[arrival.sender_entry].address,
                       {pattern, PEAL_PACKET_SIGNAL, header.sequence}, header.hop);
  return PEAL_COUNTER_RECEIVED;
}

// (Signals of recycling differ in their epochs.)
bool is_of_recycling(const Member& member, const peal_wire_header& header) {
  static constexpr HeaderMask kUsual = [] {
    constexpr OpenFields kOpen = {.origin = true, .length = false, .block_bytes = false};
    auto mask = std::bit_cast<peal_wire_header>(header_mask(kOpen));
    mask.sequence = 0;
    return std::bit_cast<HeaderMask>(mask);
  }();
  return header_matches(header, member.recycling_pattern, kUsual);
}

[[gnu::noinline]] peal_counter receive_unusual(Card& card, Packet* packet) {
  const peal_wire_header& header = *packet->header;
  const peal_counter protocol = check_protocol(header);
  if (protocol != kPacketGood) return protocol;
  if ((header.flags & ~PEAL_PACKET_FLAGS) != 0) return PEAL_COUNTER_DROP_TYPE;
  return receive_checked(card, packet);
}

peal_counter on_usual_recycling(Card& card, Member& member, Packet* packet, Peer& peer) {
  const peal_wire_header& header = *packet->header;
  hear_peer(peer);
  const peal_counter edge = check_tree_edge(member.membership, header);
  const peal_counter result =
      edge == kPacketGood ? take_recycling_signal(card, member, header) : edge;
  if (result == PEAL_COUNTER_RECEIVED && edge_is_next(peer, header)) return result;
  const auto entry = static_cast<uint32_t>(&peer - member.membership.peers);
  listen_to_edge(card, member, entry, header, result);
  return result;
}

// The usual packet of point-to-point comes by a connection with another rank: what its header has
// in common with all that come by it says all that the long way asks for.
[[gnu::always_inline]] inline peal_counter receive_point_to_point(Card& card, Member& member,
                                                                  Packet* packet) {
  static constexpr HeaderMask kUsual = [] {
    constexpr OpenFields kOpen = {.origin = true, .length = true, .block_bytes = false};
    auto mask = std::bit_cast<peal_wire_header>(header_mask(kOpen));
    mask.type = 0;
    mask.sequence = 0;
    mask.flags = 0xff;
    mask.hop = static_cast<uint8_t>(~PEAL_P2P_ASK);
    mask.identity = ~uint32_t{0};
    mask.sender = 0xffff;
    mask.edge = 0xff;
    return std::bit_cast<HeaderMask>(mask);
  }();
  const peal_wire_header& header = *packet->header;
  p2p::Connection* found = p2p::find_named(card, header);
  if (found == nullptr) return receive_unusual(card, packet);
  p2p::Connection& connection = kept(*found);
  if (!header_matches(header, connection.heard_by, kUsual)) return receive_unusual(card, packet);
  const bool puts = header.type == PEAL_PACKET_PUT;  // as most do
  if (puts ? !carries_body(header) : check_type(header, kPointToPointPackets) != kPacketGood) {
    return receive_unusual(card, packet);
  }
  if (connection.peer_entry != p2p::kNoEntry) {
    hear_peer(member.membership.peers[connection.peer_entry]);
  } else {
    hear_remote(member, connection.rank);
  }
  return puts ? p2p::on_usual_put(card, connection, packet)
              : p2p::on_connection(card, connection, packet);
}

// The usual packet of a rank that is no peer: data, the first time, of an operation that talks to
// everybody. It has no edge, and so no number. Addresses are remembered only where there is a table
// of them, and such an operation only in a group that all of it can be remembered of: so one that
// is found says all that the long way asks for. (A function of its own: packets of connections
// would save registers for it.)
[[gnu::noinline]] peal_counter receive_remote(Card& card, Member& member, Packet* packet) {
  const peal_wire_header& header = *packet->header;
  Operation& operation = kept(member.operations[header.sequence % kChannels]);
  if (!operation.listens || operation.algorithm->senders != Senders::kGroup ||
      !header_matches(header, operation.pattern, operation.algorithm->usual_remote)) {
    return receive_unusual(card, packet);
  }
  const Membership& self = member.membership;
  const Rank from = header.sender;
  if (from >= self.ranks || from == self.rank ||
      peer_entry(self.rank, from, self.ranks) != kNoPeer) {
    return receive_unusual(card, packet);
  }
  const peal_peer_address* sender = remembered_address(member, from);
  if (sender == nullptr || header.identity != peal_identity(sender)) {
    return receive_unusual(card, packet);
  }
  hear_remote(member, from);
  const Scope scope = {card, member, operation};
  return go_on(scope, kRemoteEntry, operation.algorithm->does.on_data(scope, packet));
}

// Not of an operation that listens and of a peer, but perhaps of the group's own, of point-to-point
// or of a rank that is no peer.
[[gnu::noinline]] peal_counter receive_other(Card& card, Member& member, Packet* packet) {
  const peal_wire_header& header = *packet->header;
  Membership& self = member.membership;
  if (member.phase != MemberPhase::kActive || self.poisoned) return receive_unusual(card, packet);
  if (header.type >= PEAL_PACKET_ACK) return receive_point_to_point(card, member, packet);
  if (header.operation != PEAL_OPERATION_RECYCLE) return receive_remote(card, member, packet);
  if (!is_of_recycling(member, header)) return receive_unusual(card, packet);
  Peer* peer = find_sender(self, header);
  return peer == nullptr ? receive_unusual(card, packet)
                         : on_usual_recycling(card, member, packet, *peer);
}

// Its hop does not say who sent it.
[[gnu::noinline]] peal_counter on_usual_of_any(Card& card, Member& member, Operation& operation,
                                               Packet* packet) {
  Peer* peer = find_sender(member.membership, *packet->header);
  if (peer == nullptr) return receive_unusual(card, packet);
  return on_usual_packet(card, member, operation, packet, *peer);
}

}  // namespace

// The long way, which looks at everything and knows why a packet is dropped.
[[gnu::noinline]] peal_counter receive_checked(Card& card, Packet* packet) {
  const peal_wire_header& header = *packet->header;
  Arrival arrival = {packet, header, nullptr, kNoPeer};
  const peal_counter kind = check_kind(arrival);
  if (kind != kPacketGood) return kind;
  if ((header.member & 0xffff) >= CONFIG_CARD_MEMBERS) return PEAL_COUNTER_DROP_MEMBER;
  Member* member = find_member(card, header.member);
  if (member != nullptr) return on_member_packet(card, *member, arrival);
  Tombstone* tombstone = find_tombstone(card, header.member);
  if (tombstone != nullptr) return on_tombstone_packet(card, *tombstone, arrival);
  const bool never_used = (header.member & 0xffff) >= card.members_touched;
  return never_used ? PEAL_COUNTER_DROP_MEMBER : PEAL_COUNTER_DROP_GENERATION;
}

// A usual packet is data or a signal, the first time, of an operation that has its record here and
// that nobody refused, and comes from a peer. Nearly all packets are. The fields that such headers
// have in common are compared with those of the headers that this member sends itself, which it has
// made of what it knows: so one that is usual has all that the long way asks for.
//
// (It calls nothing: functions of their own get what was found, so that nothing of it is looked up
// again, and each saves the registers that it needs alone.)
peal_counter receive_packet(Card& card, Packet* packet) {
  const peal_wire_header& header = *packet->header;
  const uint32_t index = header.member & 0xffff;
  if (index >= CONFIG_CARD_MEMBERS) return receive_unusual(card, packet);
  Member& member = kept(card.members[index]);
  Operation& operation = kept(member.operations[header.sequence % kChannels]);
  if (!operation.listens ||
      !header_matches(header, operation.pattern, operation.algorithm->usual)) {
    return receive_other(card, member, packet);
  }
  // Most come from the power of two behind that their hop names, or from that ahead, which is the
  // entry before it.
  Membership& self = member.membership;
  if (header.hop >= self.rounds) return on_usual_of_any(card, member, operation, packet);
  static_assert(peer_ahead(0) + 1 == peer_behind(0));
  const Peer* by_hop = &kept(self.peers[peer_behind(header.hop)]);
  if (by_hop->address.rank == header.sender) {
    Peer* peer = checked_peer(self, header, by_hop->known_by);
    if (peer == nullptr) return receive_unusual(card, packet);
    return operation.algorithm->does.on_usual(card, member, operation, packet, *peer);
  }
  --by_hop;
  if (by_hop->address.rank != header.sender) {
    return on_usual_of_any(card, member, operation, packet);
  }
  Peer* peer = checked_peer(self, header, by_hop->known_by);
  if (peer == nullptr) return receive_unusual(card, packet);
  return on_usual_packet(card, member, operation, packet, *peer);
}

}  // namespace peal
