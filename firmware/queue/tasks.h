// SPDX-License-Identifier: BSD-2-Clause
// Descriptors that are carried out by messages: put, send, receive and remote signal. So many of a
// queue are under way at once as it has records for.
#pragma once

#include "firmware/queue/network.h"

namespace peal::queue {

// How issuing a descriptor went.
enum class Issued : uint8_t {
  kYes,
  kWaits,   // until something of the queue's is over
  kAgain,   // there is no record for it now, and nothing of this queue's says when
  kFailed,  // noted as the start's failure
};

// May the member talk to the rank that the descriptor names? False: noted as the start's failure.
[[nodiscard]] bool reaches(const Scope& scope, const peal_descriptor& descriptor);
// Own memory that the descriptor names, as the keys are now. False: noted as the start's failure.
[[nodiscard]] bool check_memory(const Scope& scope, const peal_descriptor& descriptor,
                                HostAddress* address);
[[nodiscard]] Issued issue_task(const Scope& scope, const peal_descriptor& descriptor);
// A task is over; `rank` where the status names one, else PEAL_NO_RANK: then the start names the
// rank that the task was for.
void task_over(Card& card, const Ticket& ticket, peal_status status, uint32_t rank);

}  // namespace peal::queue
