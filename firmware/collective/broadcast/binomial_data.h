// SPDX-License-Identifier: BSD-2-Clause
// A broadcast's data on its way through a card: from the root's memory into packets, and from
// packets to the user, the channel, or neither. docs/decisions/0061, 0063
#pragma once

#include "firmware/collective/broadcast/binomial_tree.h"

namespace peal::binomial {

// Puts a fragment where it belongs: to the user once the host has posted. Before, it waits in its
// packet, or in the channel. False: no DMA record.
bool land(const Scope& scope, Packet* packet, uint32_t number, uint32_t fragment);
// The root reads and sends as far as it is credited.
void read_own(const Scope& scope);
// Takes to the user what came before the post, from packets and, once it has reached that, from the
// channel.
void fetch_early(const Scope& scope);
// Of AlgorithmFunctions.
bool on_dma(const Scope& scope, const TransferDone& done);

}  // namespace peal::binomial
