// SPDX-License-Identifier: BSD-2-Clause
// A link that is cut in one direction: what one card sends to one other does not arrive meanwhile.
// Two of them part a pair; one alone is a card that hears and is not heard.
#pragma once

#include <cstdint>

#include "emulator/cluster/sim_time.h"

namespace peal::sim {

struct WireCut {
  uint32_t from_card = 0;
  uint32_t to_card = 0;
  TimeNs from_ns = 0;
  TimeNs until_ns = kNever;  // kNever: for good
};

}  // namespace peal::sim
