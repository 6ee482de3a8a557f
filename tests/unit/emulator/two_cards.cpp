// SPDX-License-Identifier: BSD-2-Clause
#include "tests/unit/emulator/two_cards.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "emulator/common/packet_text.h"
#include "emulator/nic/eal.h"

namespace peal::nic::test {

using emulator::test::make_command;

void start_dpdk() {
  static Eal eal;
  static bool started = false;
  if (started) return;
  started = true;
  EalOptions options;
  options.memory_bytes = uint64_t{64} << 20;
  options.telemetry = false;
  const std::vector<int> cpus = allowed_cpus();
  for (uint32_t i = 0; i < kEngineLcores; i++) options.engine_cpus.push_back(cpus[i % cpus.size()]);
  options.file_prefix = "peal-test-" + std::to_string(getpid());
  ASSERT_EQ(eal.start(options), "");
}

TwoCards::TwoCards(const CopyOptions& copies, Checksums checksums, const SwitchOptions& options)
    : wire(pool, options) {
  start_dpdk();
  EXPECT_EQ(pool.create(2048), "");
  EXPECT_EQ(wire.create(kCards), "");
  for (uint32_t i = 0; i < kCards; i++) {
    cards[i] = std::make_unique<CardRunner>(i, pool, wire, mapped, checksums, default_timeouts(),
                                            1 + i, copies);
    const CardHost host = cards[i]->host();
    hosts[i].serve(*host.regions, *host.windows);
  }
}

peal_status TwoCards::execute(uint32_t card, const peal_admin_command& command, ContextId context) {
  return cards[card]->admin().execute(command, sizeof(command), context, hosts[card], now, &reply);
}

void TwoCards::connect() {
  peal_peer_address addresses[kCards];
  for (uint32_t i = 0; i < kCards; i++) {
    ASSERT_EQ(execute(i, make_command(PEAL_ADMIN_OPEN_CONTEXT), emulator::kNoContext),
              PEAL_STATUS_OK);
    contexts[i] = reply.u.open.context;
    peal_admin_command command = make_command(PEAL_ADMIN_RESERVE_GROUP);
    command.u.reserve.ranks = kCards;
    command.u.reserve.rank = i;
    ASSERT_EQ(execute(i, command, contexts[i]), PEAL_STATUS_OK);
    addresses[i] = reply.u.reserve.address;
    members[i] = addresses[i].member;
  }
  for (uint32_t i = 0; i < kCards; i++) {
    peal_admin_command command = make_command(PEAL_ADMIN_CONNECT_GROUP);
    command.u.connect.member = members[i];
    command.u.connect.group = 7;
    command.u.connect.peer_count = 2;
    command.u.connect.peers[0] = addresses[1 - i];
    command.u.connect.peers[1] = addresses[1 - i];
    ASSERT_EQ(execute(i, command, contexts[i]), PEAL_STATUS_OK);
  }
}

bool TwoCards::quiet() const { return !wire.has_frames(0) && !wire.has_frames(1); }

void TwoCards::turn() {
  wire.set_now(now);
  for (const auto& card : cards) card->serve(now);
  const bool nothing_waits = quiet();
  for (const auto& card : cards) card->run_timers(now, nothing_waits);
}

void TwoCards::post_barrier(uint32_t rank, uint64_t sequence) {
  peal_submission entry = {};
  entry.operation = PEAL_OPERATION_BARRIER;
  entry.algorithm = PEAL_ALGORITHM_DISSEMINATION;
  entry.member = members[rank];
  entry.sequence = sequence;
  ASSERT_TRUE(peal_host_ring_submit(&hosts[rank].ring, &entry));
}

void TwoCards::send_junk(uint32_t card, uint32_t frames) {
  for (uint32_t i = 0; i < frames; i++) {
    Packet* const packet = pool.allocate();
    ASSERT_NE(packet, nullptr);
    std::memset(packet->header, 0, sizeof(*packet->header));
    emulator::card_mac(card, packet->header->destination);
    wire.send(1 - card, packet);
  }
}

}  // namespace peal::nic::test
