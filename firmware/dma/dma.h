// SPDX-License-Identifier: BSD-2-Clause
// DMA under way: one record each, from a fixed pool. What the port's engine does not take at once
// waits in order and is offered again each turn. A record carries a tag for whoever asked, which is
// not read here; completions come in a later turn.
#pragma once

#include "firmware/card_types.h"

namespace peal {

void dma_init(Card& card);

// Records still free: callers that need several check before they start.
bool dma_available(const Card& card, uint32_t records);

struct DmaRequest {
  HostAddress host;
  uint8_t* card;  // memory on the card: a payload or staging
  uint32_t bytes;
  Packet* packet;  // held until the DMA is done, or null
  DmaTag tag;
};

// Takes a record (which the caller has made sure of) and starts.
void dma_read(Card& card, const DmaRequest& request);
void dma_write(Card& card, const DmaRequest& request);

// What is done, and no record any more. The packet is still held for it.
struct DmaDone {
  DmaTag tag;
  Packet* packet;
  uint32_t bytes;
  bool ok;
};
DmaDone dma_take_done(Card& card, DmaToken token, bool ok);

// Offers again what the port refused.
void dma_retry_stalled(Card& card);

}  // namespace peal
