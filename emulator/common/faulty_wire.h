// SPDX-License-Identifier: BSD-2-Clause
// A bad wire before a good one: carries out what the fault injector judges. What is lost never gets
// there; what is delayed or reordered gets there with a later time of arrival; what is repeated or
// damaged is another packet, because cards that forward share payloads.
#pragma once

#include <cstdint>

#include "emulator/common/fault_injector.h"
#include "emulator/common/wire.h"

namespace peal::emulator {

class FaultyWire final : public Wire {
 public:
  // The plan must have no problem(). `good` outlives this one.
  FaultyWire(Wire& good, FaultPlan plan, uint64_t seed)
      : good_(good), injector_(std::move(plan), seed) {}

  void carry(const Frame& frame) override;
  Packet* share(Packet* packet) override { return good_.share(packet); }
  Packet* copy(Packet* packet) override { return good_.copy(packet); }
  void release(Packet* packet) override { good_.release(packet); }

  // No faults any more, from now on.
  void heal() { injector_.heal(); }

  [[nodiscard]] const FaultInjector& injector() const { return injector_; }
  // Frames to be repeated or damaged that were not, because there was no packet for it.
  [[nodiscard]] uint64_t no_copy() const { return no_copy_; }

 private:
  void carry_copy(Frame frame, const FrameCopy& copy);
  Packet* repeat(Packet* packet);
  Packet* damage(Packet* packet, uint32_t bit);

  Wire& good_;
  FaultInjector injector_;
  uint64_t no_copy_ = 0;
};

}  // namespace peal::emulator
