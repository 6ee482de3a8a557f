// SPDX-License-Identifier: BSD-2-Clause
// What a card reads of a program as it was written.
#include "hostlib/program.h"

#include <gtest/gtest.h>

#include <cstring>

namespace peal::host {
namespace {

class Encoded : public ::testing::Test {
 protected:
  // Memory from 0x1000 to 0x2000 has key 5.
  bool encode(const Program& program) {
    const auto find = [](const void* memory, uint64_t length, bool written, uint32_t* key,
                         uint64_t* offset) {
      const auto address = reinterpret_cast<uintptr_t>(memory);
      if (address < 0x1000 || address + length > 0x2000) return false;
      *key = written ? 6 : 5;
      *offset = address - 0x1000;
      return true;
    };
    bytes.assign(program.bytes(), 0xee);
    counters = static_cast<uint32_t>(program.sources().size());
    return program.encode(find, bytes.data(), &bad_step);
  }
  [[nodiscard]] peal_descriptor at(size_t index) const {
    peal_descriptor descriptor;
    std::memcpy(&descriptor,
                bytes.data() + peal_program_sources_bytes(counters) + index * sizeof(descriptor),
                sizeof(descriptor));
    return descriptor;
  }
  [[nodiscard]] size_t table_bytes() const { return peal_program_sources_bytes(counters); }
  static bool same(const peal_descriptor& a, const peal_descriptor& b) {
    return std::memcmp(&a, &b, sizeof(a)) == 0;
  }

  static void* memory(uintptr_t address) { return reinterpret_cast<void*>(address); }
  std::vector<uint8_t> bytes;
  uint32_t counters = 0;
  uint32_t bad_step = ~0u;
};

TEST_F(Encoded, SourcesComeFirstThenWholeLines) {
  Program program({.rank = 1, .ranks = 4});
  program.add_counter(3);
  program.add_counter(PEAL_ANY_RANK);
  EXPECT_EQ(program.bytes(), 64u + 2 * 64);
  ASSERT_TRUE(encode(program));
  const uint32_t expected[16] = {3, PEAL_ANY_RANK};
  EXPECT_EQ(std::memcmp(bytes.data(), expected, sizeof(expected)), 0);
  EXPECT_EQ(at(0).opcode, PEAL_PROGRAM_COMPLETE);
  EXPECT_EQ(at(1).opcode, PEAL_PROGRAM_JUMP);
}

TEST_F(Encoded, WithoutCountersThereIsNoTable) {
  Program program({.rank = 0, .ranks = 1});
  EXPECT_EQ(program.bytes(), 2u * 64);
  ASSERT_TRUE(encode(program));
  EXPECT_EQ(at(0).opcode, PEAL_PROGRAM_COMPLETE);
}

TEST_F(Encoded, EachOpcodeHasItsFieldsAndNoOthers) {
  Program other({.rank = 1, .ranks = 4});
  Program program({.rank = 1, .ranks = 4});
  program.set_name(40);
  other.set_name(41);
  const uint16_t own = program.add_counter(1);
  const Program::Notice notice = {.counter = 2, .steps = 3};
  program.put(2, memory(0x1010), 32, {.key = 9, .offset = 77}, &notice, own);
  program.put(2, memory(0x1010), 32, {.key = 9, .offset = 77}, nullptr);
  program.put(2, nullptr, 0, {.key = 9, .offset = 77}, &notice);
  program.send(3, 11, memory(0x1020), 16, own);
  program.receive(0, 12, memory(0x1030), 8);
  program.wait(own, 5);
  program.signal(3, {.program = &other, .counter = 4}, own);
  ASSERT_TRUE(encode(program));

  peal_descriptor put{};
  put.opcode = PEAL_PROGRAM_PUT;
  put.queue = 40;
  put.counter = 2;
  put.steps = 3;
  put.done = own;
  put.rank = 2;
  put.bytes = 32;
  put.key = 5;
  put.offset = 0x10;
  put.remote_key = 9;
  put.remote_offset = 77;
  EXPECT_TRUE(same(at(0), put));
  put.queue = PEAL_NO_QUEUE;
  put.counter = 0;
  put.steps = 0;
  put.done = PEAL_NO_COUNTER;
  EXPECT_TRUE(same(at(1), put));
  peal_descriptor empty{};
  empty.opcode = PEAL_PROGRAM_PUT;
  empty.queue = 40;
  empty.counter = 2;
  empty.steps = 3;
  empty.done = PEAL_NO_COUNTER;
  empty.rank = 2;
  EXPECT_TRUE(same(at(2), empty));
  peal_descriptor send{};
  send.opcode = PEAL_PROGRAM_SEND;
  send.done = own;
  send.rank = 3;
  send.tag = 11;
  send.bytes = 16;
  send.key = 5;
  send.offset = 0x20;
  EXPECT_TRUE(same(at(3), send));
  peal_descriptor receive{};
  receive.opcode = PEAL_PROGRAM_RECEIVE;
  receive.done = PEAL_NO_COUNTER;
  receive.tag = 12;
  receive.bytes = 8;
  receive.key = 6;
  receive.offset = 0x30;
  EXPECT_TRUE(same(at(4), receive));
  peal_descriptor wait{};
  wait.opcode = PEAL_PROGRAM_WAIT;
  wait.counter = own;
  wait.threshold = 5;
  EXPECT_TRUE(same(at(5), wait));
  peal_descriptor signal{};
  signal.opcode = PEAL_PROGRAM_SIGNAL;
  signal.queue = 41;
  signal.counter = 4;
  signal.steps = 1;
  signal.done = own;
  signal.rank = 3;
  EXPECT_TRUE(same(at(6), signal));
}

TEST_F(Encoded, ItIsWhatACardTakes) {
  Program program({.rank = 1, .ranks = 4});
  program.set_name(0);
  const uint16_t own = program.add_counter(1);
  const Program::Notice notice = {.counter = 2, .steps = 3};
  program.put(2, memory(0x1010), 32, {.key = 9, .offset = 77}, &notice, own);
  program.put(2, memory(0x1010), 0, {.key = 9, .offset = 77}, &notice, own);
  EXPECT_TRUE(program.gate(own, 1));
  program.send(3, 11, memory(0x1020), 16, own);
  program.receive(0, 12, memory(0x1030), 8);
  program.wait(own, 3);
  program.signal(1, notice);
  ASSERT_TRUE(encode(program));
  const peal_program_shape shape = {
      1, 4, program.count(), 1, PEAL_PROGRAM_MODE_TASKS, program.sources().data()};
  for (uint32_t i = 0; i < program.count(); i++) {
    const peal_descriptor descriptor = at(i);
    EXPECT_EQ(peal_check_descriptor(&shape, i, &descriptor), PEAL_PROGRAM_REASON_NONE) << i;
  }
}

TEST_F(Encoded, MemoryThatIsNotRegisteredIsNamedByItsStep) {
  Program program({.rank = 1, .ranks = 4});
  program.put(2, memory(0x1010), 32, {.key = 9, .offset = 0}, nullptr);
  program.send(2, 0, memory(0x1ff0), 17);
  EXPECT_FALSE(encode(program));
  EXPECT_EQ(bad_step, 1u);
}

}  // namespace
}  // namespace peal::host
