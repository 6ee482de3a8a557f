// SPDX-License-Identifier: BSD-2-Clause
// All loops of the process. A single one has its pool and its wire to itself. Several share them,
// and have their cards in turn: card C is of loop C modulo their number, and the first's lcore is
// the caller's, the others' those of EAL that follow.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "emulator/nic/nic_loop.h"

namespace peal::nic {

class NicLoops {
 public:
  // WireRings::kLoopsMax at most, and not more than cards.
  explicit NicLoops(uint32_t loops);
  NicLoops(const NicLoops&) = delete;
  NicLoops& operator=(const NicLoops&) = delete;

  // Empty on success.
  std::string create(const LoopOptions& options);
  // Until request_stop(), as NicLoop::run() of each.
  void run();
  // From a signal handler or any thread, at any time.
  void request_stop();
  // After run(); see NicLoop::stop_copies().
  bool stop_copies();

  [[nodiscard]] uint32_t count() const { return static_cast<uint32_t>(loops_.size()); }
  NicLoop& loop(uint32_t index) { return *loops_[index]; }
  [[nodiscard]] const NicLoop& loop(uint32_t index) const { return *loops_[index]; }

  [[nodiscard]] uint32_t card_count() const { return cards_; }
  [[nodiscard]] const CardRunner& runner(uint32_t card) const {
    return loop(card % count()).runner(card / count());
  }
  // What the loops count, as one: of several the sums, and the cards in order.
  [[nodiscard]] nlohmann::ordered_json counters_json() const;

 private:
  uint32_t cards_ = 0;
  // Of several; in the order in which they go, the last one first.
  std::unique_ptr<PacketPool> pool_;
  std::unique_ptr<WireRings> rings_;
  std::vector<std::unique_ptr<NicLoop>> loops_;  // all from the beginning
};

}  // namespace peal::nic
