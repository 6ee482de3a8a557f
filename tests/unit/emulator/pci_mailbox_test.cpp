// SPDX-License-Identifier: BSD-2-Clause
// The mailbox of the PCI card: commands in order, twice, malformed and too many; windows that stand
// for contexts; channels, which the driver gets back by name.
#include "firmware/channels.h"
#include "tests/unit/emulator/pci_guest.h"

namespace peal::nic {
namespace {

using emulator::test::make_command;
using test::PciGuest;

class PciMailboxTest : public test::PciTest {
 protected:
  static constexpr uint64_t kListAt = 4096;
  static constexpr uint64_t kPagesAt = uint64_t{1} << 20;

  PciMailboxTest() {
    EXPECT_EQ(ask(*guest, PEAL_ADMIN_OPEN_CONTEXT), "OK admin");
    for (uint64_t page = 0; page < kChannelsBytes / 4096; page++) {
      const uint64_t address = kPagesAt + page * 4096;
      std::memcpy(ram + kListAt + page * sizeof(address), &address, sizeof(address));
    }
  }
  std::string ask(const peal_admin_command& command) { return PciTest::ask(*guest, command); }
  using PciTest::ask;
  [[nodiscard]] const peal_admin_reply& reply() const { return guest->card().reply; }
  static peal_admin_command registration(uint64_t list_at, uint64_t bytes) {
    peal_admin_command command = make_command(PEAL_ADMIN_REGISTER_MEMORY);
    command.u.register_memory.kind = PEAL_MEMORY_PAGES;
    command.u.register_memory.access = PEAL_ACCESS_READ;
    command.u.register_memory.address = list_at;
    command.u.register_memory.bytes = bytes;
    command.u.register_memory.page_shift = 12;
    return command;
  }
  static peal_admin_command reservation(uint64_t list_at = kListAt,
                                        uint64_t bytes = kChannelsBytes) {
    peal_admin_command command = make_command(PEAL_ADMIN_RESERVE_GROUP);
    command.u.reserve.ranks = 1;
    command.u.reserve.channel_pages = list_at;
    command.u.reserve.channel_list_bytes = bytes;
    return command;
  }
  // Reserves a member and gives it back.
  void use_channels() {
    ASSERT_EQ(ask(reservation()), "OK admin");
    peal_admin_command command = make_command(PEAL_ADMIN_ABANDON_GROUP);
    command.u.abandon.member = reply().u.reserve.address.member;
    ASSERT_EQ(ask(command), "OK admin");
  }

  std::unique_ptr<PciGuest> guest = join();
};

TEST_F(PciMailboxTest, WindowsAreGivenInOrderAndOnlyOnce) {
  EXPECT_EQ(reply().u.open.context, 0u);
  EXPECT_EQ(reply().u.open.window_offset, uint64_t{PEAL_PCI_WINDOWS});
  for (uint32_t window = 1; window < emulator::kContexts; window++) {
    ASSERT_EQ(ask(*guest, PEAL_ADMIN_OPEN_CONTEXT), "OK admin") << window;
    EXPECT_EQ(reply().u.open.context, window);
    EXPECT_EQ(reply().u.open.window_offset,
              PEAL_PCI_WINDOWS + uint64_t{window} * emulator::kWindowBytes);
  }
  EXPECT_NE(ask(*guest, PEAL_ADMIN_OPEN_CONTEXT), "OK admin") << "there are no more";
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_CLOSE_CONTEXT, 1), "OK admin");
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_OPEN_CONTEXT), "OK admin");
  EXPECT_EQ(reply().u.open.context, 1u);
}

// The serial says that there is a command; the same one again is none.
TEST_F(PciMailboxTest, ACommandIsCarriedOutOnce) {
  guest->host().command = make_command(PEAL_ADMIN_CLOSE_CONTEXT);
  EXPECT_FALSE(turn());
  EXPECT_EQ(loop.lone.admin().open_contexts(), 1u);
  EXPECT_EQ(counted(), "guests 1 commands 1 ");
}

TEST_F(PciMailboxTest, MalformedCommandsAreRefusedByName) {
  peal_admin_command command = make_command(PEAL_ADMIN_READ_COUNTERS);
  command.version++;
  EXPECT_EQ(ask(command), "BAD_VERSION admin");
  command = make_command(PEAL_ADMIN_READ_COUNTERS);
  command.bytes--;
  EXPECT_EQ(ask(command), "BAD_VERSION admin");
  command = make_command(PEAL_ADMIN_READ_COUNTERS);
  command.opcode = 99;
  EXPECT_EQ(ask(command), "BAD_OPCODE admin");
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_OPEN_CONTEXT, 1), "BAD_FLAGS admin");
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_READ_COUNTERS, 1), "CLOSED admin") << "nobody opened it";
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_READ_COUNTERS, ~0u), "CLOSED admin");
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_READ_COUNTERS), "OK admin") << "and a good one is not";
  EXPECT_EQ(counted(), "guests 1 commands 8 commands_refused 6 ");
}

// The driver still has it mapped: nobody else gets the window before the driver has closed it.
TEST_F(PciMailboxTest, AWindowThatEndsStaysItsOwners) {
  auto& window =
      *reinterpret_cast<peal_host_page*>(guest->at(PEAL_PCI_WINDOWS + PEAL_WINDOW_HOST_PAGE));
  __atomic_store_n(&window.indices.submission_tail, uint64_t{1} << 40, __ATOMIC_RELEASE);
  loop.lone.run();
  EXPECT_EQ(loop.lone.admin().open_contexts(), 0u);
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_READ_COUNTERS), "CLOSED admin");
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_OPEN_CONTEXT), "OK admin");
  EXPECT_EQ(reply().u.open.context, 1u);
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_CLOSE_CONTEXT), "OK admin");
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_CLOSE_CONTEXT), "CLOSED admin");
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_OPEN_CONTEXT), "OK admin");
  EXPECT_EQ(reply().u.open.context, 0u);
}

TEST_F(PciMailboxTest, MemoryIsPagesOfTheGuest) {
  EXPECT_EQ(ask(registration(kListAt, 8192)), "OK admin");
  EXPECT_EQ(ask(registration(kRamBytes - 8, 8192)), "BAD_ADDRESS admin") << "the list's end";
  const uint64_t outside = kRamBytes;
  std::memcpy(ram + kListAt + 8, &outside, sizeof(outside));
  EXPECT_EQ(ask(registration(kListAt, 8192)), "BAD_ADDRESS admin") << "a page";
  peal_admin_command process = registration(kListAt, 8192);
  process.u.register_memory.kind = PEAL_MEMORY_PROCESS;
  EXPECT_EQ(ask(process), "BAD_FLAGS admin");
  EXPECT_EQ(counted(), "guests 1 commands 5 commands_refused 3 page_lists_refused 2 ");
}

// Each key has a list here of the pages that it names, whoever says how often.
TEST_F(PciMailboxTest, ListsOfPagesAreBounded) {
  constexpr uint64_t kList = uint64_t{2} << 20;  // of all of its memory
  for (uint64_t page = 0; page < kRamBytes / 4096; page++) {
    const uint64_t address = page * 4096;
    std::memcpy(ram + kList + page * sizeof(address), &address, sizeof(address));
  }
  uint32_t key = 0;
  for (int i = 0; i < 4; i++) {
    ASSERT_EQ(ask(registration(kList, kRamBytes)), "OK admin") << i;
    key = reply().u.register_memory.key;
  }
  EXPECT_EQ(ask(registration(kList, 4096)), "NO_RESOURCES admin");
  peal_admin_command unregister = make_command(PEAL_ADMIN_UNREGISTER_MEMORY);
  unregister.u.unregister_memory.key = key;
  EXPECT_EQ(ask(unregister), "OK admin");
  EXPECT_EQ(ask(registration(kList, kRamBytes)), "OK admin");
}

TEST_F(PciMailboxTest, AListThatFindsNoPlaceIsNotCounted) {
  uint8_t memory = 0;
  std::vector<RegionId> taken;
  for (RegionId id = 0; id != emulator::kNoRegion;) {
    id = loop.lone.regions.put_mapped(&memory, 1, nullptr);
    taken.push_back(id);
  }
  EXPECT_EQ(ask(registration(kListAt, 8192)), "NO_RESOURCES admin");
  for (const RegionId id : taken) loop.lone.regions.free(id);
  EXPECT_EQ(ask(registration(kListAt, 4096)), "OK admin");
}

TEST_F(PciMailboxTest, ChannelsThatTheCardLetGoOfAreNamedOnce) {
  use_channels();
  EXPECT_TRUE(turn()) << "tells that there is something to reap";
  EXPECT_EQ(guest->card().channels_released, 1u);
  EXPECT_FALSE(turn());
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_REAP_CHANNELS), "OK admin");
  EXPECT_EQ(reply().u.reap.count, 1u);
  EXPECT_EQ(reply().u.reap.more, 0u);
  EXPECT_EQ(reply().u.reap.lists[0], kListAt);
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_REAP_CHANNELS), "OK admin");
  EXPECT_EQ(reply().u.reap.count, 0u);
  EXPECT_EQ(guest->card().channels_released, 1u);
}

TEST_F(PciMailboxTest, MoreChannelsThanAReplyHolds) {
  constexpr uint32_t kMany = PEAL_CHANNELS_PER_REPLY + 3;
  for (uint32_t i = 0; i < kMany; i++) {
    use_channels();
    turn();  // which tells
  }
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_REAP_CHANNELS), "OK admin");
  EXPECT_EQ(reply().u.reap.count, static_cast<uint32_t>(PEAL_CHANNELS_PER_REPLY));
  EXPECT_EQ(reply().u.reap.more, 3u);
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_REAP_CHANNELS), "OK admin");
  EXPECT_EQ(reply().u.reap.count, 3u);
  EXPECT_EQ(reply().u.reap.more, 0u);
  EXPECT_EQ(guest->card().channels_released, uint64_t{kMany});
}

// What is refused has kept nothing, and is not named.
TEST_F(PciMailboxTest, RefusedChannelsAreNotNamed) {
  EXPECT_EQ(ask(reservation(kListAt, kChannelsBytes - 4096)), "BAD_LENGTH admin");
  EXPECT_EQ(ask(reservation(kListAt + 4)), "BAD_ADDRESS admin");
  peal_admin_command rank = reservation();
  rank.u.reserve.rank = 1;
  EXPECT_EQ(ask(rank), "BAD_RANK admin");
  EXPECT_FALSE(turn());
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_REAP_CHANNELS), "OK admin");
  EXPECT_EQ(reply().u.reap.count, 0u);
  EXPECT_EQ(counted(), "guests 1 commands 5 commands_refused 3 page_lists_refused 1 ");
}

TEST_F(PciMailboxTest, ReapingSaysNothingMore) {
  peal_admin_command command = make_command(PEAL_ADMIN_REAP_CHANNELS);
  command.version++;
  EXPECT_EQ(ask(command), "BAD_VERSION admin");
  command = make_command(PEAL_ADMIN_REAP_CHANNELS);
  command.u.bytes_[0] = 1;
  EXPECT_EQ(ask(command), "BAD_FLAGS admin");
  EXPECT_EQ(ask(*guest, PEAL_ADMIN_REAP_CHANNELS, 1), "BAD_FLAGS admin");
}

}  // namespace
}  // namespace peal::nic
