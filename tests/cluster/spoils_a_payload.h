// SPDX-License-Identifier: BSD-2-Clause
// Writes to the first payload that a card sends, when it has been sent: what no card may do.
#pragma once

#include "emulator/cluster/observer.h"

namespace peal::sim {

class SpoilsAPayload final : public Observer {
 public:
  void on_send(TimeNs, const FrameView& frame) override {
    if (done_ || frame.payload_bytes == 0) return;
    const_cast<uint8_t*>(frame.payload)[0] ^= 1;
    done_ = true;
  }

 private:
  bool done_ = false;
};

}  // namespace peal::sim
