// SPDX-License-Identifier: BSD-2-Clause
// Short blocks of an alltoallv in ⌈log2 N⌉ steps. Step k sends rank - 2^k a packet of all blocks
// whose way has bit k, own ones and those that steps before it have brought, as long as they are;
// and heads of those that their ranks exchange directly, so that whoever gets none knows that it is
// to get none. What comes waits until the table of parts is known (and, in place, until the own
// blocks are read); then each block goes straight to the user's memory, or to where the step that
// takes it further gathers (bruck_logs.h). docs/decisions/0083
#pragma once

#include "firmware/collective/direct_pair.h"
#include "firmware/operation/algorithm.h"

namespace peal::bruckv {

// Nothing has come or gone.
void open_steps(const Scope& scope);
// Goes on as far as it can; the table is known.
void go_on_in_steps(const Scope& scope);
// Packets of steps (PEAL_PIECE_STEP), and transfers: as the seam's.
peal_counter on_step_data(const Scope& scope, Packet* packet);
peal_counter on_step_nack(const Scope& scope, const peal_wire_header& header,
                          const peal_nack& nack);
bool on_step_dma(const Scope& scope, const TransferDone& done);
void chase_steps(const Scope& scope);

}  // namespace peal::bruckv
