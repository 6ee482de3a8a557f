// SPDX-License-Identifier: BSD-2-Clause
// The seam: what an algorithm is to the rest of the card. One row of registry.cpp for each
// operation that it serves, made of plain functions; nobody else knows its name.
// How to add one is in docs/add-an-algorithm.md.
//
// All functions are called from within one of the card's entry points. They send (wire/), read and
// write host memory (transfer.h), and say how their operation is over (operation_finish); they
// never free a record or a member.
#pragma once

#include <new>
#include <type_traits>

#include "firmware/card_types.h"
#include "firmware/dma/dma.h"
#include "firmware/wire/header_match.h"
#include "firmware/wire/wire_check.h"

namespace peal {

// Why a slot of the channel may serve a later piece, and until when it answers for the one before.
// Whoever opens pieces (pieces.h) must have chosen; the proof is in the decision that is named, its
// test in the one in brackets.
enum class Release : uint8_t {
  kNoPieces,
  // Every rank sends and needs every piece, at most W ahead of what it has completed: a packet of
  // piece p + 2W proves that everybody has piece p. docs/decisions/0003, 0014 (In a direct exchange
  // each pair of ranks for itself, and its places: 0017.)
  // [Pieces.AQuestionOfLongAgoMakesNoDebt, Pieces.PiecesBeyondTheWindowAreRefused].
  kSymmetric,
  // Data goes down a tree, and credits go up: a slot serves piece p + 2W only on a card to which
  // everybody below has said that it has piece p. docs/decisions/0013
  // [Binomial.TheRootWaitsForEveryChildsCredit, Binomial.PiecesBeyondTheCreditsAreRefused].
  kCredited,
};

// Whom it admits as sender of its packets.
enum class Senders : uint8_t {
  kPeers,
  // Every rank of the group (group/remote.h). Packets of those that are no peers have no edge
  // numbers; only members that know everybody (by a table of addresses) may post it.
  kGroup,
};

// How long blocks are.
enum class Lengths : uint8_t {
  kOne,      // all alike, in every header and in the signature
  kOfParts,  // each as its rank's table says (parts.h): data carries its own block's
};

// A transfer is done: where it goes on (`step`, `piece` and `detail` of transfer.h), and its
// packet, or null, which is held until the function returns.
using TransferDone = DmaDone;

// RECEIVED, but nothing is left to go on with: on_data() and on_signal() may say so where they
// know.
inline constexpr peal_counter kTakenIn = PEAL_COUNTER_COUNT;

// What most algorithms do with a usual packet (usual.h).
peal_counter on_usual_packet(Card& card, Member& member, Operation& operation, Packet* packet,
                             Peer& peer);

// What an algorithm does.
struct AlgorithmFunctions {
  // Length, keys and bounds of a submission: OK and the rest of *command, or why not. Changes
  // nothing else.
  peal_status (*check)(Card& card, const Member& member, const peal_submission& entry,
                       Command* command);
  // A record was made, by the host or by a packet.
  void (*open)(const Scope& scope);
  // The host has posted; the record may have been made long before.
  void (*post)(const Scope& scope);
  // Packets of the operation, their group, sender and signature checked. The counter they deserve:
  // RECEIVED (or kTakenIn) where they brought it forward.
  peal_counter (*on_data)(const Scope& scope, Packet* packet);
  peal_counter (*on_signal)(const Scope& scope, const peal_wire_header& header);
  peal_counter (*on_nack)(const Scope& scope, const peal_wire_header& header,
                          const peal_nack& nack);
  // A transfer is done, or failed (which ends the operation, whatever is returned). False: it only
  // goes on with its next half, and nothing else can.
  bool (*on_dma)(const Scope& scope, const TransferDone& done);
  // Goes on as far as it can. Called after each of the above, as long as the operation is not over,
  // unless they say that there is nothing to go on with.
  void (*advance)(const Scope& scope);
  // Nothing has come for an interval: asks for what is missing, within operation_may_ask().
  void (*chase)(const Scope& scope);
  // A usual packet, from the peer that is as far behind as its hop says. Returns what the card's
  // counters call it, all that follows from it done.
  peal_counter (*on_usual)(Card& card, Member& member, Operation& operation, Packet* packet,
                           Peer& peer) = on_usual_packet;
  // What the packet, an answer, names was sent, and is lost. Null: its sender is asked again for
  // whatever has not come.
  void (*on_lost)(const Scope& scope, const peal_wire_header& header) = nullptr;
};

// One row of the registry.
struct Algorithm {
  uint8_t operation;  // enum peal_operation
  uint8_t algorithm;  // enum peal_algorithm
  uint8_t flags;      // PEAL_SUBMIT_* that a submission may carry
  bool rooted;        // one rank is the root; it is the origin in all packets' headers
  Release release;
  Senders senders;
  Lengths lengths;
  PacketRules packets;  // of which types there may be
  const AlgorithmFunctions& does;
  uint32_t ranks_max = kVectorRanks;  // of the groups that it serves
  // What its usual packets have in common with their pattern; follows from the rest.
  HeaderMask usual = header_mask({.origin = !rooted,
                                  .length = carries_blocks(packets),
                                  .block_bytes = lengths == Lengths::kOfParts});
  // The same, of those of ranks that are no peers.
  HeaderMask usual_remote = without_number(usual);
  // Is it complete only where every rank has started it? Those whose every rank sends, to whom the
  // others do not finish before they have heard it. (Of parts too: each pair has a first packet,
  // if an empty one. docs/decisions/0077)
  bool synchronises = release != Release::kCredited;
};

// What most of its packets are.
constexpr uint8_t usual_type(const Algorithm& algorithm) {
  return carries_blocks(algorithm.packets) ? PEAL_PACKET_DATA : PEAL_PACKET_SIGNAL;
}

// Do pairs of ranks go on by themselves? Then what comes from one says nothing of the others: who
// owes something is watched whatever has come.
constexpr bool watches_all_the_time(const Algorithm& algorithm) {
  return algorithm.senders == Senders::kGroup;
}

// Does a rank wait for one other alone, its parent in a tree?
constexpr bool waits_for_one(const Algorithm& algorithm) {
  return algorithm.release == Release::kCredited;
}

// All rows, by what they serve (registry.cpp).
struct AlgorithmTable {
  const Algorithm* rows[PEAL_OPERATION_COUNT][PEAL_ALGORITHM_COUNT];
  uint8_t flags[PEAL_OPERATION_COUNT];  // that a submission may carry, whatever the algorithm
  bool served[PEAL_OPERATION_COUNT];    // may a host submit it?
};
extern const AlgorithmTable kAlgorithms;

// The row, or null when nobody serves that.
inline const Algorithm* find_algorithm(uint8_t operation, uint8_t algorithm) {
  if (operation >= PEAL_OPERATION_COUNT || algorithm >= PEAL_ALGORITHM_COUNT) return nullptr;
  return kAlgorithms.rows[operation][algorithm];
}

// The algorithm's own state in an operation's record, and in a piece: zero when opened.
template <typename State>
State& own_state(Operation& operation) {
  static_assert(sizeof(State) <= kOperationStateBytes);
  static_assert(alignof(State) <= 8);
  static_assert(std::is_trivial_v<State>);
  return *std::launder(reinterpret_cast<State*>(operation.state));
}
template <typename State>
State& own_state(Piece& piece) {
  static_assert(sizeof(State) <= kPieceStateBytes);
  static_assert(alignof(State) <= 8);
  static_assert(std::is_trivial_v<State>);
  return *std::launder(reinterpret_cast<State*>(piece.state));
}
template <typename State>
const State& own_state(const Piece& piece) {
  return own_state<State>(const_cast<Piece&>(piece));
}

}  // namespace peal
