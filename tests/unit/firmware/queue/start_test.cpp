// SPDX-License-Identifier: BSD-2-Clause
// The host's entry that starts a program, field by field.
#include "firmware/queue/start.h"

#include "tests/unit/firmware/queue/queue_fixture.h"

namespace peal::test {
namespace {

class QueueStart : public QueueTest {
 protected:
  QueueStart() {
    program.sources = {3};
    program.wait(0, 1);
    commit(program.end());
  }
  std::string end_of(const peal_submission& entry) {
    bench.submit(entry);
    settle();
    return log();
  }
  WrittenProgram program;
};

TEST_F(QueueStart, FieldsThatItDoesNotUseAreZero) {
  using Spoil = void (*)(peal_submission&);
  for (const Spoil spoil : {
           Spoil{[](auto& entry) { entry.algorithm = 1; }},
           Spoil{[](auto& entry) { entry.flags = 1; }},
           Spoil{[](auto& entry) { entry.send_offset = 1; }},
           Spoil{[](auto& entry) { entry.receive_offset = 1; }},
           Spoil{[](auto& entry) { entry.receive_key = 1; }},
           Spoil{[](auto& entry) { entry.root = 1; }},
           Spoil{[](auto& entry) { entry.reserved[0] = 1; }},
           Spoil{[](auto& entry) { entry.reserved[2] = 1; }},
       }) {
    peal_submission entry = start_entry(program, 0, 1);
    spoil(entry);
    EXPECT_EQ(end_of(entry), "completes 100 BAD_FLAGS at 0\n");
  }
}

TEST_F(QueueStart, ItNamesAProgramOfItsMember) {
  peal_submission entry = start_entry(program, 0, 1);
  entry.send_key ^= 1u << 16;
  EXPECT_EQ(end_of(entry), "completes 100 BAD_KEY at 0\n");
  entry.send_key = 0xffff;
  EXPECT_EQ(end_of(entry), "completes 100 BAD_KEY at 0\n");
  entry = start_entry(program, 0, 1);
  entry.member ^= 1u << 16;
  EXPECT_EQ(end_of(entry), "completes 100 BAD_GROUP at 0\n");
}

TEST_F(QueueStart, AnotherMembersProgramIsNotItsOwn) {
  const Membership second = bench.join(4, 2, kGroupId + 1);
  peal_submission entry = start_entry(program, 0, 1);
  entry.member = second.handle();
  EXPECT_EQ(end_of(entry), "completes 100 BAD_KEY at 0\n");
}

TEST_F(QueueStart, IterationsFollowOneAnother) {
  EXPECT_EQ(end_of(start_entry(program, 1, 1)), "completes 101 BAD_SEQUENCE at 0\n");
  EXPECT_EQ(end_of(start_entry(program, 0, uint64_t{1} << 32)), "completes 100 BAD_LENGTH at 0\n");
  EXPECT_EQ(end_of(start_entry(program, 0, 0xffffffffu)), "");
  EXPECT_EQ(end_of(start_entry(program, 1, 1)), "completes 101 BAD_SEQUENCE at 0\n");
  EXPECT_EQ(end_of(start_entry(program, 0xffffffffu, 1)), "");
}

TEST_F(QueueStart, OfProgramsThatFailTogetherOneIterationAtATime) {
  WrittenProgram together = program;
  together.memory = {};
  together.name = 8;
  together.mode |= PEAL_PROGRAM_TOGETHER;
  commit(together);
  EXPECT_EQ(end_of(start_entry(together, 0, 2)), "completes 100 BAD_LENGTH at 0\n");
  EXPECT_EQ(end_of(start_entry(together, 0, 1)), "");
}

TEST_F(QueueStart, SoManyMayBeOutstanding) {
  for (uint64_t i = 0; i < CONFIG_QUEUE_STARTS; i++)
    EXPECT_EQ(end_of(start_entry(program, i, 1)), "");
  EXPECT_EQ(card_outstanding(bench.card(), bench.context()), CONFIG_QUEUE_STARTS);
  EXPECT_EQ(end_of(start_entry(program, CONFIG_QUEUE_STARTS, 1)),
            "completes " + std::to_string(100 + CONFIG_QUEUE_STARTS) + " TOO_MANY at 0\n");
  notice(3, 0, 1, 0);
  EXPECT_EQ(log(), "completes 100 OK\n");
  EXPECT_EQ(end_of(start_entry(program, CONFIG_QUEUE_STARTS, 1)), "");
}

TEST_F(QueueStart, AFailedStartOfSeveralIterationsIsOverWhole) {
  constexpr uint64_t kPasses = CONFIG_QUEUE_STARTS + 2;
  bench.submit(start_entry(program, 0, kPasses));
  settle();
  notice(3, 0, 1, 0);
  notice(3, 0, 1, 1 + CONFIG_QUEUE_STARTS);  // too far ahead of iteration 1
  EXPECT_EQ(log(), "completes 100 BAD_PROGRAM at 0 ahead rank 3\n");
  EXPECT_EQ(notice_changes(3, 0, 1, kPasses - 1), "+1 notices_stale");
  EXPECT_EQ(end_of(start_entry(program, kPasses, 1)), "");
  notice(3, 0, 1, kPasses);
  EXPECT_EQ(log(), "completes " + std::to_string(100 + kPasses) + " OK\n");
}

}  // namespace
}  // namespace peal::test
