// SPDX-License-Identifier: BSD-2-Clause
// Algorithms in ⌈log2 N⌉ exchanges. Step k sends one rank what the steps before it have put
// together, and waits for what another one sends in its step k. What was sent lies in the image
// until the piece's slot is used again, so that it can be sent again. An algorithm is a plan of
// this, and what it does with its own blocks.
#pragma once

#include "firmware/operation/algorithm.h"
#include "firmware/operation/mover.h"
#include "firmware/operation/repair.h"

namespace peal::stepping {

// How far a piece is; what an algorithm keeps of a piece begins with it. The piece's bits are
// fragments that have come, a word per step.
struct Steps {
  uint8_t sent;                  // whole
  uint8_t fragments_sent;        // of the step that is being sent
  uint32_t whole;                // bit per step: all its packets have come
  uint32_t landed;               // and all its blocks are in the image
  uint16_t landing[kRoundsMax];  // writes of a step's blocks into the image, under way
};

// So many steps' blocks are all in the image, from the first one on. (There is no bit of a step
// behind the last.)
inline uint32_t steps_received(const Steps& steps) {
  return static_cast<uint32_t>(__builtin_ctz(~steps.landed));
}

// Where a transfer goes on; further ones are the plan's own.
enum Goal : uint8_t {
  kLand,  // a packet's blocks into the image
  kFirstOwn,
};

// Positions of an image.
struct Stretch {
  uint32_t first;
  uint32_t blocks;
};

// What a step sends of a piece, and receives: as much in each direction.
struct Exchange {
  uint32_t to;            // whom it sends to: an entry of the table of peers
  Rank from;              // whom it waits for
  uint32_t sends;         // position in the image of the first block that it sends
  uint32_t receives;      // and of the first that it receives, where those lie side by side
  uint32_t bytes;         // of all its blocks
  uint32_t packet_bytes;  // of all its packets but the last, which has the rest
};

// Most go in one packet.
inline bool is_single(const Exchange& exchange) { return exchange.bytes <= exchange.packet_bytes; }
// Its packets, 1 to 64.
inline uint32_t fragments_of(const Exchange& exchange) {
  if (is_single(exchange)) return 1;
  return (exchange.bytes + exchange.packet_bytes - 1) / exchange.packet_bytes;
}
// Bytes of one of them.
inline uint32_t bytes_of(const Exchange& exchange, uint32_t fragment) {
  const uint32_t left = exchange.bytes - fragment * exchange.packet_bytes;
  return left < exchange.packet_bytes ? left : exchange.packet_bytes;
}
// Where the image holds what one of its packets is to carry.
inline ImagePart part_of(const Exchange& exchange, uint32_t number, uint32_t fragment) {
  return {number, exchange.sends, fragment * exchange.packet_bytes, bytes_of(exchange, fragment)};
}

struct Plan {
  // Of a piece whose blocks have this length.
  Exchange (*exchange)(const Membership& self, uint32_t length, uint32_t k);
  // Whom step k waits for: an entry of the table of peers.
  uint32_t (*from)(const Membership& self, uint32_t k);
  // Puts the blocks of a packet that is right into the image where that gathers in staging; and
  // where it lies in the channel. False: not enough DMA records.
  void (*stage)(const Scope& scope, Packet* packet, const Exchange& exchange);
  bool (*land)(const Scope& scope, Piece& piece, Packet* packet, const Exchange& exchange);
  // Begins with a piece's own blocks. False: a pool was empty.
  bool (*start_own)(const Scope& scope, Piece& piece, uint32_t number);
  // A transfer of theirs is done (steps from kFirstOwn on).
  void (*own_moved)(const Scope& scope, Piece& piece, const TransferDone& done);
  // What a result that gathered in staging leaves in the channel, for late NACKs.
  Stretch (*retained)(const Membership& self);
  mover::Plan deliver;
  // Goes on with own blocks, where start_own() only began.
  void (*read_own)(const Scope& scope, Piece& piece, uint32_t number) = nullptr;
};

// Writes bytes of a packet that has come into the image that lies in the channel. Takes a DMA
// record, which the caller has made sure of.
void write_landed(const Scope& scope, Piece& piece, Packet* packet, uint8_t* from,
                  const ImagePart& to);

// Some of a result that gathered in staging has left it. False: nothing follows, before all of it
// has, or because that has ended the operation.
bool staged_has_left(const Scope& scope, const TransferDone& done);

// The whole image goes to the user, back into the order of ranks.
bool is_wanted(const Scope& scope, uint32_t piece, uint32_t position);
bool image_has_left(const Scope& scope);
constexpr mover::Plan deliver_image(Rank (*rank_at)(const Membership& self, uint32_t position)) {
  return {.wanted = is_wanted, .rank_at = rank_at, .piece_ended = image_has_left};
}

}  // namespace peal::stepping
