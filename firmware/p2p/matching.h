// SPDX-License-Identifier: BSD-2-Clause
// Messages: sends are announced in their order, each receive takes the first announced message
// of its rank that has its tag. The bytes of a short one come with its announcement, others
// after READY, straight into the receive's memory. The receiver says by DONE how a message
// ended that it has the last word on; a stream ends when its sender has all acknowledged, and
// its receiver all in memory.
#pragma once

#include "firmware/card_types.h"
#include "firmware/dma/dma.h"
#include "firmware/p2p/connection.h"

namespace peal::p2p {

// A receive is new: its message may have been announced.
void match_receive(Card& card, Member& member, Request& request);
// The packet's message is the next one from there; false: a field of it cannot be.
peal_counter on_announce(Card& card, Connection& connection, Packet* packet);
// PEAL_STATUS_OK, or with which status the packet is refused.
peal_status on_ready(Card& card, Connection& connection, const peal_p2p_ready& body);
peal_counter on_done(Card& card, Connection& connection, const peal_p2p_done& body);

// Was a message announced to this rank that has no receive yet?
[[nodiscard]] bool awaits_receive(const Card& card, const Connection& connection);

// A message that came before its receive goes to memory; there is a DMA record.
void land_early(Card& card, Request& request);
void on_early_landed(Card& card, const DmaDone& done);
// All of it may be acknowledged.
void end_if_sent(Card& card, Request& request);
// Own memory cannot be read: the other side is told where it waits for more.
void fail_sending(Card& card, Request& request);

}  // namespace peal::p2p
