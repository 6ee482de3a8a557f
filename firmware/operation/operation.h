// SPDX-License-Identifier: BSD-2-Clause
// The record of one operation, from whatever makes it (a post, a packet, a NACK) to its recycling.
// Opens, times, ends; what happens in between is the algorithm's.
#pragma once

#include "firmware/card_types.h"
#include "firmware/group/inquiry.h"
#include "firmware/operation/algorithm.h"
#include "firmware/wire/transmit.h"

namespace peal {

inline bool is_posted(const Operation& operation) {
  return operation.phase == OperationPhase::kRunning;
}
// Not over for the host.
inline bool is_open(const Operation& operation) {
  return operation.phase >= OperationPhase::kEarly;
}
inline bool is_refused(const Operation& operation) { return operation.verdict != PEAL_STATUS_OK; }

// Nobody wants what came early for it; its end waits for its post and its DMA.
void operation_end_if_refused(const Scope& scope);

// Does anything have to be asked for?
[[nodiscard]] bool is_waiting(const Operation& operation);

// Makes the record in the slot that `sequence` has, early.
void operation_open(const Scope& scope, const Algorithm& algorithm, uint64_t sequence,
                    uint32_t block_bytes, Rank root);
// Goes on as far as it can: sends, delivers, ends.
inline void operation_advance(const Scope& scope) {
  Operation& operation = scope.operation;
  if (is_refused(operation)) {
    operation_end_if_refused(scope);
  } else if (is_open(operation)) {
    operation.algorithm->does.advance(scope);
  }
}
// Somebody has asked for what this rank cannot send before others have sent it: it asks them soon
// (inquiry_asked_for()).
void operation_asked_for(const Scope& scope);
// The host has posted: what others owe is waited for from now on.
void operation_posted(const Scope& scope);
// Something arrived: the wait begins anew.
void operation_disturbed(const Scope& scope);
[[gnu::always_inline]] inline void operation_progressed(const Scope& scope) {
  if (inquiry_heard(scope.card, scope.operation.inquiry)) operation_disturbed(scope);
}
// A pool was empty: try again soon.
void operation_starved(const Scope& scope);
// What has come by now goes first.
void operation_waits_for_turn(const Scope& scope);
// This peer owes it something, and is awaited. May it be asked now? If not, the timer comes again.
[[nodiscard]] bool operation_may_ask(const Scope& scope, Rank peer, Wanted wanted = Wanted::kFirst);
// It has promised data that it must ask this peer for: its timer runs, though it may be finished.
void operation_owes(const Scope& scope, Rank parent);
// What this peer (its entry) sent could not be taken: it is asked for again soon.
void operation_doubts(const Scope& scope, uint32_t entry);
// Ends with an error, now or as soon as no DMA is under way.
void operation_fail(const Scope& scope, peal_status status, Rank rank);
// Over for the host, with its verdict (OK unless it was refused); the record stays for late NACKs.
// What follows from it (the completion, what may start now) comes at the end of the entry point.
void operation_finish(const Scope& scope);

void on_operation_timer(const Scope& scope);

// Kind of the operation's packets.
inline PacketKind packet_kind(const Operation& operation, uint8_t type) {
  return {operation.pattern, type, operation.pattern.sequence};
}
// Alive, but not yet: what is asked for comes of this rank's own host (which may be late), or of
// others, or of some that are late, as far as is known here; or it was sent, and not all of it can
// be sent again now.
enum class Owed : uint8_t { kByHost, kByOthers, kByTheLate, kAgain };
void send_not_yet(const Scope& scope, const peal_peer_address& to, const peal_wire_header& header,
                  const peal_nack& nack, Owed owed);

}  // namespace peal
