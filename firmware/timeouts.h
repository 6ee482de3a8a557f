// SPDX-License-Identifier: BSD-2-Clause
// How patient a card is, and who it is: what its runner decides when it starts.
#pragma once

#include <cstdint>

#include "abi/wire.h"
#include "firmware/port.h"

namespace peal {

struct CardTimeouts {
  TimeNs nack_ns;            // first NACK after this long without progress
  TimeNs nack_max_ns;        // "alive, not yet" doubles the interval up to this
  TimeNs probe_interval_ns;  // between probes of a peer that owes us something
  TimeNs dead_ns;            // silence after which such a peer is dead
  // Point-to-point sends all again that was not acknowledged in time, and takes nothing out of
  // order: for comparison.
  bool go_back_n = false;
};

struct CardIdentity {
  uint8_t mac[PEAL_MAC_BYTES];
  uint32_t incarnation;  // not zero; another one at every start
  uint16_t index;        // within the process; for the device block
};

// The runner's name for whoever is behind a context.
using ClientId = uint32_t;

}  // namespace peal
