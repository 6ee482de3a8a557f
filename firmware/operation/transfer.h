// SPDX-License-Identifier: BSD-2-Clause
// DMA of an operation: counted in its record, its piece and its member, and gone on with where its
// algorithm says when it is done.
#pragma once

#include "firmware/card_types.h"
#include "firmware/dma/dma.h"

namespace peal {

enum class TransferRole : uint8_t {
  kPart,       // of the result: the operation ends when it fails
  kSend,       // image into a packet whose header is ready, which goes out then; detail: peer entry
  kRepair,     // the same for a repair: holds up neither its piece nor its operation; it reads the
               // channel, and whoever gets it later than that has passed the slot knows it as stale
  kSendOwn,    // as kSend, from the user's memory: the operation ends when it fails
  kRepairOwn,  // a repair from there: the operation, though not the piece, waits for it
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

// Takes a DMA record, which the caller has made sure of (dma_available()).
void transfer_read(const Scope& scope, const TransferRequest& request);
void transfer_write(const Scope& scope, const TransferRequest& request);

// Whose it was goes on, unless its slot serves another operation by now.
void on_transfer_done(Card& card, const DmaDone& done);

}  // namespace peal
