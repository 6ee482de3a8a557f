// SPDX-License-Identifier: BSD-2-Clause
// The record of one operation, from whatever makes it (a post, a packet, a NACK) to its recycling.
// Opens, posts, parks, times, ends; what happens in between is the algorithm's (broadcast_all,
// doubling, dissemination).
#pragma once

#include "firmware/card_types.h"
#include "firmware/wire/transmit.h"

namespace peal {

// A checked command: runs it, parks it, or refuses it. Takes the uses of its keys.
peal_status accept_command(Card& card, Member& member, Command& command);
// Parked commands that may start now. May end operations, and with a destroy the member.
void start_parked(Card& card, Member& member);
// Completion to the host for a command that was accepted.
void complete_command(Card& card, const Command& command, peal_status status, Rank rank);

// The operation a packet belongs to; if there is none and `open` says so, an early record. Null and
// *why when there is none, or the sequence is not one that may run now.
Operation* find_operation(Card& card, Member& member, const peal_wire_header& header, bool open,
                          peal_counter* why);

// Goes on as far as it can: sends, delivers, completes. The operation may be finished, and the
// member gone, afterwards.
void operation_advance(const Scope& scope);
// Something arrived: the NACK timer starts anew.
void operation_progressed(const Scope& scope);
// A pool was empty: try again soon.
void operation_starved(const Scope& scope);
// May it ask one question now? Counted when not; its timer comes again.
[[nodiscard]] bool operation_may_ask(const Scope& scope);
// It has promised data that it must ask for itself: its timer runs, though it may be finished.
void operation_owes(const Scope& scope);
// Ends with an error, now or as soon as no DMA is under way.
void operation_fail(const Scope& scope, peal_status status, Rank rank);
void operation_end_if_refused(const Scope& scope);
// Completes to the host; the record stays for late NACKs.
void operation_finish(const Scope& scope, peal_status status, Rank rank);
// The record and its place are free for sequence + K.
void operation_recycle(Card& card, Operation& operation);

void on_operation_timer(Card& card, Member& member, Operation& operation);

inline bool is_posted(const Operation& operation) {
  return operation.phase == OperationPhase::kRunning;
}

}  // namespace peal
