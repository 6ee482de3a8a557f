// SPDX-License-Identifier: BSD-2-Clause
// When a loop that shares its processor with ranks lets them have it: at once when a host was told
// of an end, which it can go on from. Else what the loop waits for is perhaps about to come from
// other loops' cards, and every rank that is let run in between finds nothing: so it looks on for a
// moment. By times and counts that it is told alone. docs/decisions/0068
#pragma once

#include <algorithm>
#include <cstdint>

#include "firmware/port.h"

namespace peal::nic {

class GiveWay {
 public:
  // A few ranks that find nothing take as long; 10 and 20 us were no better.
  static constexpr TimeNs kLookOnNs = 3'000;

  // Looks on for that long in all, from one time that it gives way to the next; 0: not at all.
  void set_look_on(TimeNs look_on_ns) { left_ns_ = look_on_ns_ = look_on_ns; }

  // A turn that did something, begun at `now`.
  void worked(TimeNs now) {
    look(now);
    looking_on_ = false;
  }
  // One that did not; `ends`: of how many ends hosts were ever told. True: give way now.
  bool found_nothing(TimeNs now, uint64_t ends) {
    look(now);
    looking_on_ = ends == ends_ && left_ns_ > 0;
    if (!looking_on_) left_ns_ = look_on_ns_;
    ends_ = ends;
    return !looking_on_;
  }

 private:
  // What has passed since the last turn was a look if that one found nothing.
  void look(TimeNs now) {
    if (looking_on_) left_ns_ -= std::min(left_ns_, now - looked_ns_);
    looked_ns_ = now;
  }

  TimeNs look_on_ns_ = 0;
  TimeNs left_ns_ = 0;
  TimeNs looked_ns_ = 0;  // when the last turn began
  uint64_t ends_ = 0;     // when it last found nothing
  bool looking_on_ = false;
};

}  // namespace peal::nic
