// SPDX-License-Identifier: BSD-2-Clause
// Each command as it goes to the card, compared byte by byte, and what is taken out of its reply.
#include "hostlib/administration.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "hostlib/error.h"

namespace peal::host {
namespace {

// Writes down the command's head and the words of its body that are not zero, and answers with the
// reply that the test has prepared.
class Notebook final : public Transport {
 public:
  [[nodiscard]] const Window& window() const override { return window_; }
  peal_error allocate(size_t, Allocation*) override { return PEAL_ERR_NO_MEMORY; }
  peal_error release(const Allocation&) override { return PEAL_ERR_BAD_KEY; }
  void unmap(const Allocation&) override {}
  peal_error ask(const peal_admin_command& command, peal_admin_reply* reply) override {
    if (!asked.empty()) asked += "; ";
    asked += text_of(command);
    *reply = answer;
    return verdict(command, *reply);
  }
  void ring_doorbell() override {}
  uint32_t sleep_token() override { return 0; }
  void sleep(uint32_t, int) override {}
  void wake() override {}
  bool connected() override { return true; }
  void leave_to_parent() noexcept override {}

  static std::string text_of(const peal_admin_command& command) {
    std::string text = std::string(command_name(command.opcode)) + " version " +
                       std::to_string(command.version) + " bytes " + std::to_string(command.bytes);
    if (command.tag != 0 || command.context != 0 || command.reserved != 0) text += " not clean";
    uint32_t words[sizeof(command.u) / 4];
    memcpy(words, &command.u, sizeof(words));
    for (size_t i = 0; i < std::size(words); i++) {
      if (words[i] != 0) text += " [" + std::to_string(i) + "]=" + std::to_string(words[i]);
    }
    return text;
  }

  std::string asked;
  peal_admin_reply answer = {};

 private:
  Window window_;
};

const std::string kHead =
    " version " + std::to_string(PEAL_ABI_VERSION) + " bytes " + std::to_string(PEAL_ADMIN_BYTES);

TEST(Administration, Open) {
  EXPECT_EQ(Notebook::text_of(open_command(7)), "open context" + kHead + " [0]=7");
}

TEST(Administration, RegisterMemory) {
  Notebook card;
  card.answer.u.register_memory.key = 0x20003;
  uint32_t key = 0;
  auto* address = reinterpret_cast<void*>(uintptr_t{0x500000001000});
  EXPECT_EQ(register_memory(card, address, 0x300000002, PEAL_ACCESS_WRITE, &key), PEAL_OK);
  EXPECT_EQ(key, 0x20003u);
  // kind, access, address, bytes
  EXPECT_EQ(card.asked, "register memory" + kHead + " [0]=2 [1]=2 [2]=4096 [3]=20480 [4]=2 [5]=3");
}

TEST(Administration, MemoryThatTheCardMakes) {
  const peal_admin_command command =
      register_command(PEAL_MEMORY_ALLOCATE, nullptr, 8192, PEAL_ACCESS_FLAGS);
  EXPECT_EQ(Notebook::text_of(command), "register memory" + kHead + " [0]=1 [1]=3 [4]=8192");
}

TEST(Administration, UnregisterMemory) {
  Notebook card;
  EXPECT_EQ(unregister_memory(card, 0x10002), PEAL_OK);
  EXPECT_EQ(card.asked, "unregister memory" + kHead + " [0]=65538");
}

TEST(Administration, ReserveGroup) {
  Notebook card;
  card.answer.u.reserve.address.member = 0x30004;
  card.answer.u.reserve.address.rank = 5;
  peal_peer_address address = {};
  EXPECT_EQ(reserve_group(card, 8, 5, &address), PEAL_OK);
  EXPECT_EQ(memcmp(&address, &card.answer.u.reserve.address, sizeof(address)), 0);
  EXPECT_EQ(card.asked, "reserve group" + kHead + " [0]=8 [1]=5");
}

TEST(Administration, ConnectGroup) {
  Notebook card;
  peal_peer_address peers[PEAL_PEERS_MAX] = {};
  for (peal_peer_address& peer : peers) peer.member = 11 + static_cast<uint32_t>(&peer - peers);
  EXPECT_EQ(connect_group(card, 9, 0x700000006, 77, peers, 2, {nullptr, 13, 192, 160}), PEAL_OK);
  // group, member, choice_hash, peer_count, addresses_key, of the peers these two, and
  // addresses_offset.
  const size_t first = offsetof(peal_connect_group, peers) + offsetof(peal_peer_address, member);
  const size_t second = first + sizeof(peal_peer_address);
  EXPECT_EQ(card.asked,
            "connect group" + kHead + " [0]=6 [1]=7 [2]=9 [3]=77 [4]=2 [5]=13 [" +
                std::to_string(first / 4) + "]=11 [" + std::to_string(second / 4) + "]=12 [" +
                std::to_string(offsetof(peal_connect_group, addresses_offset) / 4) + "]=192");
  // As many as a command holds.
  EXPECT_EQ(connect_group(card, 9, 1, 0, peers, PEAL_PEERS_PER_COMMAND, {}), PEAL_OK);
  EXPECT_EQ(card.asked.find("add peers"), std::string::npos);
}

TEST(Administration, PeersThatDoNotFitComeBefore) {
  Notebook card;
  peal_peer_address peers[PEAL_PEERS_PER_COMMAND + 2] = {};
  peers[PEAL_PEERS_PER_COMMAND].member = 21;
  peers[PEAL_PEERS_PER_COMMAND + 1].member = 22;
  EXPECT_EQ(connect_group(card, 9, 1, 0, peers, PEAL_PEERS_PER_COMMAND + 2, {}), PEAL_OK);
  const size_t first = offsetof(peal_add_peers, peers) + offsetof(peal_peer_address, member);
  const size_t second = first + sizeof(peal_peer_address);
  EXPECT_EQ(card.asked, "add peers" + kHead + " [0]=9 [1]=2 [" + std::to_string(first / 4) +
                            "]=21 [" + std::to_string(second / 4) + "]=22; connect group" + kHead +
                            " [0]=1 [2]=9 [4]=22");
}

TEST(Administration, AbandonGroup) {
  Notebook card;
  EXPECT_EQ(abandon_group(card, 3), PEAL_OK);
  EXPECT_EQ(card.asked, "abandon group" + kHead + " [0]=3");
}

TEST(Administration, ReadCounters) {
  Notebook card;
  card.answer.u.counters.total = 70;
  card.answer.u.counters.count = 2;
  card.answer.u.counters.values[1] = 5;
  peal_read_counters_reply part = {};
  EXPECT_EQ(read_counters(card, 68, &part), PEAL_OK);
  EXPECT_EQ(card.asked, "read counters" + kHead + " [0]=68");
  EXPECT_EQ(memcmp(&part, &card.answer.u.counters, sizeof(part)), 0);
}

TEST(Administration, MoreCountersThanAReplyHolds) {
  Notebook card;
  peal_read_counters_reply part = {};
  card.answer.u.counters.count = PEAL_COUNTERS_PER_REPLY;
  EXPECT_EQ(read_counters(card, 0, &part), PEAL_OK);
  card.answer.u.counters.count = PEAL_COUNTERS_PER_REPLY + 1;
  EXPECT_EQ(read_counters(card, 0, &part), PEAL_ERR_CARD_ANSWER);
  EXPECT_STREQ(last_error_text(), "33 counters in one reply");
}

// What is refused leaves the caller's results alone.
TEST(Administration, RefusalsNameCommandAndStatus) {
  Notebook card;
  card.answer.status = PEAL_STATUS_NO_RESOURCES;
  card.answer.u.register_memory.key = 1;
  char byte = 0;
  uint32_t key = 42;
  EXPECT_EQ(register_memory(card, &byte, 1, PEAL_ACCESS_READ, &key), PEAL_ERR_NO_RESOURCES);
  EXPECT_EQ(key, 42u);
  EXPECT_EQ(last_error_text(),
            std::string("register memory: the card refused with NO_RESOURCES: ") +
                peal_strerror(PEAL_ERR_NO_RESOURCES));
  peal_peer_address address = {};
  address.member = 42;
  EXPECT_EQ(reserve_group(card, 2, 0, &address), PEAL_ERR_NO_RESOURCES);
  EXPECT_EQ(address.member, 42u);
  card.answer.status = 5000;
  EXPECT_EQ(abandon_group(card, 1), PEAL_ERR_CARD_ANSWER);
  EXPECT_EQ(last_error_text(), std::string("abandon group: the card refused with status-5000: ") +
                                   peal_strerror(PEAL_ERR_CARD_ANSWER));
}

}  // namespace
}  // namespace peal::host
