// SPDX-License-Identifier: BSD-2-Clause
// Logs: what one step of an alltoallv sends, in the order in which it came together. A log is a
// packet that stays (group/sent_blocks.h), so that it is sent, once or again, without a copy; where
// the card has none for it it lies in the channel, where each block is written for itself. In
// either case nothing of it changes once it is sent, until its operation's record is recycled.
#pragma once

#include "firmware/collective/alltoallv/bruck_blocks.h"
#include "firmware/collective/direct_pair.h"
#include "firmware/operation/algorithm.h"

namespace peal::bruckv {

inline StepLog& log_of(const Scope& scope, uint32_t k) { return direct::steps_of(scope).logs[k]; }

// Begins the next log with the heads of own blocks that go directly, as the table says. False: not
// now.
[[nodiscard]] bool log_begin(const Scope& scope, uint32_t k);
// May a block of so many bytes, its head included, be appended? One that goes to the channel takes
// a DMA record. More than are to come are none that were checked: the operation is refused.
[[nodiscard]] bool log_may_grow(const Scope& scope, uint32_t k, uint32_t bytes);
// A block and its head before it, which lie in this packet.
void log_append(const Scope& scope, uint32_t k, Packet* packet, uint8_t* head);
// The same of a block without a head, of a log that stays.
void log_append_own(const Scope& scope, uint32_t k, uint32_t way, const uint8_t* block,
                    uint32_t bytes);
// A write into it (kLogWritten) is done.
void log_written(const Scope& scope, uint32_t k);
// Sends it the first time. False: not now.
[[nodiscard]] bool log_send(const Scope& scope, uint32_t k);
// And again. False: not now.
[[nodiscard]] bool log_repair(const Scope& scope, uint32_t k);

// Where the channel has what has come in a step before it could go on.
HostAddress arrival_address(const Scope& scope, uint32_t k);

}  // namespace peal::bruckv
