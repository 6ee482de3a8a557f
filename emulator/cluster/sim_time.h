// SPDX-License-Identifier: BSD-2-Clause
// Virtual time: nanoseconds since the cluster was built. No clock of the machine is ever read in
// here, so a run depends on its seed alone.
#pragma once

#include <cstdint>

namespace peal::sim {

using TimeNs = uint64_t;
inline constexpr TimeNs kNever = ~TimeNs{0};
inline constexpr TimeNs kMicrosecond = 1'000;
inline constexpr TimeNs kMillisecond = 1'000'000;
inline constexpr TimeNs kSecond = 1'000'000'000;

}  // namespace peal::sim
