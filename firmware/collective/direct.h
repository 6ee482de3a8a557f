// SPDX-License-Identifier: BSD-2-Clause
// Direct exchanges: every block goes straight from its origin to its destination, in pieces of at
// most one packet, W pieces under way, each to rank + 1, rank + 2, … in turn, so that not all send
// to one. docs/decisions/0017
#pragma once

#include "firmware/collective/direct_pair.h"
#include "firmware/collective/direct_questions.h"
#include "firmware/operation/algorithm.h"

namespace peal::direct {

// Leaves so many bytes at the end of each image of the channel alone.
void open(const Scope& scope, Own own, uint32_t reserved_bytes = 0);
void post(const Scope& scope);
peal_counter on_data(const Scope& scope, Packet* packet);
peal_counter on_nack(const Scope& scope, const peal_wire_header& header, const peal_nack& nack);
bool on_dma(const Scope& scope, const TransferDone& done);
void advance(const Scope& scope);

// The seam's functions of an exchange in which every rank gives that.
template <Own kOwn>
constexpr AlgorithmFunctions functions(decltype(AlgorithmFunctions::check) check) {
  return {.check = check,
          .open = [](const Scope& scope) { open(scope, kOwn); },
          .post = post,
          .on_data = on_data,
          .on_signal = nullptr,
          .on_nack = on_nack,
          .on_dma = on_dma,
          .advance = advance,
          .chase = chase,
          .on_lost = on_lost};
}

}  // namespace peal::direct
