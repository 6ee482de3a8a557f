// SPDX-License-Identifier: BSD-2-Clause
// Transmit engines on polling cores of their own. What the cards send by an engine goes into that
// engine's ring; its lcore takes one frame of each of its engines in turn and puts it into the ring
// of the receiver. So engines send side by side, and beside the loop that runs the firmware.
//
// Reference counts of packets are plain numbers (packet_pool.h), so what finds no room at its
// receiver comes back to the loop, which alone gives packets back.
#pragma once

#include <rte_ring.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/nic/packet_pool.h"

namespace peal::nic {

class EngineLcores {
 public:
  explicit EngineLcores(PacketPool& pool) : pool_(pool) {}
  // Waits for the lcores. What is still under way is given back, or lies in the receivers' rings.
  ~EngineLcores();
  EngineLcores(const EngineLcores&) = delete;
  EngineLcores& operator=(const EngineLcores&) = delete;

  // Engine E is served by lcore 1 + E modulo `lcores`; EAL has these lcores, and they are idle.
  // `receivers`: a ring for each card, into which any thread may put frames. They outlive this.
  // Empty on success.
  std::string start(uint32_t engines, uint32_t lcores, const std::vector<rte_ring*>& receivers);

  // The loop's: hands a frame over. False: the engine's ring is full, and the packet the caller's.
  bool push(uint32_t engine, uint32_t to_card, Packet* packet);
  // The loop's, every turn: gives back what found no room. How many frames that were.
  uint32_t collect();
  // Frames that are with the lcores yet. When there are none, all lie with their receivers, or
  // collect() has them.
  [[nodiscard]] uint64_t under_way() const;
  // The loop's, while nothing is under way: the lcores sleep in the kernel, or poll again.
  void pause();
  void resume();

  // Frames that each lcore has carried. From any thread.
  [[nodiscard]] std::vector<uint64_t> carried() const;

 private:
  struct alignas(64) Worker {
    EngineLcores* all = nullptr;
    std::vector<rte_ring*> engines;
    std::atomic<uint64_t> carried{0};
  };
  static int serve(void* worker);
  bool carry_one(Worker& worker, rte_ring* engine);

  PacketPool& pool_;
  std::vector<rte_ring*> engines_;
  std::vector<rte_ring*> receivers_;
  rte_ring* returned_ = nullptr;
  std::vector<std::unique_ptr<Worker>> workers_;
  uint64_t pushed_ = 0;
  alignas(64) std::atomic<bool> awake_{true};
  std::atomic<bool> stopping_{false};
};

}  // namespace peal::nic
