// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/common/admin.h"

#include <gtest/gtest.h>

#include "abi/program.h"

#include "tests/unit/emulator/lone_card.h"

namespace peal::emulator {
namespace {

using test::LoneCard;
using test::make_command;
using test::TestProvider;

class AdminTest : public ::testing::Test {
 protected:
  peal_status execute(const peal_admin_command& command, ContextId context) {
    return card_.admin().execute(command, sizeof(command), context, provider_, card_.now, &reply_);
  }
  ContextId open() {
    EXPECT_EQ(execute(make_command(PEAL_ADMIN_OPEN_CONTEXT), kNoContext), PEAL_STATUS_OK);
    return reply_.u.open.context;
  }
  static peal_admin_command registration(uint64_t bytes, uint32_t access = 3) {
    peal_admin_command command = make_command(PEAL_ADMIN_REGISTER_MEMORY);
    command.u.register_memory.kind = PEAL_MEMORY_ALLOCATE;
    command.u.register_memory.access = access;
    command.u.register_memory.bytes = bytes;
    return command;
  }
  uint32_t register_memory(ContextId context, uint64_t bytes) {
    EXPECT_EQ(execute(registration(bytes), context), PEAL_STATUS_OK);
    return reply_.u.register_memory.key;
  }
  peal_status unregister(ContextId context, uint32_t key) {
    peal_admin_command command = make_command(PEAL_ADMIN_UNREGISTER_MEMORY);
    command.u.unregister_memory.key = key;
    return execute(command, context);
  }
  peal_status reserve(ContextId context, uint32_t ranks, uint32_t rank) {
    peal_admin_command command = make_command(PEAL_ADMIN_RESERVE_GROUP);
    command.u.reserve.ranks = ranks;
    command.u.reserve.rank = rank;
    return execute(command, context);
  }
  // A group of this card alone.
  uint32_t lone_group(ContextId context) {
    EXPECT_EQ(reserve(context, 1, 0), PEAL_STATUS_OK);
    const uint32_t member = reply_.u.reserve.address.member;
    peal_admin_command command = make_command(PEAL_ADMIN_CONNECT_GROUP);
    command.u.connect.member = member;
    command.u.connect.group = 5;
    EXPECT_EQ(execute(command, context), PEAL_STATUS_OK);
    return member;
  }

  // Both buffers are in that memory.
  void submit_allgather(uint32_t member, uint32_t key) {
    peal_submission entry = {};
    entry.operation = PEAL_OPERATION_ALLGATHER;
    entry.algorithm = PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST;
    entry.member = member;
    entry.block_bytes = 64;
    entry.send_key = key;
    entry.receive_key = key;
    entry.receive_offset = 2048;
    ASSERT_TRUE(peal_host_ring_submit(&provider_.ring, &entry));
  }
  // And the card has taken it.
  void post_allgather(uint32_t member, uint32_t key) {
    submit_allgather(member, key);
    card_.windows().poll(16, card_.now);
  }

  LoneCard card_;
  TestProvider provider_{card_};
  peal_admin_reply reply_{};
};

TEST_F(AdminTest, ReplyNamesItsCommand) {
  EXPECT_EQ(execute(make_command(PEAL_ADMIN_OPEN_CONTEXT), kNoContext), PEAL_STATUS_OK);
  EXPECT_EQ(reply_.version, unsigned{PEAL_ABI_VERSION});
  EXPECT_EQ(reply_.opcode, PEAL_ADMIN_OPEN_CONTEXT);
  EXPECT_EQ(reply_.bytes, unsigned{PEAL_ADMIN_BYTES});
  EXPECT_EQ(reply_.tag, 0x1234u);
  EXPECT_EQ(reply_.u.open.window_bytes, kWindowBytes);
  EXPECT_EQ(reply_.u.open.window_offset, 0x7000u);
}

// REAP_CHANNELS is not here: it is of the PCI card as a whole, and carried out there.
TEST_F(AdminTest, EnvelopeIsChecked) {
  peal_admin_command command = make_command(PEAL_ADMIN_OPEN_CONTEXT);
  for (const uint32_t bytes : {0u, 24u, 511u, 513u}) {
    EXPECT_EQ(card_.admin().execute(command, bytes, kNoContext, provider_, 1, &reply_),
              PEAL_STATUS_BAD_VERSION);
  }
  command.version = PEAL_ABI_VERSION + 1;
  EXPECT_EQ(execute(command, kNoContext), PEAL_STATUS_BAD_VERSION);
  command = make_command(PEAL_ADMIN_OPEN_CONTEXT);
  command.bytes = 511;
  EXPECT_EQ(execute(command, kNoContext), PEAL_STATUS_BAD_VERSION);
  command = make_command(PEAL_ADMIN_OPEN_CONTEXT);
  command.reserved = 1;
  EXPECT_EQ(execute(command, kNoContext), PEAL_STATUS_BAD_FLAGS);
  for (const int opcode :
       {0, int{PEAL_ADMIN_REAP_CHANNELS}, int{PEAL_ADMIN_OPCODE_COUNT}, 0xffff}) {
    command = make_command(PEAL_ADMIN_OPEN_CONTEXT);
    command.opcode = static_cast<uint16_t>(opcode);
    EXPECT_EQ(execute(command, kNoContext), PEAL_STATUS_BAD_OPCODE);
  }
  EXPECT_EQ(card_.admin().counts().refused, 11u);
  EXPECT_EQ(card_.admin().open_contexts(), 0u);
}

// Of a client, but for OPEN_CONTEXT.
constexpr peal_admin_opcode kOfAClient[] = {
    PEAL_ADMIN_CLOSE_CONTEXT, PEAL_ADMIN_REGISTER_MEMORY, PEAL_ADMIN_UNREGISTER_MEMORY,
    PEAL_ADMIN_RESERVE_GROUP, PEAL_ADMIN_CONNECT_GROUP,   PEAL_ADMIN_ABANDON_GROUP,
    PEAL_ADMIN_READ_COUNTERS, PEAL_ADMIN_ADD_PEERS,       PEAL_ADMIN_COMMIT_PROGRAM,
    PEAL_ADMIN_FREE_PROGRAM};

// For every opcode: a byte behind its own fields, and its own reserved field.
TEST_F(AdminTest, ReservedBytesMustBeZero) {
  const ContextId context = open();
  peal_admin_command command = make_command(PEAL_ADMIN_OPEN_CONTEXT);
  command.u.bytes_[487] = 1;
  EXPECT_EQ(execute(command, kNoContext), PEAL_STATUS_BAD_FLAGS);
  for (const peal_admin_opcode opcode : kOfAClient) {
    command = make_command(opcode);
    command.u.bytes_[487] = 1;
    EXPECT_EQ(execute(command, context), PEAL_STATUS_BAD_FLAGS) << opcode;
  }
  command = make_command(PEAL_ADMIN_OPEN_CONTEXT);
  command.u.open.reserved = 1;
  EXPECT_EQ(execute(command, kNoContext), PEAL_STATUS_BAD_FLAGS);
  command = make_command(PEAL_ADMIN_UNREGISTER_MEMORY);
  command.u.unregister_memory.reserved = 1;
  EXPECT_EQ(execute(command, context), PEAL_STATUS_BAD_FLAGS);
  command = make_command(PEAL_ADMIN_ABANDON_GROUP);
  command.u.abandon.reserved = 1;
  EXPECT_EQ(execute(command, context), PEAL_STATUS_BAD_FLAGS);
  command = make_command(PEAL_ADMIN_READ_COUNTERS);
  command.u.counters.reserved = 1;
  EXPECT_EQ(execute(command, context), PEAL_STATUS_BAD_FLAGS);
  command = make_command(PEAL_ADMIN_FREE_PROGRAM);
  command.u.free_program.reserved = 1;
  EXPECT_EQ(execute(command, context), PEAL_STATUS_BAD_FLAGS);
}

TEST_F(AdminTest, NothingWithoutAContext) {
  const ContextId context = open();
  for (const peal_admin_opcode opcode : kOfAClient) {
    const peal_admin_command command = make_command(opcode);
    for (const ContextId wrong : {kNoContext, context + 1, uint32_t{CONFIG_CONTEXTS}})
      EXPECT_EQ(execute(command, wrong), PEAL_STATUS_CLOSED) << opcode;
  }
  EXPECT_EQ(execute(make_command(PEAL_ADMIN_OPEN_CONTEXT), context), PEAL_STATUS_BUSY);
}

TEST_F(AdminTest, AnotherProvidersContextIsClosedToUs) {
  const ContextId context = open();
  TestProvider stranger;
  const peal_admin_command close = make_command(PEAL_ADMIN_CLOSE_CONTEXT);
  EXPECT_EQ(card_.admin().execute(close, sizeof(close), context, stranger, card_.now, &reply_),
            PEAL_STATUS_CLOSED);
  EXPECT_TRUE(card_.admin().is_open(context));
}

TEST_F(AdminTest, ContextsRunOutAndComeBack) {
  std::vector<ContextId> contexts;
  for (uint32_t i = 0; i < CONFIG_CONTEXTS; i++) contexts.push_back(open());
  EXPECT_EQ(execute(make_command(PEAL_ADMIN_OPEN_CONTEXT), kNoContext), PEAL_STATUS_NO_RESOURCES);
  EXPECT_EQ(execute(make_command(PEAL_ADMIN_CLOSE_CONTEXT), contexts[1]), PEAL_STATUS_OK);
  EXPECT_EQ(provider_.gone, std::vector<ContextId>{contexts[1]});
  open();
}

TEST_F(AdminTest, WindowThatCannotBeMadeTakesNoContext) {
  provider_.open_status = PEAL_STATUS_NO_RESOURCES;
  for (uint32_t i = 0; i < 2 * CONFIG_CONTEXTS; i++) {
    EXPECT_EQ(execute(make_command(PEAL_ADMIN_OPEN_CONTEXT), kNoContext), PEAL_STATUS_NO_RESOURCES);
  }
  EXPECT_TRUE(provider_.gone.empty());
  provider_.open_status = PEAL_STATUS_OK;
  open();
}

TEST_F(AdminTest, MemoryIsChecked) {
  const ContextId context = open();
  EXPECT_EQ(execute(registration(64, 4), context), PEAL_STATUS_BAD_FLAGS);
  EXPECT_EQ(execute(registration(64, 0), context), PEAL_STATUS_BAD_ACCESS);
  EXPECT_EQ(execute(registration(0), context), PEAL_STATUS_BAD_LENGTH);
  peal_admin_command command = registration(64);
  command.u.register_memory.address = ~uint64_t{0} - 8;
  EXPECT_EQ(execute(command, context), PEAL_STATUS_BAD_BOUNDS);
  command = registration(64);
  command.u.register_memory.first_page_offset = 1;
  EXPECT_EQ(execute(command, context), PEAL_STATUS_BAD_FLAGS);
  command = registration(64);
  command.u.register_memory.page_shift = 12;
  EXPECT_EQ(execute(command, context), PEAL_STATUS_BAD_FLAGS);
  command = registration(64);
  command.u.register_memory.kind = PEAL_MEMORY_PAGES;
  EXPECT_EQ(execute(command, context), PEAL_STATUS_BAD_ADDRESS);
  provider_.memory_status = PEAL_STATUS_NO_RESOURCES;
  EXPECT_EQ(execute(registration(64), context), PEAL_STATUS_NO_RESOURCES);
  EXPECT_EQ(card_.regions.used(), 0u);
}

TEST_F(AdminTest, ProgramsAreCommittedAndFreed) {
  const ContextId context = open();
  const uint32_t member = lone_group(context);
  const uint32_t key = register_memory(context, 2 * sizeof(peal_descriptor));
  peal_admin_command commit = make_command(PEAL_ADMIN_COMMIT_PROGRAM);
  commit.u.commit_program.member = member;
  commit.u.commit_program.key = key;
  commit.u.commit_program.count = 2;
  commit.u.commit_program.mode = PEAL_PROGRAM_MODE_TASKS;
  EXPECT_EQ(execute(commit, context), PEAL_STATUS_OK);
  EXPECT_EQ(reply_.u.commit_program.starts, uint32_t{CONFIG_QUEUE_STARTS});
  peal_admin_command free = make_command(PEAL_ADMIN_FREE_PROGRAM);
  free.u.free_program.program = reply_.u.commit_program.program;
  EXPECT_EQ(unregister(context, key), PEAL_STATUS_BUSY);
  EXPECT_EQ(execute(free, context), PEAL_STATUS_OK);
  EXPECT_EQ(execute(free, context), PEAL_STATUS_BAD_KEY);
  EXPECT_EQ(unregister(context, key), PEAL_STATUS_OK);
  EXPECT_EQ(execute(commit, context), PEAL_STATUS_BAD_KEY);
}

// What the host had submitted before it asked comes first, whenever the card's loop looks.
TEST_F(AdminTest, MemoryOfWhatWasSubmittedIsInUse) {
  const ContextId context = open();
  const uint32_t member = lone_group(context);
  const uint32_t key = register_memory(context, 8192);
  submit_allgather(member, key);
  EXPECT_EQ(unregister(context, key), PEAL_STATUS_BUSY);
  card_.run();
  peal_completion completion;
  ASSERT_TRUE(peal_host_ring_poll(&provider_.ring, &completion));
  EXPECT_EQ(completion.status, PEAL_STATUS_OK);
  EXPECT_EQ(unregister(context, key), PEAL_STATUS_OK);
}

TEST_F(AdminTest, AProgramWhoseStartWasSubmittedIsInUse) {
  const ContextId context = open();
  const uint32_t member = lone_group(context);
  peal_admin_command commit = make_command(PEAL_ADMIN_COMMIT_PROGRAM);
  commit.u.commit_program.member = member;
  commit.u.commit_program.key = register_memory(context, 2 * sizeof(peal_descriptor));
  commit.u.commit_program.count = 2;
  commit.u.commit_program.mode = PEAL_PROGRAM_MODE_TASKS;
  ASSERT_EQ(execute(commit, context), PEAL_STATUS_OK);
  peal_admin_command free = make_command(PEAL_ADMIN_FREE_PROGRAM);
  free.u.free_program.program = reply_.u.commit_program.program;
  peal_submission entry = {};
  entry.operation = PEAL_OPERATION_START;
  entry.member = member;
  entry.send_key = free.u.free_program.program;
  entry.block_bytes = 1;
  ASSERT_TRUE(peal_host_ring_submit(&provider_.ring, &entry));
  EXPECT_EQ(execute(free, context), PEAL_STATUS_BUSY);
  card_.run();  // its descriptors are none, which the start says
  EXPECT_EQ(execute(free, context), PEAL_STATUS_OK);
}

// A window that is found broken then ends, and with it the command's context.
TEST_F(AdminTest, AWindowMayEndWhereMemoryIsTakenBack) {
  const ContextId context = open();
  const uint32_t key = register_memory(context, 64);
  provider_.ring.host->indices.submission_tail = 1u << 20;
  EXPECT_EQ(unregister(context, key), PEAL_STATUS_CLOSED);
  EXPECT_EQ(card_.admin().counts().windows_broken, 1u);
}

// Entries that wait for room among the completions are submitted, too.
TEST_F(AdminTest, WhatWaitsForRoomIsInTheWay) {
  const ContextId context = open();
  const uint32_t key = register_memory(context, 64);
  peal_submission refused = {};
  refused.operation = 99;
  for (uint32_t i = 0; i < kRingEntries; i++)
    ASSERT_TRUE(peal_host_ring_submit(&provider_.ring, &refused));
  while (card_.windows().poll(16, card_.now)) continue;
  ASSERT_TRUE(peal_host_ring_submit(&provider_.ring, &refused));
  EXPECT_EQ(unregister(context, key), PEAL_STATUS_BUSY);
  peal_completion completion;
  while (peal_host_ring_poll(&provider_.ring, &completion)) continue;
  EXPECT_EQ(unregister(context, key), PEAL_STATUS_OK);
}

TEST_F(AdminTest, KeysRunOutWithoutLeaks) {
  const ContextId context = open();
  uint32_t registered = 0;
  while (execute(registration(64), context) == PEAL_STATUS_OK) registered++;
  EXPECT_EQ(reply_.status, unsigned{PEAL_STATUS_NO_RESOURCES});
  EXPECT_EQ(registered, unsigned{CONFIG_MEMORY_KEYS});
  EXPECT_EQ(card_.regions.used(), registered);
  EXPECT_EQ(provider_.released, 1u);  // the one too many
}

TEST_F(AdminTest, UnregisterGivesMemoryBack) {
  const ContextId context = open();
  const ContextId other = open();
  const uint32_t key = register_memory(context, 64);
  EXPECT_EQ(unregister(other, key), PEAL_STATUS_BAD_KEY);
  EXPECT_EQ(provider_.released, 0u);
  EXPECT_EQ(unregister(context, key), PEAL_STATUS_OK);
  EXPECT_EQ(provider_.released, 1u);
  EXPECT_EQ(unregister(context, key), PEAL_STATUS_BAD_KEY);
}

TEST_F(AdminTest, CloseGivesEverythingBack) {
  const ContextId context = open();
  register_memory(context, 64);
  register_memory(context, 64);
  EXPECT_EQ(execute(make_command(PEAL_ADMIN_CLOSE_CONTEXT), context), PEAL_STATUS_OK);
  EXPECT_EQ(provider_.released, 2u);
  EXPECT_EQ(card_.regions.used(), 0u);
}

TEST_F(AdminTest, ReserveIsCheckedBeforeMemoryIsSetAside) {
  const ContextId context = open();
  EXPECT_EQ(reserve(context, 0, 0), PEAL_STATUS_BAD_RANK);
  EXPECT_EQ(reserve(context, CONFIG_GROUP_RANKS_MAX + 1, 0), PEAL_STATUS_BAD_RANK);
  EXPECT_EQ(reserve(context, 2, 2), PEAL_STATUS_BAD_RANK);
  EXPECT_EQ(provider_.released, 0u);
}

TEST_F(AdminTest, MembersRunOutWithoutLeaks) {
  const ContextId context = open();
  uint32_t reserved = 0;
  while (reserve(context, 2, 0) == PEAL_STATUS_OK) reserved++;
  EXPECT_EQ(reply_.status, unsigned{PEAL_STATUS_NO_RESOURCES});
  EXPECT_EQ(reserved, unsigned{CONFIG_CARD_MEMBERS});
  EXPECT_EQ(card_.regions.used(), reserved);
}

TEST_F(AdminTest, AbandonGivesChannelsBack) {
  const ContextId context = open();
  ASSERT_EQ(reserve(context, 2, 0), PEAL_STATUS_OK);
  peal_admin_command command = make_command(PEAL_ADMIN_ABANDON_GROUP);
  command.u.abandon.member = reply_.u.reserve.address.member;
  EXPECT_EQ(execute(command, context), PEAL_STATUS_OK);
  card_.run();
  EXPECT_EQ(card_.regions.used(), 0u);
  EXPECT_EQ(provider_.released, 1u);
}

// While a DMA is under way the context's memory stays, though its window is closed at once.
TEST_F(AdminTest, CloseWaitsForDma) {
  const ContextId context = open();
  const uint32_t member = lone_group(context);
  const uint32_t key = register_memory(context, 4096);
  provider_.last_memory[0] = 0x77;
  card_.port.hold_dmas = true;
  post_allgather(member, key);
  ASSERT_EQ(card_outstanding(card_.card(), context), 1u);
  EXPECT_EQ(unregister(context, key), PEAL_STATUS_BUSY);

  EXPECT_EQ(execute(make_command(PEAL_ADMIN_CLOSE_CONTEXT), context), PEAL_STATUS_BUSY);
  EXPECT_FALSE(card_.admin().is_open(context));
  EXPECT_EQ(provider_.ended, std::vector<EndReason>{EndReason::kHost});
  EXPECT_EQ(card_.admin().closing_contexts(), 1u);
  EXPECT_TRUE(provider_.gone.empty());
  EXPECT_EQ(provider_.released, 0u);
  EXPECT_EQ(execute(registration(64), context), PEAL_STATUS_CLOSED);

  card_.port.hold_dmas = false;
  card_.run();
  EXPECT_EQ(provider_.gone, std::vector<ContextId>{context});
  EXPECT_GE(provider_.released, 1u);
  EXPECT_EQ(card_.admin().closing_contexts(), 0u);
  EXPECT_EQ(execute(make_command(PEAL_ADMIN_CLOSE_CONTEXT), context), PEAL_STATUS_CLOSED);
  EXPECT_EQ(card_.port.packets_out, 0u);
}

// The card lets go of a context in one of its turns; a client may come before the owner has looked.
TEST_F(AdminTest, OpenBetweenTheCardsTurnAndHousekeeping) {
  const ContextId context = open();
  const uint32_t member = lone_group(context);
  const uint32_t key = register_memory(context, 4096);
  card_.port.hold_dmas = true;
  post_allgather(member, key);
  EXPECT_EQ(execute(make_command(PEAL_ADMIN_CLOSE_CONTEXT), context), PEAL_STATUS_BUSY);
  card_.port.hold_dmas = false;
  while (!card_context_quiet(card_.card(), context))
    card_.port.finish_dmas(card_.card(), card_.now);
  ASSERT_EQ(card_.admin().closing_contexts(), 1u);

  EXPECT_EQ(open(), context);
  EXPECT_EQ(provider_.gone, std::vector<ContextId>{context});
  EXPECT_EQ(card_.admin().closing_contexts(), 0u);
}

TEST_F(AdminTest, AllgatherOfOneThroughTheWindow) {
  const ContextId context = open();
  const uint32_t member = lone_group(context);
  const uint32_t key = register_memory(context, 8192);
  for (int i = 0; i < 64; i++) provider_.last_memory[i] = static_cast<uint8_t>(i + 1);
  peal_submission entry = {};
  entry.operation = PEAL_OPERATION_ALLGATHER;
  entry.algorithm = PEAL_ALGORITHM_RECURSIVE_DOUBLING;
  entry.member = member;
  entry.cookie = 42;
  entry.block_bytes = 64;
  entry.send_key = key;
  entry.receive_key = key;
  entry.receive_offset = 4096;
  ASSERT_TRUE(peal_host_ring_submit(&provider_.ring, &entry));
  card_.run();
  peal_completion completion;
  ASSERT_TRUE(peal_host_ring_poll(&provider_.ring, &completion));
  EXPECT_EQ(completion.status, PEAL_STATUS_OK);
  EXPECT_EQ(completion.cookie, 42u);
  EXPECT_EQ(std::memcmp(provider_.last_memory, provider_.last_memory + 4096, 64), 0);
}

TEST_F(AdminTest, CountersInParts) {
  const ContextId context = open();
  peal_admin_command command = make_command(PEAL_ADMIN_READ_COUNTERS);
  EXPECT_EQ(execute(command, context), PEAL_STATUS_OK);
  EXPECT_EQ(reply_.u.counters.total, unsigned{PEAL_COUNTER_COUNT});
  EXPECT_EQ(reply_.u.counters.count, unsigned{PEAL_COUNTERS_PER_REPLY});
  // The operation that is counted stands in another place of another part.
  const uint32_t member = lone_group(context);
  peal_submission barrier{};
  barrier.operation = PEAL_OPERATION_BARRIER;
  barrier.algorithm = PEAL_ALGORITHM_DISSEMINATION;
  barrier.member = member;
  ASSERT_TRUE(peal_host_ring_submit(&provider_.ring, &barrier));
  card_.run();
  for (uint32_t first = 0; first < PEAL_COUNTER_COUNT; first += 7) {
    command.u.counters.first = first;
    ASSERT_EQ(execute(command, context), PEAL_STATUS_OK);
    for (uint32_t i = 0; i < reply_.u.counters.count; i++) {
      EXPECT_EQ(reply_.u.counters.values[i], card_counters(card_.card())[first + i]) << first + i;
    }
  }
  command.u.counters.first = PEAL_COUNTER_COUNT - 1;
  EXPECT_EQ(execute(command, context), PEAL_STATUS_OK);
  EXPECT_EQ(reply_.u.counters.count, 1u);
  command.u.counters.first = PEAL_COUNTER_COUNT;
  EXPECT_EQ(execute(command, context), PEAL_STATUS_OK);
  EXPECT_EQ(reply_.u.counters.count, 0u);
  command.u.counters.first = PEAL_COUNTER_COUNT + 1;
  EXPECT_EQ(execute(command, context), PEAL_STATUS_BAD_BOUNDS);
}

}  // namespace
}  // namespace peal::emulator
