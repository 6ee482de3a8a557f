// SPDX-License-Identifier: BSD-2-Clause
// How requests end: with the first status that they get, and when nothing refers to them any
// more, no DMA and no packet that may have to be sent again. Then they are handed back.
#pragma once

#include "firmware/base/assert.h"
#include "firmware/card_types.h"
#include "firmware/p2p/records.h"

namespace peal::p2p {

// It is over. Leaves its lists; what it had under way is waited for, and unless it is well its
// packets are not sent again.
void end_request(Card& card, Request& request, peal_status status, Rank failed = PEAL_NO_RANK);
// It is handed back: it is over, and nothing refers to it.
void finish(Card& card, Request& request);
inline void finish_if_quiet(Card& card, Request& request) {
  if (!request.over || request.dma != 0 || request.records != 0) return;
  if (request.kind == Kind::kFree || request.place != Place::kNowhere) return;
  finish(card, request);
}
// The same, of a put that is on no list and well, and whose last DMA is just done.
inline void end_put(Request& put) {
  PEAL_ASSERT(put.place == Place::kNowhere && put.dma != 0);
  put.over = true;
}
// A DMA of it is done.
inline void request_dma_done(Card& card, Request& request) {
  PEAL_ASSERT(request.dma > 0);
  --request.dma;
  finish_if_quiet(card, request);
}
// A fence whose puts are all over.
void end_fence_if_passed(Card& card, Request& fence);
// A connection's life ends with its packets: their requests have ended.
void drop_records(Card& card, Connection& connection);

}  // namespace peal::p2p
