// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/dma/dma.h"

namespace peal {
namespace {

constexpr TimeNs kRetryNs = 10'000;

bool offer(Card& card, DmaRecord& record) {
  const auto token = static_cast<DmaToken>(&record - card.dma);
  return record.is_write ? card.port->dma_write(record.card, record.host, record.bytes, token)
                         : card.port->dma_read(record.host, record.card, record.bytes, token);
}

void stall(Card& card, DmaRecord& record) {
  const auto name = static_cast<uint32_t>(&record - card.dma) + 1;
  record.next = 0;
  if (card.dma_stalled == 0) {
    card.dma_stalled = name;
  } else {
    card.dma[card.dma_stalled_last - 1].next = name;
  }
  card.dma_stalled_last = name;
  card.timers.arm_no_later(card.retry_timer, card.now + kRetryNs);
}

void start(Card& card, const DmaRequest& request, bool is_write) {
  PEAL_ASSERT(card.dma_free != 0);
  DmaRecord& record = card.dma[card.dma_free - 1];
  card.dma_free = record.next;
  ++card.dma_in_use;
  record.in_use = true;
  record.is_write = is_write;
  record.bytes = request.bytes;
  record.packet = request.packet;
  record.card = request.card;
  record.host = request.host;
  record.tag = request.tag;
  if (request.packet != nullptr) ++request.packet->holds;
  count(card, PEAL_COUNTER_DMA_OPERATIONS);
  count(card, is_write ? PEAL_COUNTER_DMA_WRITE_BYTES : PEAL_COUNTER_DMA_READ_BYTES, record.bytes);
  // Behind what waits already, so that the order of requests is kept.
  if (card.dma_stalled != 0 || !offer(card, record)) stall(card, record);
}

}  // namespace

void dma_init(Card& card) {
  for (uint32_t i = 0; i < CONFIG_DMA_RECORDS; ++i) {
    card.dma[i].next = i + 1 < CONFIG_DMA_RECORDS ? i + 2 : 0;
  }
  card.dma_free = 1;
}

bool dma_available(const Card& card, uint32_t records) {
  return CONFIG_DMA_RECORDS - card.dma_in_use >= records;
}

void dma_read(Card& card, const DmaRequest& request) { start(card, request, false); }

void dma_write(Card& card, const DmaRequest& request) { start(card, request, true); }

DmaDone dma_take_done(Card& card, DmaToken token, bool ok) {
  PEAL_ASSERT(token < CONFIG_DMA_RECORDS && card.dma[token].in_use);
  DmaRecord& record = card.dma[token];
  const DmaDone done = {record.tag, record.packet, record.bytes, ok};
  record.in_use = false;
  record.packet = nullptr;
  record.next = card.dma_free;
  card.dma_free = token + 1;
  --card.dma_in_use;
  if (!ok) count(card, PEAL_COUNTER_DMA_FAULT);
  return done;
}

void dma_retry_stalled(Card& card) {
  while (card.dma_stalled != 0) {
    DmaRecord& record = card.dma[card.dma_stalled - 1];
    if (!offer(card, record)) {
      card.timers.arm_no_later(card.retry_timer, card.now + kRetryNs);
      return;
    }
    card.dma_stalled = record.next;
  }
}

}  // namespace peal
