// SPDX-License-Identifier: BSD-2-Clause
// A rank's own blocks in a direct exchange: read from the user, sent to each rank in turn, and kept
// in the channel where somebody may still ask for them when the user's memory is the user's again.
#pragma once

#include "firmware/collective/direct_piece.h"

namespace peal::direct {

// The piece begins. True: it always can.
bool start_own(const Scope& scope, Piece& piece, uint32_t number);
// Goes on with the blocks of the piece that were not begun, as far as packets and records go.
void send_own(const Scope& scope, Piece& piece, uint32_t number);

// Transfers are done; the steps of the same names (direct_piece.h).
void on_own_read(const Scope& scope, Piece& piece, const TransferDone& done);
void on_read_for_all(const Scope& scope, Piece& piece, const TransferDone& done);
// False: it goes on with the block.
bool on_own_framed(const Scope& scope, Piece& piece, const TransferDone& done);
void on_own_kept(const Scope& scope, Piece& piece, const TransferDone& done);

// Headers of own blocks: whose they are; and how long, where that is known.
void prepare_header(const Scope& scope, Packet* packet, const peal_peer_address& to,
                    uint32_t number);
void prepare(const Scope& scope, Packet* packet, const peal_peer_address& to, uint32_t number);

}  // namespace peal::direct
