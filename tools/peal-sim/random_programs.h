// SPDX-License-Identifier: BSD-2-Clause
// Programs that nobody would write, and what must come out of them. A plan is a list of transfers
// between ranks, each into a place of its own; a transfer may pass on what an earlier one brought.
// Every rank carries out its part in the order of the list, so that none can wait for ever; when it
// waits for what has arrived, and how many puts are under way, is drawn.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/common/random.h"
#include "tools/peal-sim/program_hosts.h"

namespace peal::sim {

class RandomPrograms {
 public:
  explicit RandomPrograms(uint64_t seed);

  [[nodiscard]] uint32_t ranks() const { return ranks_; }
  // Of each rank's two buffers.
  [[nodiscard]] size_t bytes() const { return transfers_.size() * kPlaceBytes; }
  [[nodiscard]] host::Program write(const ProgramHosts::Place& place) const;
  // Nobody's program is empty: then it may not begin again by itself.
  [[nodiscard]] bool everybody_has_a_part() const;
  // Before a start: what rank `rank` has to give, and memory in which nothing of another start is
  // right. A round has bytes of its own.
  void fill(uint32_t rank, uint32_t round, uint8_t* send, uint8_t* receive) const;
  // How many bytes are not what they must be after the starts of that round.
  [[nodiscard]] size_t wrong_bytes(uint32_t rank, uint32_t round, const uint8_t* receive) const;
  // What was drawn, counted.
  struct Counts {
    uint32_t puts = 0;
    uint32_t messages = 0;
    uint32_t signals = 0;
    uint32_t passed_on = 0;
    uint32_t to_itself = 0;
    uint32_t gated = 0;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  static constexpr size_t kPlaceBytes = 12'000;
  static constexpr uint32_t kOwn = ~0u;
  enum class Kind : uint8_t { kPut, kMessage, kSignal };
  struct Transfer {
    Kind kind;
    uint32_t from;
    uint32_t to;
    uint32_t source;  // the transfer whose bytes it passes on, or kOwn
    uint32_t bytes;
    bool waits_at_once;  // its receiver does
    bool gated;          // a put that is held until its receiver is ready
  };
  class Writer;

  [[nodiscard]] uint8_t byte_of(uint32_t transfer, uint32_t round, size_t i) const;

  uint64_t seed_;
  uint32_t ranks_;
  uint32_t window_;
  std::vector<Transfer> transfers_;
  Counts counts_;
};

}  // namespace peal::sim
