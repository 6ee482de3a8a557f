// SPDX-License-Identifier: BSD-2-Clause
// The loop's clock: nanoseconds since start from the processor's time-stamp counter, 10 ns a
// reading. Needs an initialised EAL, which has measured the counter's frequency.
#pragma once

#include <rte_cycles.h>

#include <cstdint>

#include "firmware/port.h"

namespace peal::nic {

class TscClock {
 public:
  TscClock()
      : start_(rte_get_tsc_cycles()),
        ns_per_tick_(
            static_cast<uint64_t>(1e9 * 4294967296.0 / static_cast<double>(rte_get_tsc_hz()))) {}

  // Starts at 1, because 0 means "never happened" here and there.
  [[nodiscard]] TimeNs now() const {
    __extension__ using Wide = unsigned __int128;
    const uint64_t ticks = rte_get_tsc_cycles() - start_;
    return 1 + static_cast<uint64_t>((static_cast<Wide>(ticks) * ns_per_tick_) >> 32);
  }

 private:
  uint64_t start_;
  uint64_t ns_per_tick_;  // times 2^32
};

}  // namespace peal::nic
