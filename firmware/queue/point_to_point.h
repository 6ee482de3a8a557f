// SPDX-License-Identifier: BSD-2-Clause
// The card's point-to-point, as queues use it.
#pragma once

#include "firmware/queue/network.h"

namespace peal::queue {

Network& point_to_point();

// That of a request which queues asked it for.
inline Ticket ticket_of(const p2p::Ticket& ticket) {
  return {.queue = ticket.queue, .task = static_cast<uint16_t>(ticket.descriptor)};
}

}  // namespace peal::queue
