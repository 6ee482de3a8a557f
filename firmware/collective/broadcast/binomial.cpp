// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/broadcast/binomial.h"

#include <algorithm>
#include <bit>

#include "abi/admin.h"
#include "firmware/base/assert.h"
#include "firmware/base/mutation.h"
#include "firmware/collective/hopping.h"
#include "firmware/group/early.h"
#include "firmware/group/inquiry.h"
#include "firmware/group/sent_blocks.h"
#include "firmware/host/keys.h"
#include "firmware/operation/landing.h"
#include "firmware/operation/layout.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/repair.h"
#include "firmware/operation/transfer.h"
#include "firmware/wire/transmit.h"

namespace peal::binomial {
namespace {

constexpr uint32_t kFragmentBytes =
    kImageBytes < CONFIG_MTU_BYTES ? kImageBytes & ~7u : uint32_t{CONFIG_MTU_BYTES};
// Packets of a full piece: no more than an image holds, nor more than 64 KiB, so that of a long
// block little must be kept (is_kept()), and what is under way stays in a processor's caches. (And
// as many as struct Kept has bits for.)
constexpr uint32_t kFragments =
    std::min({kImageBytes / kFragmentBytes, (64u << 10) / kFragmentBytes, 32u});
constexpr uint32_t kPieceBytes = kFragments * kFragmentBytes;
// A credit is due after so many pieces: often enough that the root need not stop for it.
constexpr uint32_t kCreditPieces = std::max(kPieceWindow / 2, 1u);
// Of one operation: reads of the root, and reads of early data.
constexpr uint32_t kReadsInFlight =
    std::clamp(std::min(uint32_t{CONFIG_DMA_RECORDS}, uint32_t{CONFIG_PACKET_BUFFERS}) / 8, 1u, 8u);

// Where a transfer goes on. Its detail is the fragment.
enum Step : uint8_t {
  kOwnRead,     // the root's data into a packet
  kKeep,        // a packet's payload into the channel
  kLand,        // a packet's payload into the user's buffer
  kFetchRead,   // early data from the channel into a bounce packet
  kFetchWrite,  // bounce packet into the user's buffer
};

// An operation's own state.
struct Tree {
  uint32_t whole;  // pieces that this rank and all below it have
  uint32_t told;   // what the parent was told of them
  uint32_t next;   // packet that the root reads next, of kFragments in every piece
  uint16_t early;  // fragments that came before the host's post and are still to be fetched
  bool readable;   // the user's memory; known when it is posted
  uint8_t reading;
  uint8_t fetching;
};

// A piece's own state. Its bits are the fragments that have arrived.
struct Kept {
  uint32_t in_card;   // fragments that lie in the channel, or wait or stay in packets
  uint32_t in_user;   // fragments that lie in the user's memory alone
  uint32_t early;     // fragments that must be fetched from the channel
  uint32_t promised;  // fragments that were asked for on their way to either
  uint16_t credited;  // bit per leaving hop: all behind it have the piece
  uint16_t asked_by;  // bit per leaving hop: promised to
};

Tree& tree_of(const Scope& scope) { return own_state<Tree>(scope.operation); }

uint32_t place_of(const Scope& scope) {
  const Membership& self = scope.member.membership;
  return hopping::place(self.rank, scope.operation.root, self.ranks);
}

// Bit per hop that leaves this rank's place.
uint16_t children_of(const Membership& self, Rank root) {
  const uint32_t place = hopping::place(self.rank, root, self.ranks);
  const uint32_t further = self.ranks - 1 - place;
  const uint32_t hops = (1u << std::bit_width(further)) - 1;
  return static_cast<uint16_t>(hops >> hopping::first_leaving_hop(place)
                                           << hopping::first_leaving_hop(place));
}

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
  return header.hop < self.rounds &&
         (children_of(self, scope.operation.root) >> header.hop & 1) != 0 &&
         header.sender == plus(self.rank, 1u << header.hop, self.ranks);
}

uint32_t fragments_in(const Operation& operation, uint32_t number) {
  const uint32_t length = piece_length(operation, number);
  return length == 0 ? 1 : (length + kFragmentBytes - 1) / kFragmentBytes;
}

uint64_t all_fragments(const Operation& operation, uint32_t number) {
  return ~uint64_t{0} >> (64 - fragments_in(operation, number));
}

uint32_t fragment_length(const Operation& operation, uint32_t number, uint32_t fragment) {
  return std::min(piece_length(operation, number) - fragment * kFragmentBytes, kFragmentBytes);
}

HostAddress behind(HostAddress address, uint32_t fragment) {
  return {address.region, address.offset + uint64_t{fragment} * kFragmentBytes};
}

bool has_arrived(Operation& operation, uint32_t number) {
  return piece_is_open(operation, number) &&
         piece_slot(operation, number).arrived == fragments_in(operation, number);
}

// Its slot in the channel may serve another piece, as far as this card itself is concerned.
bool is_done(Operation& operation, uint32_t number) {
  const Piece& piece = piece_slot(operation, number);
  return has_arrived(operation, number) && piece.waiting == 0 && piece.dma == 0 &&
         own_state<Kept>(piece).early == 0;
}

// First piece that may not come or be sent before more is credited.
uint32_t window_end(const Scope& scope) {
  return std::min(tree_of(scope).whole + kPieceSlots, scope.operation.piece_count);
}

// May it be asked for when the user's memory is the user's again? All before is credited by then,
// or the last piece could not have come. docs/decisions/0061
bool is_last(const Operation& operation, uint32_t number) {
  return number + kPieceSlots >= operation.piece_count;
}

// Is the piece kept, for those below who may ask for it? All of it where the user's memory may not
// be read.
bool is_kept(const Scope& scope, uint32_t number) {
  const auto& [card, member, operation] = scope;
  return (is_last(operation, number) || !tree_of(scope).readable) &&
         children_of(member.membership, operation.root) != 0;
}

HostAddress user_piece(const Scope& scope, uint32_t number) {
  Operation& operation = scope.operation;
  return place_of(scope) == 0 ? own_address(operation, number) : user_address(operation, 0, number);
}

void write_fragment(const Scope& scope, Packet* packet, uint32_t number, uint32_t fragment,
                    Step step) {
  auto& [card, member, operation] = scope;
  const HostAddress piece = step == kKeep ? image_address(member, operation, number, 0)
                                          : user_address(operation, 0, number);
  transfer_write(scope, {.step = step,
                         .piece = number,
                         .host = behind(piece, fragment),
                         .card = packet->payload,
                         .bytes = fragment_length(operation, number, fragment),
                         .packet = packet,
                         .detail = fragment});
}

// In which the fragment lies; null: it lies elsewhere.
Packet* packet_of(const Scope& scope, uint32_t number, uint32_t fragment) {
  Packet* sent = sent_block_find(scope, fragment, number);
  if (sent != nullptr) return sent;
  return early_find(scope.card, piece_slot(scope.operation, number), fragment);
}

// What becomes of a question.
enum class Answer : uint8_t { kRepaired, kHeld, kNotYet };

// Sends a fragment again: from its packet, from the channel, or from the user's memory, for which
// the operation waits. False: not now.
bool repair_fragment(const Scope& scope, uint32_t number, uint32_t fragment, uint8_t hop) {
  auto& [card, member, operation] = scope;
  const ImagePart part = {number, 0, fragment * kFragmentBytes,
                          fragment_length(operation, number, fragment)};
  const DataPlace place = {operation.root, hop, static_cast<uint8_t>(fragment)};
  if (!may_repair(card)) return false;
  Packet* stays = packet_of(scope, number, fragment);
  if (stays != nullptr) return repair_from_packet(scope, part, stays, place, peer_ahead(hop));
  const uint32_t in_card = own_state<Kept>(piece_slot(operation, number)).in_card;
  if ((in_card >> fragment & 1) != 0) {
    return send_from_image(scope, part, place, peer_ahead(hop), true);
  }
  return repair_from_user(scope, part, behind(user_piece(scope, number), fragment), place,
                          peer_ahead(hop));
}

// What of a piece can be sent again: what the user gets back soon is not the card's to read.
uint32_t repairable(const Scope& scope, uint32_t number) {
  const auto& kept = own_state<Kept>(piece_slot(scope.operation, number));
  const bool over = scope.operation.phase == OperationPhase::kFinished;
  return over ? kept.in_card : kept.in_card | kept.in_user;
}

// Sends what was asked for and lies there. kHeld: not all of that can be sent now.
Answer repair_fragments(const Scope& scope, uint32_t number, uint64_t fragments, uint8_t hop) {
  if (!piece_is_open(scope.operation, number)) return Answer::kNotYet;
  Answer answer = Answer::kNotYet;
  fragments &= repairable(scope, number);
  for (; fragments != 0; fragments &= fragments - 1) {
    const auto fragment = static_cast<uint32_t>(std::countr_zero(fragments));
    if (!repair_fragment(scope, number, fragment, hop)) return Answer::kHeld;
    answer = Answer::kRepaired;
  }
  return answer;
}

// Has come and gone on, but cannot be repaired before it lies somewhere: it is sent then.
void promise(const Scope& scope, uint32_t number, uint64_t fragments, uint8_t hop) {
  if (!piece_is_open(scope.operation, number)) return;
  Piece& piece = piece_slot(scope.operation, number);
  auto& kept = own_state<Kept>(piece);
  fragments &= piece.bits[0] & ~uint64_t{repairable(scope, number)};
  if (fragments == 0) return;
  kept.promised |= static_cast<uint32_t>(fragments);
  kept.asked_by = static_cast<uint16_t>(kept.asked_by | 1u << hop);
}

// It lies where it can be repaired from.
void on_there(const Scope& scope, uint32_t number, uint32_t fragment, uint32_t Kept::*where) {
  auto& kept = own_state<Kept>(piece_slot(scope.operation, number));
  const uint32_t bit = 1u << fragment;
  kept.*where |= bit;
  if ((kept.promised & bit) == 0) return;
  for (uint32_t hop = 0; kept.asked_by >> hop != 0; ++hop) {
    if ((kept.asked_by >> hop & 1) == 0) continue;
    (void)repair_fragments(scope, number, bit, static_cast<uint8_t>(hop));
  }
  kept.promised &= ~bit;
  if (kept.promised == 0) kept.asked_by = 0;
}

// What lies in the user's memory now. Where somebody below may ask for it when that is the user's
// again, its packet stays, or it goes to the channel, too, with the DMA record that the transfer
// before has given back.
void keep(const Scope& scope, Packet* packet, uint32_t number, uint32_t fragment) {
  auto& [card, member, operation] = scope;
  if (!is_kept(scope, number)) {
    on_there(scope, number, fragment, &Kept::in_user);
  } else if (is_last(operation, number) && has_room_for_sent(card, member)) {
    sent_block_keep(scope, packet, fragment, number);
    on_there(scope, number, fragment, &Kept::in_card);
  } else {
    write_fragment(scope, packet, number, fragment, kKeep);
  }
}

// Puts a fragment where it belongs: to the user once the host has posted. Before, it waits in its
// packet, or in the channel. False: no DMA record.
bool land(const Scope& scope, Packet* packet, uint32_t number, uint32_t fragment) {
  auto& [card, member, operation] = scope;
  Piece& piece = piece_slot(operation, number);
  auto& kept = own_state<Kept>(piece);
  const uint32_t bit = 1u << fragment;
  if (packet->payload_bytes == 0) {
    kept.in_card |= bit;
    return true;
  }
  const bool to_user = is_posted(operation);
  if (!to_user && early_keep(scope, packet, piece, fragment)) {
    kept.in_card |= bit;
    return true;
  }
  if (!dma_available(card, 1)) return false;
  if (to_user) {
    write_fragment(scope, packet, number, fragment, kLand);
    return true;
  }
  write_fragment(scope, packet, number, fragment, kKeep);
  kept.early |= bit;
  ++tree_of(scope).early;
  return true;
}

// The root's own data lies in the packet.
void on_own_read(const Scope& scope, Packet* packet, uint32_t number, uint32_t fragment) {
  Piece& piece = piece_slot(scope.operation, number);
  hopping::describe(scope.card, packet, number, scope.operation.root, fragment,
                    fragment_length(scope.operation, number, fragment));
  hopping::forward(scope, packet);
  if (packet->payload_bytes == 0) {
    own_state<Kept>(piece).in_card |= 1u << fragment;
  } else {
    keep(scope, packet, number, fragment);
  }
  set_bit(piece, fragment);
  ++piece.arrived;
}

// False: a pool was empty.
bool start_read(const Scope& scope, uint32_t number, uint32_t fragment) {
  auto& [card, member, operation] = scope;
  Packet* packet = take_bounce(card, 1);
  if (packet == nullptr) return false;
  const uint32_t length = fragment_length(operation, number, fragment);
  packet->payload_bytes = length;
  if (length == 0) {
    ++packet->holds;
    on_own_read(scope, packet, number, fragment);
    unhold_packet(card, packet);
    return true;
  }
  ++tree_of(scope).reading;
  transfer_read(scope, {.step = kOwnRead,
                        .piece = number,
                        .host = behind(own_address(operation, number), fragment),
                        .card = packet->payload,
                        .bytes = length,
                        .packet = packet,
                        .detail = fragment});
  return true;
}

// The root reads and sends as far as it is credited.
void read_own(const Scope& scope) {
  Operation& operation = scope.operation;
  Tree& tree = tree_of(scope);
  const uint32_t end = window_end(scope);
  while (tree.reading < kReadsInFlight && tree.next / kFragments < end) {
    const uint32_t number = tree.next / kFragments;
    const uint32_t fragment = tree.next % kFragments;
    const Piece* piece = piece_open(operation, number);
    PEAL_ASSERT(piece != nullptr);
    if (!start_read(scope, number, fragment)) {
      operation_starved(scope);
      return;
    }
    const bool last = fragment + 1 == fragments_in(operation, number);
    tree.next = last ? (number + 1) * kFragments : tree.next + 1;
  }
}

bool start_fetch(const Scope& scope, uint32_t number, uint32_t fragment) {
  auto& [card, member, operation] = scope;
  Packet* bounce = take_bounce(card, 1);
  if (bounce == nullptr) return false;
  transfer_read(scope, {.step = kFetchRead,
                        .piece = number,
                        .host = behind(image_address(member, operation, number, 0), fragment),
                        .card = bounce->payload,
                        .bytes = fragment_length(operation, number, fragment),
                        .packet = bounce,
                        .detail = fragment});
  return true;
}

// What waited in its packet is on its way to the user, and can be repaired when it is there.
void on_leaving_packet(const Scope& scope, uint32_t number, Rank fragment, uint32_t /*bytes*/) {
  own_state<Kept>(piece_slot(scope.operation, number)).in_card &= ~(1u << fragment);
}

HostAddress user_fragment(const Scope& scope, uint32_t number, Rank fragment) {
  return behind(user_address(scope.operation, 0, number), fragment);
}

constexpr Landing kLanding = {
    .step = kLand, .is_free = nullptr, .place_of = user_fragment, .landed = on_leaving_packet};

// Takes to the user what came before the post, once it has reached the channel.
void fetch_early(const Scope& scope) {
  Operation& operation = scope.operation;
  Tree& tree = tree_of(scope);
  for (uint32_t number = operation.base; tree.early > 0 && number < window_end(scope); ++number) {
    if (!piece_is_open(operation, number)) continue;
    auto& kept = own_state<Kept>(piece_slot(operation, number));
    for (uint32_t left = kept.early & kept.in_card; left != 0; left &= left - 1) {
      if (tree.fetching == kReadsInFlight) return;
      const auto fragment = static_cast<uint32_t>(std::countr_zero(left));
      if (!start_fetch(scope, number, fragment)) {
        operation_starved(scope);
        return;
      }
      kept.early &= ~(1u << fragment);
      --tree.early;
      ++tree.fetching;
    }
  }
}

// Notes which pieces are over: here, and for all below.
void pass_pieces(const Scope& scope) {
  Operation& operation = scope.operation;
  while (operation.base < operation.piece_count && is_done(operation, operation.base)) {
    ++operation.base;
  }
  const uint16_t children = children_of(scope.member.membership, operation.root);
  uint32_t& whole = tree_of(scope).whole;
  while (whole < operation.base &&
         own_state<Kept>(piece_slot(operation, whole)).credited == children) {
    ++whole;
  }
}

// Tells the parent how far all below have come. False: no packet.
bool tell_credit(const Scope& scope, bool again) {
  auto& [card, member, operation] = scope;
  Tree& tree = tree_of(scope);
  Membership& self = member.membership;
  const uint32_t hop = hopping::arriving_hop(place_of(scope));
  Peer& parent =
      self.peers[peer_entry(self.rank, minus(self.rank, 1u << hop, self.ranks), self.ranks)];
  const SmallPacket what = {.piece = tree.whole,
                            .hop = static_cast<uint8_t>(hop),
                            .flags = again ? uint8_t{PEAL_PACKET_REPAIR} : uint8_t{0},
                            .counted = again ? nullptr : &parent};
  if (!send_small(card, self, parent.address, packet_kind(operation, PEAL_PACKET_SIGNAL), what)) {
    return false;
  }
  tree.told = tree.whole;
  count(card, again ? PEAL_COUNTER_SENT_REPAIR : PEAL_COUNTER_SENT_SIGNAL);
  return true;
}

// As long as the root waits for that.
void send_credit(const Scope& scope) {
  const Tree& tree = tree_of(scope);
  if (place_of(scope) == 0 || tree.told + kPieceSlots >= scope.operation.piece_count) return;
  if (tree.whole < tree.told + kCreditPieces) return;
  if (!tell_credit(scope, false)) operation_starved(scope);
}

// All behind that hop have the pieces below `credit`. RECEIVED if that is news.
peal_counter take_credit(const Scope& scope, uint32_t hop, uint32_t credit) {
  Operation& operation = scope.operation;
  const uint32_t whole = tree_of(scope).whole;
  if (credit > operation.piece_count) return PEAL_COUNTER_DROP_PIECE;
  if (operation.phase == OperationPhase::kFinished || credit <= whole) {
    return PEAL_COUNTER_DUPLICATE;
  }
  // Nobody below has what has not come here.
  for (uint32_t number = whole; number < credit; ++number) {
    if (!has_arrived(operation, number)) return PEAL_COUNTER_DROP_PIECE;
  }
  const auto bit = static_cast<uint16_t>(1u << hop);
  bool news = false;
  for (uint32_t number = whole; number < credit; ++number) {
    auto& kept = own_state<Kept>(piece_slot(operation, number));
    news = news || (kept.credited & bit) == 0;
    kept.credited |= bit;
  }
  if (!news) return PEAL_COUNTER_DUPLICATE;
  operation_progressed(scope);
  return PEAL_COUNTER_RECEIVED;
}

void ask(const Scope& scope, const peal_peer_address& whom, uint32_t hop, uint32_t number,
         uint64_t fragments) {
  auto& [card, member, operation] = scope;
  peal_nack nack = question(card, fragments);
  // A credit that was lost keeps its sender waiting, too: it is said again.
  nack.credit = tree_of(scope).whole;
  const SmallPacket what = {
      .piece = number, .hop = static_cast<uint8_t>(hop), .payload = &nack, .length = sizeof(nack)};
  if (send_small(card, member.membership, whom, packet_kind(operation, PEAL_PACKET_NACK), what)) {
    count(card, PEAL_COUNTER_SENT_NACK);
  }
}

// Asks for all that is missing of a piece; `last`: nothing of a later one has come.
void ask_parent(const Scope& scope, uint32_t number, bool last) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  uint64_t missing = all_fragments(operation, number);
  if (piece_is_open(operation, number)) {
    const uint64_t come = piece_slot(operation, number).bits[0];
    missing &= ~come;
    // At a gap: what is behind the last packet that has come is on its way.
    if (follows_perhaps(operation.inquiry) && last && come != 0) {
      missing &= std::bit_floor(come) - 1;
    }
  }
  if (missing == 0) return;
  const uint32_t hop = hopping::arriving_hop(place_of(scope));
  const peal_peer_address& parent = self.peers[peer_behind(hop)].address;
  if (operation_may_ask(scope, parent.rank)) ask(scope, parent, hop, number, missing);
}

// Whoever holds up the window owes a credit, and is asked for it: nobody else may hear that its
// card is dead, and if its host is late, all others may know.
void chase_credits(const Scope& scope) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  const uint32_t whole = tree_of(scope).whole;
  if (whole >= operation.base || whole + kPieceSlots >= operation.piece_count) return;
  const uint32_t owing = children_of(self, operation.root) &
                         ~uint32_t{own_state<Kept>(piece_slot(operation, whole)).credited};
  for (uint32_t hop = 0; owing >> hop != 0; ++hop) {
    if ((owing >> hop & 1) == 0) continue;
    const peal_peer_address& child = self.peers[peer_ahead(hop)].address;
    if (operation_may_ask(scope, child.rank)) ask(scope, child, hop, whole, 0);
  }
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

void open(const Scope& scope) { pieces_open(scope, kPieceBytes, 0); }

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
  // A slot that serves a later piece: all below have this one, the question is old.
  if (piece_slot(operation, number).number > number + 1) return PEAL_COUNTER_DROP_STALE;
  promise(scope, number, nack.fragments, header.hop);
  const Answer answer = repair_fragments(scope, number, nack.fragments, header.hop);
  if (answer != Answer::kRepaired) {
    const Membership& self = scope.member.membership;
    const Owed waits = place_of(scope) == 0 ? Owed::kByHost : Owed::kByOthers;
    send_not_yet(scope, self.peers[peer_ahead(header.hop)].address, header, nack,
                 answer == Answer::kHeld ? Owed::kAgain : waits);
  }
  if (credit == PEAL_COUNTER_RECEIVED) operation_advance(scope);
  return PEAL_COUNTER_RECEIVED;
}

bool on_dma(const Scope& scope, const TransferDone& done) {
  Operation& operation = scope.operation;
  Tree& tree = tree_of(scope);
  if (done.step == kOwnRead) --tree.reading;
  if (done.step == kFetchWrite) --tree.fetching;
  if (!done.ok || is_refused(operation)) return true;
  switch (done.step) {
    case kOwnRead:
      on_own_read(scope, done.packet, done.piece, done.detail);
      return true;
    case kKeep:
      on_there(scope, done.piece, done.detail, &Kept::in_card);
      return true;
    case kLand:
      keep(scope, done.packet, done.piece, done.packet->header->fragment);
      return true;
    case kFetchRead:
      write_fragment(scope, done.packet, done.piece, done.detail, kFetchWrite);
      return false;
    default:
      return true;
  }
}

void advance(const Scope& scope) {
  Operation& operation = scope.operation;
  if (!is_posted(operation)) return;
  if (scope.member.membership.ranks == 1) {
    operation_finish(scope);  // nobody to tell
    return;
  }
  if (early_waits(operation)) land_early(scope, kLanding);
  fetch_early(scope);
  pass_pieces(scope);
  if (place_of(scope) == 0) {
    read_own(scope);
    pass_pieces(scope);  // no bytes are read at once
  }
  send_credit(scope);
  if (operation.base == operation.piece_count && operation.dma == 0) operation_finish(scope);
}

void chase(const Scope& scope) {
  Operation& operation = scope.operation;
  chase_credits(scope);
  if (place_of(scope) == 0) return;
  const uint32_t end = window_end(scope);
  uint32_t number = operation.base;
  while (number < end && has_arrived(operation, number)) ++number;
  if (number >= operation.piece_count) return;
  // What comes next is asked for though it cannot come yet: the credit goes with the question. But
  // a host that is late holds up the window itself.
  if (number >= end && !is_posted(operation)) return;
  uint32_t last = end;  // of those that have begun
  while (last > number + 1 && !piece_is_open(operation, last - 1)) --last;
  ask_parent(scope, number, last <= number + 1);
  for (++number; number < last; ++number) {
    if (piece_is_open(operation, number) && !has_arrived(operation, number)) {
      ask_parent(scope, number, number + 1 == last);
    }
  }
}

}  // namespace

constinit const AlgorithmFunctions kFunctions = {check,   open,   post,    on_data, on_signal,
                                                 on_nack, on_dma, advance, chase};

}  // namespace peal::binomial
