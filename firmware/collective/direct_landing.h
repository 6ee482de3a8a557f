// SPDX-License-Identifier: BSD-2-Clause
// Others' blocks in a direct exchange: to the user or, as long as their place there is not known or
// not free, to wait in their packets (group/early.h) or in the channel.
#pragma once

#include "firmware/collective/direct_pair.h"

namespace peal::direct {

// May the origin's block of the piece be written to the user now? In place it lies where that for
// it lay: not before that one is kept. Where one block is for all it overwrites nothing.
bool is_free(const Scope& scope, uint32_t number, Rank origin);
// Puts a block where it belongs: the user's memory or, when that is not possible yet, the channel,
// unless it can wait where it is. False: not now.
bool land(const Scope& scope, uint32_t way, Packet* packet);
// Writes what is on the card to the user. There is a DMA record.
void to_user(const Scope& scope, uint32_t number, Rank origin, Packet* packet, uint8_t* from,
             uint32_t bytes);
// Blocks that waited in the channel, and in their packets, to the user.
void move_early(const Scope& scope);
void land_waiting(const Scope& scope);

// Transfers are done; the steps of the same names (direct_pair.h). False: it goes on.
bool on_early_framed(const Scope& scope, const TransferDone& done);
void note_early(const Scope& scope, uint32_t way, uint32_t number);
void on_early_read(const Scope& scope, const TransferDone& done);

}  // namespace peal::direct
