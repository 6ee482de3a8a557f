// SPDX-License-Identifier: BSD-2-Clause
// When a loop that shares its processor with ranks lets them have it: at once when a host was told
// of an end, which it can go on from. Else what the loop waits for is perhaps about to come from
// other loops' cards, and every rank that is let run in between finds nothing: so it looks on for a
// moment. A pure function of what it is told. docs/decisions/0068
#pragma once

#include <cstdint>

#include "firmware/port.h"

namespace peal::nic {

class GiveWay {
 public:
  // Shorter than what the ranks of a processor take to find nothing, one after the other.
  static constexpr TimeNs kLookOnNs = 3'000;

  // Looks on for that long; 0: never.
  void set_look_on(TimeNs look_on_ns) { look_on_ns_ = look_on_ns; }

  // A turn that did something.
  void worked() { looking_on_ = false; }
  // One that did not, begun at `now`; `told` counts the ends that hosts were ever told of. True:
  // give way now.
  bool found_nothing(TimeNs now, uint64_t told) {
    if (!looking_on_) since_ns_ = now;
    looking_on_ = told == told_ && now - since_ns_ < look_on_ns_;
    told_ = told;
    return !looking_on_;
  }

 private:
  TimeNs look_on_ns_ = 0;
  TimeNs since_ns_ = 0;
  uint64_t told_ = 0;  // when it last found nothing
  bool looking_on_ = false;
};

}  // namespace peal::nic
