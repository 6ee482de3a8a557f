// SPDX-License-Identifier: BSD-2-Clause
// DMA under way: one record each, from a fixed pool, naming the operation it belongs to. What the
// port's engine does not take at once waits in order and is offered again each turn. Completions
// come in a later turn (on_dma_done in card.cpp).
#pragma once

#include "firmware/card_types.h"

namespace peal {

void dma_init(Card& card);

// Records still free: callers that need several check before they start.
bool dma_available(const Card& card, uint32_t records);

struct DmaRequest {
  DmaKind kind;
  uint32_t piece;
  HostAddress host;
  uint8_t* card;  // memory on the card: a payload or staging
  uint32_t bytes;
  Packet* packet = nullptr;  // held until the DMA is done
  uint32_t aux = 0;
};

// Takes a record (which the caller has made sure of) and starts, counting it in operation, piece
// and member.
void dma_read(const Scope& scope, const DmaRequest& request);
void dma_write(const Scope& scope, const DmaRequest& request);
// The same record goes on with its next half (bounce: read, then write).
void dma_continue_as_write(Card& card, DmaRecord& record, DmaKind kind, HostAddress host);
void dma_free(Card& card, DmaRecord& record);
// A repair read holds up neither its piece nor its operation: it reads the channel, and whoever
// gets it later than that has passed the place knows it as stale.
inline constexpr uint32_t kRepairRead = 1;
bool is_part_of_operation(const DmaRecord& record);
// Offers again what the port refused.
void dma_retry_stalled(Card& card);

}  // namespace peal
