// SPDX-License-Identifier: BSD-2-Clause
// Times in which the tests of questions think.
#pragma once

#include "firmware/timeouts.h"

namespace peal::test {

inline constexpr CardTimeouts kTimeouts = {.nack_ns = 200'000,
                                           .nack_max_ns = 20'000'000,
                                           .probe_interval_ns = 20'000'000,
                                           .dead_ns = 2'000'000'000};

}  // namespace peal::test
