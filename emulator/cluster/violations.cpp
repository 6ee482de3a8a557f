// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/violations.h"

namespace peal::sim {

void Violations::on_send(TimeNs now_ns, const FrameView& frame) {
  if (also_ != nullptr) also_->on_send(now_ns, frame);
}

void Violations::on_dma(TimeNs now_ns, const DmaView& dma) {
  if (!dma.held) findings_.add(now_ns, unheld_check(dma), unheld_text(dma));
  if (also_ != nullptr) also_->on_dma(now_ns, dma);
}

void Violations::on_completion(TimeNs now_ns, uint32_t card, uint32_t context,
                               const peal_completion& entry) {
  if (also_ != nullptr) also_->on_completion(now_ns, card, context, entry);
}

void Violations::on_violation(TimeNs now_ns, const char* check, const char* text) {
  findings_.add(now_ns, check, text);
  if (also_ != nullptr) also_->on_violation(now_ns, check, text);
}

}  // namespace peal::sim
