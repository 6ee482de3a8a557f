// SPDX-License-Identifier: BSD-2-Clause
// What must never happen whatever hosts do, for hosts that have no checkers of their own
// (checkers.h): what the cluster itself saw, and DMA that leaves the memory which its card may
// reach.
#pragma once

#include <string>

#include "emulator/cluster/observer.h"

namespace peal::sim {

class Violations final : public Observer {
 public:
  // Hands everything on to another observer, which may be null.
  explicit Violations(Observer* also) : also_(also) {}

  void on_send(TimeNs now_ns, const FrameView& frame) override;
  void on_dma(TimeNs now_ns, const DmaView& dma) override;
  void on_completion(TimeNs now_ns, uint32_t card, uint32_t context,
                     const peal_completion& entry) override;
  void on_violation(TimeNs now_ns, const char* check, const char* text) override;

  // The first few, a line each; "" if there was none.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void add(TimeNs now_ns, const std::string& check, const std::string& text);

  Observer* also_;
  uint32_t count_ = 0;
  std::string text_;
};

}  // namespace peal::sim
