// SPDX-License-Identifier: BSD-2-Clause
// Host memory that packets carry by its address (Port::dma_read_lent()): until its card takes it
// back, a payload is what the host has there at the moment at which another card writes it. Whoever
// tells its host too early that the memory is its own again sends what the host has written since.
// docs/decisions/0066
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/cluster/packet_pool.h"

namespace peal::sim {

// What one card lends.
class LentPayloads {
 public:
  LentPayloads() = default;
  ~LentPayloads() { take_back_all(); }
  LentPayloads(const LentPayloads&) = delete;
  LentPayloads& operator=(const LentPayloads&) = delete;

  void lend(Payload& payload, const LentBytes& lent);
  // The bytes are in the payloads from here on.
  void take_back(LenderId who);
  void take_back_all();
  // Of one payload that somebody lends.
  static void bring(Payload& payload);
  // Another card has written it.
  static void deliver(Payload& payload);

 private:
  std::vector<Payload*> out_;
};

}  // namespace peal::sim
