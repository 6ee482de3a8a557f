// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/alltoallv/bruck.h"

#include "firmware/collective/alltoallv/alltoallv.h"
#include "firmware/collective/alltoallv/bruck_steps.h"
#include "firmware/collective/direct.h"
#include "firmware/collective/direct_blocks.h"
#include "firmware/operation/operation.h"

namespace peal::bruckv {
namespace {

bool is_of_step(const peal_wire_header& header) { return header.piece == PEAL_PIECE_STEP; }

void open(const Scope& scope) {
  const uint32_t places = log_places(scope.member.membership.rounds);
  direct::open(scope, direct::Own::kOneForEach, places * kLogBytes);
  open_steps(scope);
}

peal_counter on_data(const Scope& scope, Packet* packet) {
  return is_of_step(*packet->header) ? on_step_data(scope, packet) : direct::on_data(scope, packet);
}

peal_counter on_nack(const Scope& scope, const peal_wire_header& header, const peal_nack& nack) {
  return is_of_step(header) ? on_step_nack(scope, header, nack)
                            : direct::on_nack(scope, header, nack);
}

bool on_dma(const Scope& scope, const TransferDone& done) {
  return done.step >= kFirstGoal ? on_step_dma(scope, done) : direct::on_dma(scope, done);
}

void advance(const Scope& scope) {
  if (direct::is_known(scope.operation)) go_on_in_steps(scope);
  if (!is_refused(scope.operation)) direct::advance(scope);
}

void chase(const Scope& scope) {
  direct::chase(scope);
  chase_steps(scope);
}

// A step has one packet: that is asked for again soon.
void on_lost(const Scope& scope, const peal_wire_header& header) {
  if (!is_of_step(header)) return direct::on_lost(scope, header);
  const Membership& self = scope.member.membership;
  const uint32_t entry = peer_entry(self.rank, header.sender, self.ranks);
  if (entry == kNoPeer) return;  // it sends this rank no step
  if (!inquiry_doubts(scope.operation.inquiry, entry)) operation_doubts(scope, entry);
}

}  // namespace

constinit const AlgorithmFunctions kFunctions = {.check = alltoallv::check,
                                                 .open = open,
                                                 .post = direct::post,
                                                 .on_data = on_data,
                                                 .on_signal = nullptr,
                                                 .on_nack = on_nack,
                                                 .on_dma = on_dma,
                                                 .advance = advance,
                                                 .chase = chase,
                                                 .on_lost = on_lost};

}  // namespace peal::bruckv
