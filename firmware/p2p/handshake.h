// SPDX-License-Identifier: BSD-2-Clause
// What the other side says of lives of connections: OPEN, ACCEPT, CLOSE, CLOSED (opening.h).
#pragma once

#include "firmware/card_types.h"

namespace peal::p2p {

peal_counter on_open(Card& card, Member& member, const peal_wire_header& header,
                     const peal_p2p_open& body, const peal_peer_address& address);
peal_counter on_accept(Card& card, Member& member, const peal_wire_header& header, uint32_t peer,
                       const peal_peer_address& address);
peal_counter on_close(Card& card, Member& member, const peal_wire_header& header, uint32_t peer,
                      const peal_peer_address& address);
peal_counter on_closed(Card& card, Member& member, const peal_wire_header& header);

}  // namespace peal::p2p
