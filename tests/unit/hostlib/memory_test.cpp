// SPDX-License-Identifier: BSD-2-Clause
// Memory that the card may reach, where the card has no room for it but for what is idle.
#include "hostlib/memory.h"

#include <string>
#include <thread>
#include <utility>

#include "hostlib/ended.h"
#include "tests/unit/hostlib/one_group.h"

namespace peal::host {
namespace {

class FullCard : public OneGroup {
 protected:
  void SetUp() override {
    OneGroup::SetUp();
    group->flags |= PEAL_GROUP_REGISTER;
  }
  // A registration that an operation made by itself, and which is idle now: its key.
  uint32_t idle(uint8_t* buffer) {
    peal_request* request = nullptr;
    EXPECT_EQ(peal_ibcast(group, buffer, 64, 0, &request), PEAL_OK);
    const peal_submission entry = take();
    card.complete(entry);
    EXPECT_EQ(peal_wait(request), PEAL_OK);
    EXPECT_EQ(peal_request_free(request), PEAL_OK);
    return entry.send_key;
  }
  void fill() { card.keys_max = card.keys.size(); }
  peal_error alloc() {
    void* memory = nullptr;
    return peal_alloc(context, 64, &memory);
  }

  uint8_t first[64] = {};
  uint8_t second[64] = {};
};

TEST_F(FullCard, AnIdleRegistrationMakesRoomForMemory) {
  const uint32_t key = idle(first);
  const uint32_t later = idle(second);
  fill();
  const uint64_t before = memory_version(*context);
  EXPECT_EQ(alloc(), PEAL_OK) << peal_last_error_text();
  EXPECT_FALSE(card.keys.contains(key));
  EXPECT_TRUE(card.keys.contains(later)) << "one is enough";
  EXPECT_NE(memory_version(*context), before);
  EXPECT_NE(idle(second), key);
}

TEST_F(FullCard, AndForWhatItsUserRegisters) {
  const uint32_t key = idle(first);
  fill();
  peal_memory* memory = nullptr;
  EXPECT_EQ(peal_register(context, second, sizeof(second), PEAL_READ, &memory), PEAL_OK);
  EXPECT_FALSE(card.keys.contains(key));
}

TEST_F(FullCard, WhatIsInUseStays) {
  const uint32_t key = idle(first);
  fill();
  card.busy_keys = card.keys;
  EXPECT_EQ(alloc(), PEAL_ERR_NO_RESOURCES);
  EXPECT_STREQ(peal_last_error_text(), "no key left");
  EXPECT_TRUE(card.keys.contains(key));
}

// What the same operation has just named is idle only to the card.
TEST_F(FullCard, TablesOfPartsTakeNoRoomFromTheirOwnOperation) {
  const size_t bytes[] = {64};
  const auto start = [&](peal_request** request) {
    return peal_iallgatherv(group, first, second, bytes, nullptr, request);
  };
  peal_request* request = nullptr;
  card.keys_max = card.keys.size() + 2;  // for the buffers
  EXPECT_EQ(start(&request), PEAL_ERR_NO_RESOURCES);
  EXPECT_EQ(card.keys.size(), card.keys_max) << "both are there yet";
  uint8_t third[64] = {};
  card.keys_max++;
  const uint32_t key = idle(third);
  ASSERT_EQ(start(&request), PEAL_OK) << peal_last_error_text();
  EXPECT_FALSE(card.keys.contains(key));
  const peal_submission entry = take();
  for (const uint32_t used : {entry.send_key, entry.receive_key, entry.parts_key})
    EXPECT_TRUE(card.keys.contains(used));
  card.complete(entry);
  EXPECT_EQ(peal_wait(request), PEAL_OK);
}

TEST_F(FullCard, WhatWasLeftMakesRoomFirst) {
  const uint32_t key = idle(first);
  Allocation left;
  ASSERT_EQ(context->transport->allocate(64, &left), PEAL_OK);
  card.busy_keys = {left.key};
  {
    const std::lock_guard lock(context->mutex);
    leave_memory(*context, left);
  }
  fill();
  card.busy_keys.clear();
  EXPECT_EQ(alloc(), PEAL_OK) << peal_last_error_text();
  EXPECT_FALSE(card.mapped.contains(left.key));
  EXPECT_TRUE(card.keys.contains(key));
}

// Of a persistent request's group, which nobody needs any more.
TEST_F(FullCard, TablesOfAGroupThatHasEndedMakeRoom) {
  peal_group* ended = make_fake_group(context);
  Allocation tables;
  ASSERT_EQ(context->transport->allocate(PartTables::bytes_of(1, 2), &tables), PEAL_OK);
  ended->part_tables.make(tables, 1, 2);
  const uint32_t key = idle(first);
  fill();
  ended->over = true;
  EXPECT_EQ(alloc(), PEAL_OK) << peal_last_error_text();
  EXPECT_FALSE(card.mapped.contains(tables.key));
  EXPECT_TRUE(card.keys.contains(key));
  EXPECT_EQ(context->groups.size(), 1u);
}

class FullCardOfPrograms : public FullCard {
 protected:
  peal_error commit(peal_program** program) {
    EXPECT_EQ(peal_program_create(0, 1, nullptr, program), PEAL_OK);
    std::thread player([&] { card.complete(card.await_entry()); });
    const peal_error error = peal_program_commit(group, *program);
    if (error != PEAL_OK) post();  // for whoever waits for an entry
    player.join();
    return error;
  }
};

TEST_F(FullCardOfPrograms, AProgramThatHasEndedMakesRoom) {
  peal_program* ended = nullptr;
  ASSERT_EQ(commit(&ended), PEAL_OK);
  fill();
  {
    const std::lock_guard lock(context->mutex);
    note_ended(*context, ended);
  }
  EXPECT_EQ(alloc(), PEAL_OK) << peal_last_error_text();
  EXPECT_TRUE(card.programs.empty());
}

TEST_F(FullCardOfPrograms, AnIdleRegistrationMakesRoomForAProgram) {
  const uint32_t key = idle(first);
  fill();
  peal_program* program = nullptr;
  EXPECT_EQ(commit(&program), PEAL_OK) << peal_last_error_text();
  EXPECT_FALSE(card.keys.contains(key));
  card.keys_max++;
  EXPECT_TRUE(card.keys.contains(idle(first))) << "it is not found where it was";
  EXPECT_EQ(peal_program_free(program), PEAL_OK);
}

}  // namespace
}  // namespace peal::host
