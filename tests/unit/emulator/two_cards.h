// SPDX-License-Identifier: BSD-2-Clause
// Two cards of peal-nic on their wire, with a host each and a group of both: everything but the
// loop. The test is the clock.
#pragma once

#include <memory>
#include <string>

#include "abi/ring.h"
#include "emulator/nic/card_runner.h"
#include "emulator/nic/frame_switch.h"
#include "emulator/nic/packet_pool.h"
#include "tests/unit/emulator/lone_card.h"

namespace peal::nic::test {

// Lcores besides the tests' own, idle until somebody launches something on them.
inline constexpr uint32_t kEngineLcores = 2;

// DPDK's environment, started once for all tests of the program.
void start_dpdk();

class TwoCards {
 public:
  static constexpr uint32_t kCards = 2;

  // Copies of process memory need a pool, and a host that registers some.
  explicit TwoCards(const CopyOptions& copies = {}, Checksums checksums = Checksums::kSkipped,
                    const SwitchOptions& options = {});
  // Opens a context on each card and connects the group.
  void connect();
  // One turn, as the loop has it.
  void turn();
  void post_barrier(uint32_t rank, uint64_t sequence);
  // Frames that the card drops, put into its queue.
  void send_junk(uint32_t card, uint32_t frames);
  [[nodiscard]] bool quiet() const;
  peal_status execute(uint32_t card, const peal_admin_command& command, ContextId context);

  TimeNs now = 1'000'000;
  PacketPool pool;
  FrameSwitch wire;
  emulator::HostCopies mapped{0};
  emulator::test::TestProvider hosts[kCards];  // whose memory outlives the cards
  std::unique_ptr<CardRunner> cards[kCards];
  ContextId contexts[kCards] = {};
  uint32_t members[kCards] = {};
  peal_admin_reply reply{};
};

}  // namespace peal::nic::test
