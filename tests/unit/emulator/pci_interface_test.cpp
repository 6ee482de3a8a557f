// SPDX-License-Identifier: BSD-2-Clause
// Guests come and go: what one finds, what is let go when it goes, resets, and what there is not
// enough of.
#include "emulator/nic/pci/pci_interface.h"

#include "tests/unit/emulator/pci_guest.h"

namespace peal::nic {
namespace {

using test::PciGuest;
using PciInterfaceTest = test::PciTest;

TEST_F(PciInterfaceTest, AGuestFindsItsCard) {
  EXPECT_FALSE(turn()) << "nobody is there";
  const auto guest = join();
  const peal_pci_card_page& page = guest->card();
  EXPECT_EQ(page.magic, PEAL_PCI_MAGIC);
  EXPECT_EQ(page.abi_version, static_cast<uint32_t>(PEAL_ABI_VERSION));
  EXPECT_EQ(page.context_count, emulator::kContexts);
  EXPECT_EQ(page.window_bytes, emulator::kWindowBytes);
  EXPECT_EQ(page.windows_offset, uint64_t{PEAL_PCI_WINDOWS});
  EXPECT_EQ(page.device.card_index, 3u);
  EXPECT_EQ(page.device.incarnation, 17u);
  EXPECT_EQ(page.device.capabilities, PEAL_CAPABILITY_PAGE_LISTS);
  EXPECT_EQ(page.device.ring_entries, emulator::kRingEntries);
  EXPECT_FALSE(turn()) << "there is nothing to do";
  EXPECT_EQ(counted(), "guests 1 ");
}

TEST_F(PciInterfaceTest, TheHeartbeatIsSeen) {
  pci->beat(1, 250'000);  // before anybody is there
  const auto guest = join();
  EXPECT_EQ(guest->card().heartbeat.heartbeat_interval_us, 250'000u);
  pci->beat(7, 250'000);
  EXPECT_EQ(guest->card().heartbeat.beats, 7u);
}

TEST_F(PciInterfaceTest, ASecondGuestIsTurnedAway) {
  const auto guest = join();
  PciGuest second(socket_path);
  EXPECT_FALSE(turn());
  EXPECT_TRUE(second.ends());
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_OPEN_CONTEXT), "OK admin");
  EXPECT_EQ(counted(), "guests 1 guests_turned_away 1 commands 1 ");
}

// The next one finds a card of its own, with nothing of the first in it.
TEST_F(PciInterfaceTest, WhatAGuestLeavesIsLetGo) {
  auto guest = join();
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_OPEN_CONTEXT), "OK admin");
  EXPECT_EQ(loop.lone.admin().open_contexts(), 1u);
  guest->hang_up();
  EXPECT_TRUE(turn());
  EXPECT_FALSE(turn());
  EXPECT_EQ(loop.lone.admin().open_contexts() + loop.lone.admin().closing_contexts(), 0u);
  EXPECT_EQ(loop.left(), "1 watched, 0 wake slots") << "the socket is";
  const auto next = join();
  EXPECT_EQ(next->card().reply_serial, 0u);
  EXPECT_EQ(ask(*next, PEAL_ADMIN_OPEN_CONTEXT), "OK admin");
  EXPECT_EQ(next->card().reply.u.open.context, 0u);
  EXPECT_EQ(counted(), "guests 2 guests_gone 1 commands 2 ");
}

// Each epoch once, whatever it is; a command that the reset overtakes is never answered.
TEST_F(PciInterfaceTest, AResetLetsGoAndIsAcknowledged) {
  const auto guest = join();
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_OPEN_CONTEXT), "OK admin");
  loop.rung.clear();
  guest->host().command_serial++;
  __atomic_store_n(&guest->host().reset_epoch, 5u, __ATOMIC_RELEASE);
  EXPECT_TRUE(turn());
  EXPECT_TRUE(turn());
  EXPECT_EQ(guest->card().reset_epoch, 5u);
  EXPECT_EQ(guest->card().reply_serial, 2u);
  EXPECT_EQ(loop.rung, " admin");
  EXPECT_EQ(loop.lone.admin().open_contexts(), 0u);
  EXPECT_FALSE(turn());
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_OPEN_CONTEXT), "OK admin");
  EXPECT_EQ(guest->card().reply.u.open.context, 0u);
  EXPECT_EQ(counted(), "guests 1 resets 1 commands 2 ");
}

// A reset during a reset: the last one is acknowledged.
TEST_F(PciInterfaceTest, ResetsOneAfterTheOther) {
  const auto guest = join();
  for (uint32_t epoch = 1; epoch <= 3; epoch++) {
    __atomic_store_n(&guest->host().reset_epoch, epoch, __ATOMIC_RELEASE);
    turn();
    turn();
    EXPECT_EQ(guest->card().reset_epoch, epoch);
  }
  EXPECT_EQ(counted(), "guests 1 resets 3 ");
}

// Descriptors to watch, or wake slots, are used up: the guest is sent away, nothing stays behind,
// and the next one is welcome when there are some again.
TEST_F(PciInterfaceTest, WithoutRoomAGuestIsSentAway) {
  for (uint32_t room = 0; room <= PEAL_PCI_VECTORS; room++) {
    loop.watches_left = room;
    PciGuest guest(socket_path);
    EXPECT_TRUE(turn());
    EXPECT_TRUE(guest.greeting().ends_with("end")) << room;
    EXPECT_EQ(loop.left(), "1 watched, 0 wake slots") << room;
  }
  loop.watches_left = 1000;
  loop.wake_slots_left = 1;
  PciGuest guest(socket_path);
  EXPECT_TRUE(turn());
  EXPECT_EQ(guest.greeting(), "end");
  EXPECT_EQ(loop.left(), "1 watched, 0 wake slots");
  EXPECT_EQ(counted(), "greetings_failed 4 ");
  loop.wake_slots_left = 100;
  join();
}

TEST_F(PciInterfaceTest, ShutDownWithAGuest) {
  const auto guest = join();
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_OPEN_CONTEXT), "OK admin");
  pci->shut_down(loop.lone.now);
  EXPECT_EQ(guest->greeting(), "end");
  EXPECT_EQ(loop.lone.admin().open_contexts(), 0u);
}

}  // namespace
}  // namespace peal::nic
