// SPDX-License-Identifier: BSD-2-Clause
// What must never happen whatever hosts do, for hosts that have no checkers of their own
// (checkers.h): what the cluster itself saw, and DMA that leaves the memory which its card may
// reach.
#pragma once

#include "emulator/cluster/findings.h"
#include "emulator/cluster/observer.h"

namespace peal::sim {

class Violations final : public Observer {
 public:
  // Hands everything on to another observer, which may be null.
  Violations(Findings& findings, Observer* also) : findings_(findings), also_(also) {}

  void on_send(TimeNs now_ns, const FrameView& frame) override;
  void on_dma(TimeNs now_ns, const DmaView& dma) override;
  void on_completion(TimeNs now_ns, uint32_t card, uint32_t context,
                     const peal_completion& entry) override;
  void on_violation(TimeNs now_ns, const char* check, const char* text) override;

 private:
  Findings& findings_;
  Observer* also_;
};

}  // namespace peal::sim
