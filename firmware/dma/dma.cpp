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

void start(Card& card, DmaRecord& record) {
  count(card, PEAL_COUNTER_DMA_OPERATIONS);
  count(card, record.is_write ? PEAL_COUNTER_DMA_WRITE_BYTES : PEAL_COUNTER_DMA_READ_BYTES,
        record.bytes);
  // Behind what waits already, so that the order of requests is kept.
  if (card.dma_stalled != 0 || !offer(card, record)) stall(card, record);
}

DmaRecord& take(const Scope& scope, const DmaRequest& request) {
  Card& card = scope.card;
  PEAL_ASSERT(card.dma_free != 0);
  DmaRecord& record = card.dma[card.dma_free - 1];
  card.dma_free = record.next;
  ++card.dma_in_use;
  record.kind = request.kind;
  record.in_use = true;
  record.slot = scope.operation.timer.slot;
  record.member = scope.member.index;
  record.bytes = request.bytes;
  record.piece = request.piece;
  record.aux = request.aux;
  record.sequence = scope.operation.sequence;
  record.packet = request.packet;
  record.card = request.card;
  record.host = request.host;
  if (request.packet != nullptr) ++request.packet->holds;
  ++scope.member.dma;
  if (is_part_of_operation(record)) {
    ++scope.operation.dma;
    ++scope.operation.pieces[request.piece % kPieceSlots].dma;
  }
  return record;
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

void dma_read(const Scope& scope, const DmaRequest& request) {
  DmaRecord& record = take(scope, request);
  record.is_write = false;
  start(scope.card, record);
}

void dma_write(const Scope& scope, const DmaRequest& request) {
  DmaRecord& record = take(scope, request);
  record.is_write = true;
  start(scope.card, record);
}

void dma_continue_as_write(Card& card, DmaRecord& record, DmaKind kind, HostAddress host) {
  record.kind = kind;
  record.is_write = true;
  record.host = host;
  start(card, record);
}

bool is_part_of_operation(const DmaRecord& record) {
  return record.kind != DmaKind::kSend || record.aux != kRepairRead;
}

void dma_free(Card& card, DmaRecord& record) {
  record.in_use = false;
  record.packet = nullptr;
  record.next = card.dma_free;
  card.dma_free = static_cast<uint32_t>(&record - card.dma) + 1;
  --card.dma_in_use;
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
