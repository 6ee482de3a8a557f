// SPDX-License-Identifier: BSD-2-Clause
// What queues are told: that bytes are in memory. Told by card.cpp at the end of the entry point.
#pragma once

#include "firmware/base/assert.h"
#include "firmware/card_types.h"

namespace peal::p2p {

// There is room for a window of them, and they are taken before the next packet comes.
inline void tell_noticed(Card& card, uint16_t member, uint16_t source, uint16_t program,
                         const Notice& notice) {
  State& state = card.p2p;
  PEAL_ASSERT(state.notice_count < kWindow);
  state.notices[state.notice_count++] = {member, source, program, notice};
  card.due.messages = true;
}

}  // namespace peal::p2p
