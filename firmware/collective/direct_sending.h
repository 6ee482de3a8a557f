// SPDX-License-Identifier: BSD-2-Clause
// A rank's own blocks in a direct exchange: read from the user, sent to each rank in turn, and kept
// (group/sent_blocks.h, or the channel) where somebody may still ask for them when the user's
// memory is the user's again.
#pragma once

#include "firmware/collective/direct_blocks.h"
#include "firmware/collective/direct_pair.h"
#include "firmware/operation/operation.h"
#include "firmware/wire/transmit.h"

namespace peal::direct {

// Goes on with those pairs whose next own block may be sent, a piece to each in turn, as far as
// packets and records go.
void send_own(const Scope& scope);

// Transfers are done; the steps of the same names (direct_pair.h).
void on_own_read(const Scope& scope, const TransferDone& done);
void on_read_for_all(const Scope& scope, const TransferDone& done);
// False: it goes on with the block.
bool on_own_framed(const Scope& scope, const TransferDone& done);
void on_own_kept(const Scope& scope, const TransferDone& done);

// Headers of own blocks, but for what is in them: whose they are; and how long, where that is
// known.
inline void prepare_header(const Scope& scope, Packet* packet, const peal_peer_address& to,
                           uint32_t number) {
  auto& [card, member, operation] = scope;
  address_packet(to, packet_kind(operation, PEAL_PACKET_DATA), packet->header);
  packet->header->piece = number;
  packet->header->origin = member.membership.rank;
}
[[gnu::always_inline]] inline void prepare(const Scope& scope, Packet* packet,
                                           const peal_peer_address& to, uint32_t number) {
  prepare_header(scope, packet, to, number);
  packet->header->length = static_cast<uint16_t>(length_for(scope, number, to.rank));
  packet->payload_bytes = packet->header->length;
  if (has_parts(scope.operation)) {
    packet->header->block_bytes = static_cast<uint32_t>(part_for(scope, to.rank).bytes);
  }
}

}  // namespace peal::direct
