// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/allgather/broadcast_all.h"

#include <bit>
#include <cstring>

#include "abi/admin.h"
#include "firmware/base/assert.h"
#include "firmware/base/mutation.h"
#include "firmware/collective/allgather/allgather.h"
#include "firmware/collective/allgather/gathering.h"
#include "firmware/collective/hopping.h"
#include "firmware/group/early.h"
#include "firmware/group/inquiry.h"
#include "firmware/group/liveness.h"
#include "firmware/host/keys.h"
#include "firmware/operation/landing.h"
#include "firmware/operation/layout.h"
#include "firmware/operation/mover.h"
#include "firmware/operation/operation.h"
#include "firmware/operation/pieces.h"
#include "firmware/operation/repair.h"
#include "firmware/operation/transfer.h"
#include "firmware/operation/usual.h"
#include "firmware/wire/edge.h"
#include "firmware/wire/transmit.h"

namespace peal::broadcast_all {
namespace {

constexpr uint32_t kDebtsPerTimeout = 8;
constexpr int kFewMissing = 8;

// Where a transfer goes on.
enum Step : uint8_t {
  kOwnRead,  // own block into a packet
  kLand,     // a packet's payload into the user's buffer
};

// What a record keeps between questions.
struct Turn {
  uint32_t debt;      // piece slot and debt where the next questions start: all get their turn
  bool wanted;        // somebody below has asked for what has not come
  uint16_t gathers;   // bytes of each block, as long as blocks may come into staging; else kNoBytes
  TimeNs held_up_ns;  // it asks no sooner again for what holds it up
};
constexpr uint16_t kNoBytes = 0xffff;  // as no packet has
static_assert(CONFIG_MTU_BYTES < kNoBytes);

// A piece's blocks.
//
// A debt is a block that a child has asked for and that cannot be sent now: it is on its way to the
// user's memory, from where it can be sent again as long as that is the card's; or that is the
// card's no more, and the block is asked of the parent and passed on when it comes. A debt has a
// bit of its own, which one packet pays: its number is the child's place in the origin's tree,
// whose highest bit is the hop that leads there, and the rest of it this rank's own place.
struct Blocks {
  uint32_t debts;  // so many bits
  uint64_t owed[kRankWords];
  // Lie in the channel, from where the mover takes them, by origin.
  uint64_t early[kRankWords];
};

bool owes(const Piece& piece, uint32_t debt) {
  const auto& blocks = own_state<Blocks>(piece);
  return blocks.debts != 0 && gathering::is_in(blocks.owed, debt);
}

void owe(Piece& piece, uint32_t debt) {
  if (owes(piece, debt)) return;
  auto& blocks = own_state<Blocks>(piece);
  ++blocks.debts;
  gathering::put_in(blocks.owed, debt);
}

void pay(Piece& piece, uint32_t debt) {
  auto& blocks = own_state<Blocks>(piece);
  --blocks.debts;
  gathering::take_from(blocks.owed, debt);
}

Rank origin_of(const Membership& self, uint32_t debt) {
  return minus(self.rank, debt - (1u << hopping::arriving_hop(debt)), self.ranks);
}

// The hops over which the origin's block is owed, a bit each.
uint32_t hops_owed(const Membership& self, const Piece& piece, Rank origin) {
  if (own_state<Blocks>(piece).debts == 0) return 0;
  const uint32_t own = hopping::place(self.rank, origin, self.ranks);
  uint32_t hops = 0;
  for (uint32_t hop = hopping::first_leaving_hop(own); own + (1u << hop) < self.ranks; ++hop) {
    if (owes(piece, own + (1u << hop))) hops |= 1u << hop;
  }
  return hops;
}

// The mover fetches what came before the host's post. What comes later goes straight to the user,
// also while it is at work (docs/decisions/0018).
bool is_early(const Scope& scope, uint32_t number, uint32_t position) {
  if (!piece_is_open(scope.operation, number)) return false;
  return gathering::is_in(own_state<Blocks>(piece_slot(scope.operation, number)).early, position);
}

constexpr mover::Plan kFetch = {
    .wanted = is_early, .rank_at = gathering::rank_at, .piece_ended = gathering::next_early_piece};

// Puts a block into the user's buffer, or the channel. False: no DMA record.
bool land(const Scope& scope, Packet* packet, Piece& piece) {
  if (packet->header->length == 0) return true;
  auto& [card, member, operation] = scope;
  const uint32_t number = packet->header->piece;
  const Rank origin = packet->header->origin;
  const bool direct = is_posted(operation);
  if (!direct && early_keep(scope, packet, piece, origin)) return true;
  if (!dma_available(card, 1)) return false;
  transfer_write(scope, {.step = direct ? uint8_t{kLand} : uint8_t{mover::kLandEarly},
                         .piece = number,
                         .host = direct ? user_address(operation, origin, number)
                                        : image_address(member, operation, number, origin),
                         .card = packet->payload,
                         .bytes = packet->header->length,
                         .packet = packet});
  if (!direct) {
    ++operation.mover.landing;
    gathering::put_in(own_state<Blocks>(piece).early, origin);
  }
  return true;
}

// Puts it into staging, where results gather there.
[[gnu::always_inline]] inline void stage(const Scope& scope, const Packet* packet) {
  const uint32_t length = packet->header->length;
  uint8_t* image = staged_image(scope.member, scope.operation);
  std::memcpy(image + packet->header->origin * length, packet->payload, length);
  count(scope.card, PEAL_COUNTER_STAGED);
}

// The own block has been read into the packet.
void on_own_read(const Scope& scope, Packet* packet, uint32_t number) {
  auto& [card, member, operation] = scope;
  const Rank rank = member.membership.rank;
  const uint32_t length = piece_length(operation, number);
  Piece& piece = piece_slot(operation, number);
  if (length > 0 && !gathering::has_dma_or_reads_again(scope, piece, number)) return;
  if (length > 0) {
    // Own copy: the user's buffer is the user's once we complete, and a late NACK may still come.
    transfer_start(scope,
                   {.step = mover::kRetain,
                    .piece = number,
                    .host = image_address(member, operation, number, rank),
                    .card = packet->payload,
                    .bytes = length,
                    .packet = packet},
                   true);
    if (!operation.command.in_place || is_staged(operation)) {
      if (is_staged(operation)) {
        std::memcpy(staging_address(member, operation, rank), packet->payload, length);
      } else {
        transfer_write(scope, {.step = kLand,
                               .piece = number,
                               .host = user_address(operation, rank, number),
                               .card = packet->payload,
                               .bytes = length,
                               .packet = packet});
      }
    }
  } else {
    piece.retained = true;
  }
  piece.own = OwnBlock::kPlaced;
  set_bit(piece, rank);
  ++piece.arrived;
  hopping::describe(card, packet, number, rank, 0, length);
  hopping::forward(scope, packet);
}

bool start_own(const Scope& scope, Piece& piece, uint32_t number) {
  return gathering::read_own(scope, piece, number, kOwnRead, on_own_read);
}

// One write takes a gathered result from staging to the user, once all of it is there.
void deliver_when_gathered(const Scope& scope) {
  auto& [card, member, operation] = scope;
  Piece& piece = staged_piece(scope);
  if (!gathering::has_all(scope, piece, 0) || piece.delivery != Delivery::kGathering) return;
  if (!has_dma_or_starves(scope)) return;
  piece.delivery = Delivery::kDelivering;
  transfer_start(scope,
                 {.step = mover::kDeliver,
                  .piece = 0,
                  .host = user_address(operation, 0, 0),
                  .card = staged_image(member, operation),
                  .bytes = expected_blocks(member.membership) * operation.block_bytes},
                 true);
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
constexpr uint32_t kAskedMost = 64;

// The i-th of the origins whose blocks reach this rank over this hop.
Rank origin_over(const Membership& self, uint32_t hop, uint32_t i) {
  return minus(self.rank, (1u << hop) + i, self.ranks);
}
uint32_t origins_over(const Membership& self, uint32_t hop) {
  const uint32_t left = self.ranks - (1u << hop);
  return 1u << hop < left ? 1u << hop : left;
}

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

// Are the blocks of others that have come in the user's memory, or on their way there, and may the
// card read it? Until the operation is over it is the card's; and where nothing more is to come the
// end is not put off for those who ask.
bool reads_result(const Scope& scope) {
  auto& [card, member, operation] = scope;
  if (!is_posted(operation) || is_refused(operation)) return false;
  if (operation.base == operation.piece_count) return false;
  const Command& command = operation.command;
  const MemoryKey* key = find_key(card, member.context, command.receive_key);
  return key != nullptr && (key->access & PEAL_ACCESS_READ) != 0;
}

// Is no block of the piece on its way there?
bool has_landed(const Operation& operation, const Piece& piece) {
  const bool moved = !operation.mover.active || operation.mover.piece >= piece.number;
  return moved && piece.dma == 0 && piece.waiting == 0;
}

// Sends the origin's block to the child that asked, if this card has it and may. False if not.
bool repair_block(const Scope& scope, uint32_t number, Rank origin,
                  const peal_peer_address& child) {
  auto& [card, member, operation] = scope;
  const Membership& self = member.membership;
  if (!piece_is_open(operation, number)) return false;
  const Piece& piece = piece_slot(operation, number);
  const bool own = origin == self.rank;
  const bool image = is_staged(operation) || operation.block_bytes == 0 || (own && piece.retained);
  if (!image && (own || !reads_result(scope) || !has_landed(operation, piece))) return false;
  if (!has_bit(piece, origin) || !may_repair(card)) return false;
  const uint32_t place = hopping::place(child.rank, origin, self.ranks);
  const uint32_t hop = hopping::arriving_hop(place);
  const DataPlace to = {
      .origin = static_cast<uint16_t>(origin), .hop = static_cast<uint8_t>(hop), .fragment = 0};
  const ImagePart part = {number, origin, 0, piece_length(operation, number)};
  return image ? send_from_image(scope, part, to, peer_ahead(hop), true)
               : repair_from_user(scope, part, to, peer_ahead(hop));
}

// Sends what is owed and has landed meanwhile to the children that asked for it. False: not all of
// it could be sent now.
bool settle_debts(const Scope& scope, Piece& piece) {
  const Membership& self = scope.member.membership;
  const auto& blocks = own_state<Blocks>(piece);
  for (uint32_t word = 0; word < kRankWords && blocks.debts != 0; ++word) {
    for (uint64_t bits = blocks.owed[word]; bits != 0; bits &= bits - 1) {
      const uint32_t debt = 64 * word + static_cast<uint32_t>(std::countr_zero(bits));
      PEAL_ASSERT(debt != 0);  // the place of the origin, who is nobody's child
      const Peer& child = self.peers[peer_ahead(hopping::arriving_hop(debt))];
      if (!repair_block(scope, piece.number - 1, origin_of(self, debt), child.address)) {
        return false;
      }
      pay(piece, debt);
    }
  }
  return true;
}

// The same of all pieces. What cannot be sent now (no packet, too many repairs) is tried again.
void settle_landed(const Scope& scope) {
  Operation& operation = scope.operation;
  if (!reads_result(scope)) return;
  operation.in_debt = false;
  for (Piece& piece : operation.pieces) {
    if (piece.number == 0 || own_state<Blocks>(piece).debts == 0) continue;
    if (has_landed(operation, piece) && !settle_debts(scope, piece)) operation_starved(scope);
    operation.in_debt |= own_state<Blocks>(piece).debts != 0;
  }
}

// A block that had come before. If ranks below still ask for it, it goes on to them: hop by hop, so
// that ranks that cannot reach each other are served, and that every hop of the way repairs itself.
peal_counter on_repeated(const Scope& scope, Packet* packet) {
  Operation& operation = scope.operation;
  const Membership& self = scope.member.membership;
  const peal_wire_header& header = *packet->header;
  if (!piece_is_open(operation, header.piece)) return PEAL_COUNTER_DUPLICATE;
  Piece& piece = piece_slot(operation, header.piece);
  const uint32_t hops = hops_owed(self, piece, header.origin);
  if (hops == 0) return PEAL_COUNTER_DUPLICATE;
  const uint32_t own = hopping::place(self.rank, header.origin, self.ranks);
  for (uint32_t left = hops; left != 0; left &= left - 1) pay(piece, own + (left & -left));
  operation_progressed(scope);
  hopping::forward_over(scope, packet, hops);
  return PEAL_COUNTER_RECEIVED;
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

void open(const Scope& scope) {
  pieces_open(scope, piece_bytes_for(scope.member.membership.ranks), CONFIG_STAGING_BLOCK_BYTES);
  scope.operation.staging_answers = true;  // the channel has the own block alone
  own_state<Turn>(scope.operation).gathers = kNoBytes;
}

void post(const Scope& scope) {
  Operation& operation = scope.operation;
  if (is_staged(operation) || operation.block_bytes == 0) return;
  for (uint32_t number = 0; number < kPieceSlots && number < operation.piece_count; ++number) {
    if (!piece_is_open(operation, number) || piece_slot(operation, number).arrived == 0) continue;
    mover::start(operation, 0);
    return;
  }
}

// Not after the usual arrival: nothing is owed, the first piece that is not done stays incomplete,
// and the window is sent.
[[gnu::always_inline]] inline bool can_go_on(const Scope& scope, const Piece& first) {
  const Operation& operation = scope.operation;
  if (!is_posted(operation)) return false;
  return first.arrived >= expected_blocks(scope.member.membership) || operation.in_debt ||
         own_pieces_wait(operation) || operation.mover.active || early_waits(operation);
}

// Where a block is on its way: this rank's place in its origin's tree, and the hop that leads
// there.
struct Way {
  uint32_t place;
  uint32_t hop;
};

// What the header says of it: kPacketGood, or why not.
[[gnu::always_inline]] inline peal_counter check_way(const Membership& self,
                                                     const peal_wire_header& header, Way* way) {
  if (header.fragment != 0) return PEAL_COUNTER_DROP_FRAGMENT;
  if (!is_expected(self, header.origin)) return PEAL_COUNTER_DROP_ORIGIN;
  way->place = hopping::place(self.rank, header.origin, self.ranks);
  if (way->place == 0) return PEAL_COUNTER_DROP_ORIGIN;  // its own
  way->hop = hopping::arriving_hop(way->place);
  if (header.hop != way->hop) return PEAL_COUNTER_DROP_HOP;
  const Rank parent = self.peers[peer_behind(way->hop)].address.rank;
  return header.sender == parent ? kPacketGood : PEAL_COUNTER_DROP_SENDER;
}

// Of a result that does not gather in staging.
[[gnu::noinline]] peal_counter on_data_for_host(const Scope& scope, Packet* packet) {
  Operation& operation = scope.operation;
  const peal_wire_header& header = *packet->header;
  if (header.length != piece_length(operation, header.piece)) return PEAL_COUNTER_DROP_LENGTH;
  Way way;
  const peal_counter good = check_way(scope.member.membership, header, &way);
  if (good != kPacketGood) return good;
  Piece* piece = nullptr;
  const peal_counter found = find_piece_of_new(operation, header.piece, header.origin, &piece);
  if (found == PEAL_COUNTER_DUPLICATE) return on_repeated(scope, packet);
  if (found != kPacketGood) return found;
  if (!land(scope, packet, *piece)) return PEAL_COUNTER_DROP_NO_DMA;
  note_arrival(scope, *piece, header.origin);
  hopping::forward_from(scope, packet, way.place, way.hop + 1);
  const bool is_first = piece->number == operation.base + 1;
  const Piece& first = is_first ? *piece : piece_slot(operation, operation.base);
  return can_go_on(scope, first) ? PEAL_COUNTER_RECEIVED : kTakenIn;
}

// The one piece begins whose blocks gather in staging.
void begin_gathering(const Scope& scope) {
  Operation& operation = scope.operation;
  if (piece_is_open(operation, 0)) return;
  piece_begin(staged_piece(scope), 0);
  own_state<Turn>(operation).gathers = static_cast<uint16_t>(operation.block_bytes);
}

// In staging there is room for every block of the one piece: so it has been noted already, and
// nothing of it need be remembered while it is sent on and copied. All that can go on then is the
// result.
[[gnu::always_inline]] inline peal_counter gather(const Scope& scope, Packet* packet,
                                                  const Way& way) {
  hopping::forward_from(scope, packet, way.place, way.hop + 1);
  stage(scope, packet);
  operation_progressed(scope);
  if (!is_posted(scope.operation)) {
    count(scope.card, PEAL_COUNTER_EARLY_DATA);
    return kTakenIn;
  }
  if (own_pieces_wait(scope.operation)) return PEAL_COUNTER_RECEIVED;
  if (staged_piece(scope).arrived == expected_blocks(scope.member.membership)) {
    deliver_when_gathered(scope);
  }
  return kTakenIn;
}

peal_counter on_data(const Scope& scope, Packet* packet) {
  Operation& operation = scope.operation;
  const Membership& self = scope.member.membership;
  const peal_wire_header& header = *packet->header;
  if (header.piece >= operation.piece_count) return PEAL_COUNTER_DROP_PIECE;
  if (!is_staged(operation)) return on_data_for_host(scope, packet);
  if (header.length != operation.block_bytes) return PEAL_COUNTER_DROP_LENGTH;
  Way way;
  const peal_counter good = check_way(self, header, &way);
  if (good != kPacketGood) return good;
  if (operation.base > 0) return on_repeated(scope, packet);  // delivered
  begin_gathering(scope);
  Piece& piece = staged_piece(scope);
  uint64_t& bits = bits_with(piece, header.origin);
  const uint64_t with_it = bits | bit_of(header.origin);
  if (with_it == bits && !mutated(Mutation::kDuplicateAccepted)) return on_repeated(scope, packet);
  bits = with_it;
  ++piece.arrived;
  return gather(scope, packet, way);
}

// A usual one that gathers in staging, its block's first, is known by what its header says: from
// here to what it is sent on as it is one function. Whatever else it may be goes the way of all.
peal_counter on_usual(Card& card, Member& member, Operation& operation, Packet* packet,
                      Peer& peer) {
  const Membership& self = member.membership;
  const peal_wire_header& header = *packet->header;
  if (header.length != own_state<Turn>(operation).gathers ||
      (header.piece | header.fragment) != 0 || !is_expected(self, header.origin)) {
    return on_usual_packet(card, member, operation, packet, peer);
  }
  const Way way = {hopping::place(self.rank, header.origin, self.ranks), header.hop};
  uint64_t& bits = bits_with(operation.pieces[0], header.origin);
  const uint64_t with_it = bits | bit_of(header.origin);
  // (The place's highest bit is the hop that leads there; it has none if it is this rank's own.)
  if (way.place >> way.hop != 1 || with_it == bits) {
    return on_usual_packet(card, member, operation, packet, peer);
  }
  hear_peer(peer);
  if (!edge_is_next(peer, header)) [[unlikely]] {
    return on_usual_behind_a_gap(card, member, operation, packet, peer);
  }
  bits = with_it;
  ++operation.pieces[0].arrived;
  const Scope scope = {card, member, operation};
  if (gather(scope, packet, way) != kTakenIn) operation_advance(scope);
  return PEAL_COUNTER_RECEIVED;
}

// A transfer of a piece that gathers in staging is done.
bool on_staged_dma(const Scope& scope, const TransferDone& done) {
  Operation& operation = scope.operation;
  if (!done.ok || is_refused(operation)) return true;
  Piece& piece = staged_piece(scope);
  switch (done.step) {
    case kOwnRead:
      on_own_read(scope, done.packet, 0);
      return own_pieces_wait(operation);
    case mover::kRetain:
      piece.retained = true;
      deliver_when_gathered(scope);
      return false;
    default:
      piece.delivery = Delivery::kDelivered;
      own_state<Turn>(operation).gathers = kNoBytes;
      staged_is_delivered(scope);
      return false;
  }
}

bool on_dma(const Scope& scope, const TransferDone& done) {
  if (is_staged(scope.operation)) return on_staged_dma(scope, done);
  if (done.step >= mover::kFirstStep) return mover::on_dma(scope, kFetch, done);
  if (done.step == kOwnRead && done.ok && !is_refused(scope.operation)) {
    on_own_read(scope, done.packet, done.piece);
  }
  return true;
}

[[gnu::noinline]] void advance_pieces(const Scope& scope) {
  Operation& operation = scope.operation;
  // Others wait for the own block, and only the host for what the mover brings.
  start_own_pieces(scope, start_own);
  if (early_waits(operation)) {
    land_early(scope, gathering::landing(kLand));
  }
  mover::advance(scope, kFetch);
  while (operation.base < operation.piece_count && piece_is_open(operation, operation.base) &&
         gathering::has_all(scope, piece_slot(operation, operation.base), operation.base)) {
    ++operation.base;
    start_own_pieces(scope, start_own);
  }
  if (operation.base == operation.piece_count && operation.dma == 0) {
    operation_finish(scope);
  }
}

// The same of the one that gathers in staging.
void advance_staged(const Scope& scope) {
  Operation& operation = scope.operation;
  if (!is_posted(operation)) return;
  if (operation.own_next == 0) {
    begin_gathering(scope);
    if (!start_own(scope, staged_piece(scope), 0)) return operation_starved(scope);
    operation.own_next = 1;
  }
  deliver_when_gathered(scope);
}

void advance(const Scope& scope) {
  Operation& operation = scope.operation;
  if (is_staged(operation)) return advance_staged(scope);
  const bool done = operation.base == operation.piece_count;
  if (!done && !can_go_on(scope, piece_slot(operation, operation.base))) return;
  if (operation.in_debt) settle_landed(scope);
  advance_pieces(scope);
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

// What of this piece is missing over the hop is late, most likely: of the ranks whose blocks they
// are nothing has come, and several packets of each would have to be lost. (Who has posted has sent
// the pieces of the first window at once, and later ones when it could.)
bool seems_late(const Scope& scope, const Piece& piece, uint32_t hop) {
  const Operation& operation = scope.operation;
  const Membership& self = scope.member.membership;
  if (kPieceWindow == 1 || operation.piece_count == 1 || operation.base > 0) return false;
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

// A record without post asks for what somebody below wants.
void want(const Scope& scope) {
  auto& [card, member, operation] = scope;
  auto& turn = own_state<Turn>(operation);
  if (is_posted(operation) || turn.wanted) return;
  turn.wanted = true;
  inquiry_begin(card, member, operation.inquiry);
  card.timers.arm_no_later(operation.timer, inquiry_next(card, operation.inquiry));
}

// Somebody asks for an own piece that may not begin yet: it has had all of the first piece that is
// not complete here (0003), so what is missing of that was sent, and is lost, most likely. It is
// asked for at once, whatever was promised; not while it may lie in a queue. docs/decisions/0058
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
  if (asks) {
    const Asked asked = asked_for(self, number, origin);
    operation_owes(scope, self.peers[peer_behind(asked.hop)].address.rank);
    if (may_ask_parent(scope, asked.hop, Wanted::kAgain)) {
      ask_parent(scope, asked);
      count(card, PEAL_COUNTER_RELAYED_NACK);
    }
  }
  return Answer::kNotYet;
}

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
  Owed owed = Owed::kByOthers;
  for (uint64_t bits = nack.fragments; bits != 0; bits &= bits - 1) {
    const auto i = static_cast<uint32_t>(std::countr_zero(bits));
    const Rank origin = minus(header.origin, i % ranks, self.ranks);
    const Answer done = answer(scope, number + i / ranks, origin, child);
    repaired |= done == Answer::kRepaired;
    owing |= done == Answer::kNotYet;
    if (done == Answer::kNotYet && origin == self.rank) owed = Owed::kByHost;
  }
  if (!repaired && !owing) return PEAL_COUNTER_DROP_STALE;
  if (!repaired) send_not_yet(scope, child, header, nack, owed);
  return PEAL_COUNTER_RECEIVED;
}

}  // namespace

constinit const AlgorithmFunctions kFunctions = {
    allgather::check, open, post, on_data, nullptr, on_nack, on_dma, advance, chase, on_usual};

}  // namespace peal::broadcast_all
