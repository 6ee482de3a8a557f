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
  uint8_t received;              // whose blocks are all in the image, from the first step on
  uint8_t sent;                  // whole
  uint8_t fragments_sent;        // of the step that is being sent
  uint32_t whole;                // bit per step: all its packets have come
  uint16_t landing[kRoundsMax];  // writes of a step's blocks into the image, under way
};

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

struct Plan {
  // Whom step k sends to, and whom it waits for: entries of the table of peers.
  uint32_t (*to)(const Membership& self, uint32_t k);
  uint32_t (*from)(const Membership& self, uint32_t k);
  // Packets of step k, 1 to 64, and the bytes of one.
  uint32_t (*fragments)(const Scope& scope, uint32_t number, uint32_t k);
  uint32_t (*bytes)(const Scope& scope, uint32_t number, uint32_t k, uint32_t fragment);
  // Where the image holds what a packet is to carry.
  ImagePart (*part)(const Scope& scope, uint32_t number, uint32_t k, uint32_t fragment);
  // Puts the blocks of a packet that is right into the image. False: not enough DMA records.
  bool (*land)(const Scope& scope, Piece& piece, Packet* packet);
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

// The whole image goes to the user, back into the order of ranks.
bool is_wanted(const Scope& scope, uint32_t piece, uint32_t position);
bool image_has_left(const Scope& scope);
constexpr mover::Plan deliver_image(Rank (*rank_at)(const Membership& self, uint32_t position)) {
  return {.wanted = is_wanted, .rank_at = rank_at, .piece_ended = image_has_left};
}

}  // namespace peal::stepping
