// SPDX-License-Identifier: BSD-2-Clause
// What a server's patience is measured by, in milliseconds: a parameter, since a test that makes up
// the time neither waits for it nor runs out of it.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>

namespace peal {

using ClockMs = std::function<uint64_t()>;

inline uint64_t monotonic_ms() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
}

}  // namespace peal
