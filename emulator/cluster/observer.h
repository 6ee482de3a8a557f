// SPDX-License-Identifier: BSD-2-Clause
// What the checkers get to see of a run: frames as abi/wire.h has them, accesses to host memory,
// completions. Nothing of the firmware is in here, so that a mistake of the firmware cannot hide in
// a check that shares its code.
#pragma once

#include <cstdint>
#include <string>

#include "abi/queue.h"
#include "abi/wire.h"
#include "emulator/cluster/sim_time.h"

namespace peal::sim {

struct FrameView {
  uint32_t from_card;
  uint32_t to_card;  // by the destination address when it was sent
  const peal_wire_header* header;
  const uint8_t* payload;
  uint32_t payload_bytes;
};

struct DmaView {
  uint32_t card;
  uint32_t region;  // meaningless unless held
  uint64_t offset;
  uint32_t bytes;
  bool write;     // to host memory
  bool finished;  // false when the card starts it, true when the bytes have just moved
  bool held;      // the card's table of regions has these bytes
};

// Of one that is not held: the name of the check that fails, and in words.
inline const char* unheld_check(const DmaView& dma) { return dma.finished ? "quiet" : "isolation"; }
inline std::string unheld_text(const DmaView& dma) {
  return "card " + std::to_string(dma.card) +
         (dma.finished ? ": a DMA ends in memory that it had given back"
                       : ": a DMA leaves the memory that it may reach");
}

class Observer {
 public:
  virtual ~Observer() = default;
  // A card sends a frame; faults come later.
  virtual void on_send(TimeNs, const FrameView&) {}
  // A DMA starts or has moved its bytes.
  virtual void on_dma(TimeNs, const DmaView&) {}
  // The card writes a completion; the host may use its buffers from here on.
  virtual void on_completion(TimeNs, uint32_t /*card*/, uint32_t /*context*/,
                             const peal_completion&) {}
  // Something that the cluster itself saw and that must never happen, by the name of the check.
  virtual void on_violation(TimeNs, const char* /*check*/, const char* /*text*/) {}
};

}  // namespace peal::sim
