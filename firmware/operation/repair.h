// SPDX-License-Identifier: BSD-2-Clause
// Answers to NACKs that carry data: from staging while it is held, else from what the channel
// retains. Never from the user's buffers, which may be the user's again.
#pragma once

#include "firmware/card_types.h"

namespace peal {

// All-to-all broadcast: sends the origin's block to the child that asked, if this card has it.
// False if not.
bool repair_block(const Scope& scope, uint32_t piece, Rank origin, const peal_peer_address& child);
// May the card send one repair now? Counted when not; its receiver asks again.
[[nodiscard]] bool may_repair(Card& card);

// Recursive doubling: sends one fragment of a step, the first time or again.
struct StepFragment {
  uint32_t piece;
  uint32_t step;
  uint32_t fragment;
  uint32_t image_offset;  // bytes
  uint32_t bytes;
};
// False when a packet or DMA record could not be had.
bool send_fragment(const Scope& scope, const StepFragment& what, const peal_peer_address& to,
                   bool repair);

// Alive, but not yet.
void send_not_yet(const Scope& scope, const peal_peer_address& to, const peal_wire_header& header,
                  const peal_nack& nack);

// The image has arrived in the packet of a kSend.
void on_send_read(const Scope& scope, DmaRecord& record);

}  // namespace peal
