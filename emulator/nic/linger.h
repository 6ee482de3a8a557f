// SPDX-License-Identifier: BSD-2-Clause
// How long a loop with a processor of its own stays awake for a host that it told of an end: who
// computes meanwhile and comes back then need not wake it, which takes the host's processor as long
// as a short operation does. Not where others use the loop's processor, which shows in a turn that
// begins long after one that had nothing to do: they would be waited for by everybody. By times and
// counts that it is told alone. docs/decisions/0086
#pragma once

#include <cstdint>

#include "firmware/port.h"

namespace peal::nic {

class Linger {
 public:
  // As a program computes between two operations of 256 KiB, say, among eight ranks.
  static constexpr TimeNs kDefaultNs = 10'000'000;
  // No turn that finds nothing takes so long; a slice of somebody else's does.
  static constexpr TimeNs kLostNs = 500'000;
  // For how long that is believed.
  static constexpr TimeNs kSharedNs = 1'000'000'000;

  // Stays awake for that long after each end; 0: not at all.
  void set(TimeNs linger_ns) { linger_ns_ = linger_ns; }

  // A turn that did something, begun at `now`.
  void worked(TimeNs now) {
    look(now);
    looking_ = false;
  }
  void slept() { looking_ = false; }
  // A turn that did not; `ends`: of how many ends hosts were ever told. True: stay awake.
  bool found_nothing(TimeNs now, uint64_t ends) {
    look(now);
    looking_ = true;
    looked_ns_ = now;
    if (ends != ends_ && now >= shared_until_ns_) until_ns_ = now + linger_ns_;
    ends_ = ends;
    return now < until_ns_;
  }

  // How many turns were long in coming.
  [[nodiscard]] uint64_t lost() const { return lost_; }

 private:
  // Nobody else has the processor between a turn that finds nothing and the next.
  void look(TimeNs now) {
    if (!looking_ || now - looked_ns_ <= kLostNs) return;
    shared_until_ns_ = now + kSharedNs;
    until_ns_ = now;
    lost_++;
  }

  TimeNs linger_ns_ = 0;
  TimeNs until_ns_ = 0;
  TimeNs shared_until_ns_ = 0;
  TimeNs looked_ns_ = 0;  // when the last turn began, if it found nothing
  uint64_t ends_ = 0;     // when it last found nothing
  uint64_t lost_ = 0;
  bool looking_ = false;
};

}  // namespace peal::nic
