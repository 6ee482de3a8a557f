// SPDX-License-Identifier: BSD-2-Clause
// DMA under way: one record each, from a fixed pool. What the port's engine does not take at once
// waits in order and is offered again each turn. A record carries a tag for whoever asked, of which
// only who lends is read here; completions come in a later turn.
#pragma once

#include "firmware/base/kept.h"
#include "firmware/card_types.h"

namespace peal {

// Records still free: callers that need several check before they start.
inline bool dma_available(const Card& card, uint32_t records) {
  return CONFIG_DMA_RECORDS - card.dma_in_use >= records;
}
// The same, for what the card would begin itself: counted where there are not as many.
[[nodiscard]] inline bool dma_suffices(Card& card, uint32_t records) {
  if (dma_available(card, records)) return true;
  count(card, PEAL_COUNTER_NO_DMA_RECORD);
  return false;
}
// And for what it may as well begin a little later: half of the records are left to what arrives,
// which is lost where there is none. docs/decisions/0049
[[nodiscard]] inline bool dma_may_begin(Card& card, uint32_t records) {
  const bool may = card.dma_in_use <= CONFIG_DMA_RECORDS / 2 && dma_available(card, records);
  if (!may) count(card, PEAL_COUNTER_NO_DMA_RECORD);
  return may;
}

struct DmaRequest {
  HostAddress host;
  uint8_t* card;  // memory on the card: a payload or staging
  uint32_t bytes;
  Packet* packet;  // held until the DMA is done, or null
  DmaTag tag;
};

// Who lends what is read for this one.
constexpr LenderId lender_of(uint32_t member, uint32_t slot) { return member << 8 | slot; }

// Before the host hears that the operation is over: what it lent is its own again.
inline void dma_take_back(const Scope& scope) {
  scope.card.port->take_back(lender_of(scope.member.index, scope.operation.timer.slot));
}

[[nodiscard]] inline bool dma_offer_lent(Card& card, const DmaRecord& record, DmaToken token,
                                         ReadFor whom) {
  const LenderId lender = lender_of(record.tag.member, record.tag.slot);
  return card.port->dma_read_lent(record.transfer, token, lender, whom);
}
// To the port's engine. False: it does not take it now.
[[nodiscard]] inline bool dma_offer(Card& card, const DmaRecord& record, DmaKind kind,
                                    DmaToken token) {
  switch (kind) {
    case DmaKind::kWrite:
      return card.port->dma_write(record.transfer, token);
    case DmaKind::kReadLent:
      return dma_offer_lent(card, record, token, ReadFor::kOneCard);
    case DmaKind::kReadLentToSeveral:
      return dma_offer_lent(card, record, token, ReadFor::kSeveralCards);
    case DmaKind::kRead:
      break;
  }
  return card.port->dma_read(record.transfer, token);
}

// The record waits: the port's engine does not take it now, or others wait already.
void dma_stall(Card& card, DmaRecord& record);

// Takes a record (which the caller has made sure of) and starts.
inline void dma_start(Card& card, const DmaRequest& request, DmaKind kind) {
  const DmaToken token = card.dma_free;
  PEAL_ASSERT(token < CONFIG_DMA_RECORDS);
  DmaRecord& record = kept(card.dma[token]);
  card.dma_free += 1 + record.next;
  ++card.dma_in_use;
  record.in_use = true;
  record.kind = kind;
  record.transfer = {request.host, request.card, request.packet, request.bytes};
  record.tag = request.tag;
  if (request.packet != nullptr) ++request.packet->holds;
  count(card, PEAL_COUNTER_DMA_OPERATIONS);
  const bool writes = kind == DmaKind::kWrite;
  count(card, writes ? PEAL_COUNTER_DMA_WRITE_BYTES : PEAL_COUNTER_DMA_READ_BYTES, request.bytes);
  // Behind what waits already, so that the order of requests is kept.
  const bool taken = card.dma_stalled == 0 && dma_offer(card, record, kind, token);
  if (!taken) dma_stall(card, record);
}
inline void dma_read(Card& card, const DmaRequest& request) {
  dma_start(card, request, DmaKind::kRead);
}
inline void dma_write(Card& card, const DmaRequest& request) {
  dma_start(card, request, DmaKind::kWrite);
}

// What is done, and no record any more. The packet is still held for it.
struct DmaDone : DmaTag {
  Packet* packet;
  uint32_t bytes;
  bool ok;
};
inline DmaDone dma_take_done(Card& card, DmaToken token, bool ok) {
  PEAL_ASSERT(token < CONFIG_DMA_RECORDS && card.dma[token].in_use);
  DmaRecord& record = kept(card.dma[token]);
  const DmaDone done = {record.tag, record.transfer.packet, record.transfer.bytes, ok};
  record.in_use = false;
  record.transfer.packet = nullptr;
  record.next = card.dma_free - token - 1;
  card.dma_free = token;
  --card.dma_in_use;
  if (!ok) count(card, PEAL_COUNTER_DMA_FAULT);
  return done;
}

// Offers again what the port refused.
void dma_retry_stalled(Card& card);

}  // namespace peal
