// SPDX-License-Identifier: BSD-2-Clause
// Direct exchanges: every block goes straight from its origin to its destination, in pieces of at
// most one packet, W pieces under way, each to rank + 1, rank + 2, … in turn, so that not all send
// to one. docs/decisions/0017
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::direct {

// What a rank gives.
enum class Own : uint8_t {
  kOneForEach,  // a block for every rank, in their order
  kOneForAll,   // the same one: read once for all who get it
};

void open(const Scope& scope, Own own);
void post(const Scope& scope);
peal_counter on_data(const Scope& scope, Packet* packet);
peal_counter on_nack(const Scope& scope, const peal_wire_header& header, const peal_nack& nack);
bool on_dma(const Scope& scope, const TransferDone& done);
void advance(const Scope& scope);
void chase(const Scope& scope);

}  // namespace peal::direct
