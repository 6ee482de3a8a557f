// SPDX-License-Identifier: BSD-2-Clause
// The card's point-to-point, as queues use it.
#pragma once

#include "firmware/queue/network.h"

namespace peal::queue {

extern const Network kPointToPoint;

}  // namespace peal::queue
