// SPDX-License-Identifier: BSD-2-Clause
// DMA of an operation: counted in its record, its piece and its member, and gone on with where its
// algorithm says when it is done.
#pragma once

#include "firmware/card_types.h"
#include "firmware/dma/dma.h"
#include "firmware/wire/transmit.h"

namespace peal {

enum class TransferRole : uint8_t {
  kPart,       // of the result: the operation ends when it fails
  kSend,       // image into a packet whose header is ready, which goes out then; detail: peer entry
  kRepair,     // the same for a repair: holds up neither its piece nor its operation; it reads the
               // channel, and whoever gets it later than that has passed the slot knows it as stale
  kSendOwn,    // as kSend, from the user's memory: the operation ends when it fails
  kRepairOwn,  // a repair from there: the operation, though not the piece, waits for it
  kRepairFramed,  // as kRepair, of a block with its frame behind it (frame.h): goes out if it is
                  // what the packet's header says
  kTable,         // as kPart, of no piece
};

struct TransferRequest {
  TransferRole role = TransferRole::kPart;
  uint8_t step = 0;  // given back to the algorithm (struct TransferDone)
  uint32_t piece;
  HostAddress host;
  uint8_t* card;  // memory on the card: a payload or staging
  uint32_t bytes;
  Packet* packet = nullptr;  // held until the transfer is done
  uint32_t detail = 0;
};

// A packet to read into, when there are so many DMA records besides. Null (counted) when not both.
[[nodiscard]] inline Packet* take_bounce(Card& card, uint32_t records) {
  return dma_suffices(card, records) ? take_packet(card) : nullptr;
}
// The same for what the operation goes on with: without, it is starved, and tries again soon.
[[nodiscard]] Packet* take_bounce_or_starve(const Scope& scope, uint32_t records = 1);
// Only the records.
[[nodiscard]] bool has_dma_or_starves(const Scope& scope, uint32_t records = 1);

// Transfers of a piece that may be under way when it begins another one: engines work in order, and
// what others wait for must not wait for long.
inline constexpr uint32_t kPieceTransfers = 8;

// Takes a DMA record, which the caller has made sure of (dma_available()).
void transfer_read(const Scope& scope, const TransferRequest& request);
void transfer_write(const Scope& scope, const TransferRequest& request);

// Whose it was goes on, unless its slot serves another operation by now.
void on_transfer_done(Card& card, const DmaDone& done);

}  // namespace peal
