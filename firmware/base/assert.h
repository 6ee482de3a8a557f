// SPDX-License-Identifier: BSD-2-Clause
// Assertions are for our own mistakes and stay on in release builds; the card stops rather than go
// on wrong. What comes from the wire, the host or a user is never asserted:
// it is checked and counted.
#pragma once

#define PEAL_ASSERT(condition)       \
  do {                               \
    if (!(condition)) [[unlikely]] { \
      __builtin_trap();              \
    }                                \
  } while (0)
