// SPDX-License-Identifier: BSD-2-Clause
// What a card's transmit engines have to send: a queue each, and one frame of each in turn, so that
// one that has much does not stand before another's first. Emptied in every turn of the card. Where
// engines have lcores (engine_lcores.h) those keep them apart.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "firmware/port.h"

namespace peal::nic {

class EngineQueues {
 public:
  explicit EngineQueues(uint32_t engines) : queues_(engines) {}

  void push(uint32_t engine, Packet* packet) {
    queues_[engine].push_back(packet);
    waiting_ = true;
  }
  // Hands everything to `send`, which takes the packets over.
  template <typename Send>
  void drain(Send&& send) {
    if (!waiting_) return;
    waiting_ = false;
    size_t longest = 0;
    for (const auto& queue : queues_) longest = std::max(longest, queue.size());
    for (size_t place = 0; place < longest; place++) {
      for (const auto& queue : queues_) {
        if (place < queue.size()) send(queue[place]);
      }
    }
    for (auto& queue : queues_) queue.clear();
  }

 private:
  std::vector<std::vector<Packet*>> queues_;
  bool waiting_ = false;
};

}  // namespace peal::nic
