// SPDX-License-Identifier: BSD-2-Clause
// refused for: clock_gettime
#include <ctime>
long look_at_the_clock() {
  timespec now;
  return clock_gettime(CLOCK_MONOTONIC, &now) == 0 ? now.tv_nsec : 0;
}
