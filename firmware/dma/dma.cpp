// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/dma/dma.h"

namespace peal {
namespace {

constexpr TimeNs kRetryNs = 10'000;

}  // namespace

void dma_stall(Card& card, DmaRecord& record) {
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

void dma_retry_stalled(Card& card) {
  while (card.dma_stalled != 0) {
    const DmaToken token = card.dma_stalled - 1;
    DmaRecord& record = card.dma[token];
    if (!dma_offer(card, record, record.kind, token)) {
      card.timers.arm_no_later(card.retry_timer, card.now + kRetryNs);
      return;
    }
    card.dma_stalled = record.next;
  }
}

}  // namespace peal
