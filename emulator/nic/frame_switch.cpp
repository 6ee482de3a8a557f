// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/frame_switch.h"

namespace peal::nic {

FrameSwitch::FrameSwitch(PacketPool& pool, const SwitchOptions& options)
    : rings_(pool),
      engine_lcores_(options.engine_lcores),
      faulty_(rings_, options.faults, options.seed),
      trace_(options.trace),
      special_(faulty_.injector().active() || trace_ != nullptr) {}

std::string FrameSwitch::create(uint32_t cards) {
  return rings_.create(cards, held(), engine_lcores_);
}

void FrameSwitch::join(WireRings& rings, uint32_t loop) { rings_.join(rings, loop, held()); }

void FrameSwitch::send_specially(uint32_t from_card, uint32_t to_card, Packet* packet,
                                 uint32_t engine) {
  if (trace_ != nullptr) {
    const std::string line = emulator::packet_text(*packet->header, to_card) + '\n';
    std::fwrite(line.data(), 1, line.size(), trace_);
  }
  faulty_.carry({packet, from_card, to_card, rings_.now(), rings_.now(), engine});
}

}  // namespace peal::nic
