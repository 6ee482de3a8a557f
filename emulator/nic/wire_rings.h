// SPDX-License-Identifier: BSD-2-Clause
// The receiving ends of the wire inside one process: for each card a DPDK ring from each loop of
// cards (nic_loop.h), so that a ring has one producer and one consumer, and no loop waits for
// another that has to give way in the middle of something; and for each loop a bell. Card C belongs
// to loop C modulo their number. Who has put frames into the ring of a card of another loop rings
// that one's bell, which is a system call only where it sleeps.
#pragma once

#include <rte_ring.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "emulator/nic/packet_pool.h"

namespace peal::nic {

class WireRings {
 public:
  static constexpr uint32_t kFrames = 8192;       // on their way to a card, from all loops
  static constexpr uint32_t kFramesLeast = 1024;  // from one of them
  static constexpr uint32_t kLoopsMax = 64;

  explicit WireRings(PacketPool& pool) : pool_(pool) {}
  // Gives back what nobody has received.
  ~WireRings();
  WireRings(const WireRings&) = delete;
  WireRings& operator=(const WireRings&) = delete;

  // Who puts frames into a ring: a loop, or several lcores of transmit engines.
  enum class Producers : uint8_t { kOne, kSeveral };
  // Empty on success.
  std::string create(uint32_t cards, Producers producers, uint32_t loops = 1);
  // What DPDK must be given for that, in bytes.
  static uint64_t memory_bytes(uint32_t cards, uint32_t loops);

  [[nodiscard]] uint32_t cards() const { return static_cast<uint32_t>(rings_.size()) / loops(); }
  [[nodiscard]] uint32_t loops() const { return static_cast<uint32_t>(bells_.size()); }
  // So many as there are loops: of each one's frames to the card.
  [[nodiscard]] rte_ring* const* rings_to(uint32_t card) const { return &rings_[card * loops()]; }
  [[nodiscard]] uint32_t loop_of(uint32_t card) const { return card % loops(); }

  // Readable once somebody has put frames into a ring of that loop while it slept.
  [[nodiscard]] int bell_fd(uint32_t loop) const { return bells_[loop]->descriptor.get(); }
  // That loop's: before it looks at its rings for the last time (true), and when it is awake.
  void set_sleeping(uint32_t loop, bool sleeping) { bells_[loop]->sleeping.store(sleeping); }
  // Anybody's, behind the frames. `loops`: a bit for each.
  void ring_bells(uint64_t loops);

 private:
  struct alignas(64) Bell {
    std::atomic<bool> sleeping{false};
    FileDescriptor descriptor;
  };

  PacketPool& pool_;
  void* memory_ = nullptr;  // of all rings
  std::vector<rte_ring*> rings_;
  std::vector<std::unique_ptr<Bell>> bells_;
};

}  // namespace peal::nic
