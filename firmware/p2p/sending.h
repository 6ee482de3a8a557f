// SPDX-License-Identifier: BSD-2-Clause
// What leaves: connections that may send take turns, a packet each, so that none starves another.
// Of all of them together only a few packets are being read from memory at a time (kReadsMax): so
// many stand before one of a collective's at most, in the DMA engine and on the link.
#pragma once

#include "firmware/card_types.h"
#include "firmware/dma/dma.h"
#include "firmware/p2p/records.h"

namespace peal::p2p {

// One of a program, to another rank.
struct Signal {
  const peal_descriptor& what;
  const Origin& origin;
};
// As a put without bytes, which its connection can number now: it is over then, as it refers to
// nothing. False: it cannot; start_put().
[[nodiscard]] bool start_signal(Card& card, const Member& member, const Signal& signal);
// As much as may be sent now.
void send_ready(Card& card);
// This one has something new: at once, where no other waits for its turn.
void send_now(Card& card, Connection& connection);
// The same: a put, which goes on its list where that is of use.
void send_put(Card& card, Connection& connection, Request& request);
// Bytes of a packet have been read.
void on_read_done(Card& card, const DmaDone& done);

}  // namespace peal::p2p
