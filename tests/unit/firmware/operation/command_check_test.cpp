// SPDX-License-Identifier: BSD-2-Clause
// Submissions that are refused: a good entry with one thing wrong completes with the status that
// names it, is counted, and changes nothing; the good entry, with the same sequence number, then
// runs.
#include "firmware/operation/command_check.h"

#include <functional>

#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

// What the table's changes may refer to.
struct Keys {
  Memory send;           // kBlockMax bytes, read only
  Memory receive;        // kBlockMax * ranks bytes, read and write
  Memory write_only;     // as receive, write only
  Memory foreign;        // another context's
  uint32_t stale;        // of a region that was unregistered
  uint32_t other_group;  // a member handle of the other context
};

struct BadEntry {
  const char* name;
  std::function<void(peal_submission&, const Keys&)> spoil;
  const char* status;
};

void PrintTo(const BadEntry& bad, std::ostream* out) { *out << bad.name; }

class CommandTest : public GroupTest {
 protected:
  static constexpr size_t kReceiveBytes = kBlockMax * 4;

  CommandTest() {
    other_context = bench.open_context();
    keys.send = send;
    keys.receive = receive;
    keys.write_only = bench.add_memory("write_only", kReceiveBytes, PEAL_ACCESS_WRITE);
    keys.foreign = bench.add_memory_of(other_context, "foreign", kReceiveBytes,
                                       PEAL_ACCESS_READ | PEAL_ACCESS_WRITE);
    const Memory gone = bench.add_memory("gone", kReceiveBytes);
    RegionId region = 0;
    EXPECT_EQ(card_unregister_memory(bench.card(), bench.context(), gone.key, &region),
              PEAL_STATUS_OK);
    EXPECT_EQ(region, gone.region);
    bench.port.remove_region(region);
    keys.stale = gone.key;
    keys.other_group = bench.reserve_in(other_context, 2, 0).handle();
  }

  [[nodiscard]] peal_submission good_entry() const {
    return allgather_entry(member, 0, 7, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, kBlock, send.key,
                           receive.key);
  }
  void expect_refused(const peal_submission& entry, const char* status) {
    const auto before = bench.counters();
    const TimeNs deadline = card_next_deadline(bench.card());
    bench.submit(entry);
    EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=7 " + std::string(status) + "\n");
    EXPECT_EQ(bench.counter_changes(before), "+1 commands_refused");
    EXPECT_EQ(card_next_deadline(bench.card()), deadline);
    EXPECT_EQ(card_outstanding(bench.card(), bench.context()), 0u);
    EXPECT_EQ(card_holds(bench.card()).operations, 0u);
  }
  void expect_good_still_runs() {
    fill_send(0, kBlock);
    bench.submit(good_entry());
    bench.finish_all_dma();
    deliver_others(0, kBlock);
    EXPECT_EQ(bench.take_wire_log(),
              "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
              "send 1>3 DATA seq=0 piece=0 origin=1 hop=1 len=64\n"
              "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 len=64\n"
              "complete ctx0 cookie=7 OK\n");
    EXPECT_EQ(wrong_byte(0, kBlock), -1);
  }

  ContextId other_context;
  Keys keys{};
};

class BadCommand : public CommandTest, public ::testing::WithParamInterface<BadEntry> {};

TEST_P(BadCommand, IsNamedCountedAndChangesNothing) {
  peal_submission entry = good_entry();
  GetParam().spoil(entry, keys);
  expect_refused(entry, GetParam().status);
  expect_good_still_runs();
}

using S = peal_submission;

template <typename Field, typename Value>
std::function<void(S&, const Keys&)> set(Field S::*field, Value value) {
  return [=](S& entry, const Keys&) { entry.*field = static_cast<Field>(value); };
}

INSTANTIATE_TEST_SUITE_P(
    Entries, BadCommand,
    ::testing::Values(
        BadEntry{"opcode_none", set(&S::operation, 0), "BAD_OPCODE"},
        BadEntry{"opcode_recycle", set(&S::operation, PEAL_OPERATION_RECYCLE), "BAD_OPCODE"},
        BadEntry{"opcode_beyond", set(&S::operation, PEAL_OPERATION_COUNT), "BAD_OPCODE"},
        BadEntry{"opcode_255", set(&S::operation, 255), "BAD_OPCODE"},
        BadEntry{"algorithm_none", set(&S::algorithm, 0), "BAD_ALGORITHM"},
        BadEntry{"algorithm_of_barrier", set(&S::algorithm, PEAL_ALGORITHM_DISSEMINATION),
                 "BAD_ALGORITHM"},
        BadEntry{"algorithm_beyond", set(&S::algorithm, PEAL_ALGORITHM_COUNT), "BAD_ALGORITHM"},
        BadEntry{"flags_unknown", set(&S::flags, 0x8000), "BAD_FLAGS"},
        BadEntry{"flags_unknown_beside_known", set(&S::flags, PEAL_SUBMIT_IN_PLACE | 2), "BAD_FLAGS"},
        BadEntry{"reserved_first", [](S& e, const Keys&) { e.reserved[0] = 1; }, "BAD_FLAGS"},
        BadEntry{"reserved_last", [](S& e, const Keys&) { e.reserved[2] = 0x80; }, "BAD_FLAGS"},
        BadEntry{"root", set(&S::root, 1), "BAD_ROOT"},
        BadEntry{"member_index", [](S& e, const Keys&) { e.member |= 0xffff; }, "BAD_GROUP"},
        BadEntry{"member_free_slot", [](S& e, const Keys&) { e.member += 3; }, "BAD_GROUP"},
        BadEntry{"member_generation", [](S& e, const Keys&) { e.member += 0x10000; }, "BAD_GROUP"},
        BadEntry{"member_generation_zero", [](S& e, const Keys&) { e.member &= 0xffff; }, "BAD_GROUP"},
        BadEntry{"member_of_other_context", [](S& e, const Keys& k) { e.member = k.other_group; },
                 "BAD_GROUP"},
        BadEntry{"sequence_ahead", set(&S::sequence, 1), "BAD_SEQUENCE"},
        BadEntry{"sequence_2_to_the_32", set(&S::sequence, uint64_t{1} << 32), "BAD_SEQUENCE"},
        BadEntry{"sequence_all_ones", set(&S::sequence, ~uint64_t{0}), "BAD_SEQUENCE"},
        BadEntry{"send_key_zero_index_wrong", [](S& e, const Keys&) { e.send_key = 0; }, "BAD_KEY"},
        BadEntry{"send_key_index", [](S& e, const Keys&) { e.send_key |= 0xffff; }, "BAD_KEY"},
        BadEntry{"send_key_generation", [](S& e, const Keys&) { e.send_key += 0x10000; }, "BAD_KEY"},
        BadEntry{"send_key_foreign", [](S& e, const Keys& k) { e.send_key = k.foreign.key; }, "BAD_KEY"},
        BadEntry{"send_key_stale", [](S& e, const Keys& k) { e.send_key = k.stale; }, "BAD_KEY"},
        BadEntry{"receive_key_index", [](S& e, const Keys&) { e.receive_key |= 0xffff; }, "BAD_KEY"},
        BadEntry{"receive_key_generation", [](S& e, const Keys&) { e.receive_key += 0x10000; },
                 "BAD_KEY"},
        BadEntry{"receive_key_foreign", [](S& e, const Keys& k) { e.receive_key = k.foreign.key; },
                 "BAD_KEY"},
        BadEntry{"receive_key_stale", [](S& e, const Keys& k) { e.receive_key = k.stale; }, "BAD_KEY"},
        BadEntry{"receive_into_read_only", [](S& e, const Keys& k) { e.receive_key = k.send.key;
                                                                     e.block_bytes = 8; },
                 "BAD_ACCESS"},
        BadEntry{"send_from_write_only", [](S& e, const Keys& k) { e.send_key = k.write_only.key; },
                 "BAD_ACCESS"},
        BadEntry{"in_place_in_write_only",
                 [](S& e, const Keys& k) {
                   e.flags = PEAL_SUBMIT_IN_PLACE;
                   e.receive_key = k.write_only.key;
                 },
                 "BAD_ACCESS"}),
    [](const auto& test) { return std::string(test.param.name); });

constexpr uint64_t kSendBytes = 4 * CONFIG_MTU_BYTES;
constexpr uint64_t kReceiveBytes = 4 * kSendBytes;
constexpr uint64_t kOnes = ~uint64_t{0};

INSTANTIATE_TEST_SUITE_P(
    Bounds, BadCommand,
    ::testing::Values(
        BadEntry{"send_one_byte_over", set(&S::send_offset, kSendBytes - kBlock + 1), "BAD_BOUNDS"},
        BadEntry{"send_offset_at_end", set(&S::send_offset, kSendBytes), "BAD_BOUNDS"},
        BadEntry{"send_offset_all_ones", set(&S::send_offset, kOnes), "BAD_BOUNDS"},
        BadEntry{"send_offset_overflows_to_zero", set(&S::send_offset, kOnes - kBlock + 1),
                 "BAD_BOUNDS"},
        BadEntry{"receive_one_byte_over", set(&S::receive_offset, kReceiveBytes - 4 * kBlock + 1),
                 "BAD_BOUNDS"},
        BadEntry{"receive_offset_overflows", set(&S::receive_offset, kOnes - 4 * kBlock + 1),
                 "BAD_BOUNDS"},
        BadEntry{"receive_offset_2_to_the_63", set(&S::receive_offset, uint64_t{1} << 63),
                 "BAD_BOUNDS"},
        BadEntry{"block_too_long_for_receive", set(&S::block_bytes, kReceiveBytes / 4 + 1),
                 "BAD_BOUNDS"},
        BadEntry{"block_times_ranks_is_2_to_the_32", set(&S::block_bytes, uint64_t{1} << 30),
                 "BAD_BOUNDS"},
        BadEntry{"block_2_to_the_32_less_1", set(&S::block_bytes, 0xffffffffu), "BAD_BOUNDS"},
        BadEntry{"block_2_to_the_32", set(&S::block_bytes, uint64_t{1} << 32), "BAD_LENGTH"},
        BadEntry{"block_times_ranks_overflows", set(&S::block_bytes, uint64_t{1} << 62),
                 "BAD_LENGTH"},
        BadEntry{"block_2_to_the_32_and_a_good_rest",
                 set(&S::block_bytes, (uint64_t{1} << 32) + kBlock), "BAD_LENGTH"},
        BadEntry{"in_place_overflows",
                 [](S& e, const Keys&) {
                   e.flags = PEAL_SUBMIT_IN_PLACE;
                   e.receive_offset = kOnes - kBlock + 1;
                 },
                 "BAD_BOUNDS"}),
    [](const auto& test) { return std::string(test.param.name); });

// --- the same for barrier and destroy, which take no memory ---

class BadBarrier : public CommandTest, public ::testing::WithParamInterface<BadEntry> {};

TEST_P(BadBarrier, IsNamedCountedAndChangesNothing) {
  for (const uint8_t operation : {PEAL_OPERATION_BARRIER, PEAL_OPERATION_DESTROY}) {
    peal_submission entry = barrier_entry(member, 0, 7);
    entry.operation = operation;
    GetParam().spoil(entry, keys);
    expect_refused(entry, GetParam().status);
  }
  expect_good_still_runs();
}

INSTANTIATE_TEST_SUITE_P(
    Entries, BadBarrier,
    ::testing::Values(
        BadEntry{"in_place", set(&S::flags, PEAL_SUBMIT_IN_PLACE), "BAD_FLAGS"},
        BadEntry{"block_bytes", set(&S::block_bytes, 8), "BAD_LENGTH"},
        BadEntry{"block_bytes_2_to_the_32", set(&S::block_bytes, uint64_t{1} << 32), "BAD_LENGTH"},
        BadEntry{"root", set(&S::root, 3), "BAD_ROOT"},
        BadEntry{"algorithm_of_allgather", set(&S::algorithm, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST),
                 "BAD_ALGORITHM"},
        BadEntry{"sequence", set(&S::sequence, 5), "BAD_SEQUENCE"}),
    [](const auto& test) { return std::string(test.param.name); });

// --- limits that are just right ---

TEST_F(CommandTest, ReservedMembersTakeNoCommands) {
  const Membership reserved = bench.reserve(2, 0);
  peal_submission entry = barrier_entry(reserved, 0, 7);
  expect_refused(entry, "BAD_GROUP");
}

TEST_F(CommandTest, BuffersUsedToTheLastByteAreGood) {
  peal_submission entry = good_entry();
  entry.send_offset = kSendBytes - kBlock;
  entry.receive_offset = kReceiveBytes - 4 * kBlock;
  bench.submit(entry);
  EXPECT_EQ(bench.take_log(), "dma_read send+" + std::to_string(kBlockMax - kBlock) + " 64\n");
  EXPECT_EQ(card_outstanding(bench.card(), bench.context()), 1u);
}

TEST_F(CommandTest, SequenceCannotBeUsedTwice) {
  bench.submit(good_entry());
  bench.take_log();
  bench.submit(good_entry());
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=7 BAD_SEQUENCE\n");
}

TEST_F(CommandTest, AnotherContextsMemberIsNotOurs) {
  const auto before = bench.counters();
  bench.submit_in(other_context, good_entry());
  EXPECT_EQ(bench.take_log(),
            "complete ctx" + std::to_string(other_context) + " cookie=7 BAD_GROUP\n");
  EXPECT_EQ(bench.counter_changes(before), "+1 commands_refused");
  expect_good_still_runs();
}

// --- memory keys ---

TEST_F(CommandTest, KeyInUseCannotBeUnregistered) {
  fill_send(0, kBlock);
  bench.submit(good_entry());
  RegionId region = 99;
  EXPECT_EQ(card_unregister_memory(bench.card(), bench.context(), send.key, &region),
            PEAL_STATUS_BUSY);
  EXPECT_EQ(card_unregister_memory(bench.card(), bench.context(), receive.key, &region),
            PEAL_STATUS_BUSY);
  bench.finish_all_dma();
  deliver_others(0, kBlock);
  EXPECT_EQ(card_unregister_memory(bench.card(), bench.context(), send.key, &region),
            PEAL_STATUS_OK);
  EXPECT_EQ(region, send.region);
  EXPECT_EQ(card_unregister_memory(bench.card(), bench.context(), send.key, &region),
            PEAL_STATUS_BAD_KEY);
}

TEST_F(CommandTest, ForeignKeyCannotBeUnregistered) {
  RegionId region = 0;
  EXPECT_EQ(card_unregister_memory(bench.card(), bench.context(), keys.foreign.key, &region),
            PEAL_STATUS_BAD_KEY);
  EXPECT_EQ(card_unregister_memory(bench.card(), other_context, keys.foreign.key, &region),
            PEAL_STATUS_OK);
}

TEST_F(CommandTest, RegistrationIsChecked) {
  uint32_t key = 0;
  const auto try_register = [&](ContextId context, uint64_t bytes, uint32_t access) {
    return card_register_memory(bench.card(), context, send.region, bytes, access, &key);
  };
  EXPECT_EQ(try_register(bench.context(), 8, 0), PEAL_STATUS_BAD_ACCESS);
  EXPECT_EQ(try_register(bench.context(), 8, PEAL_ACCESS_FLAGS + 1), PEAL_STATUS_BAD_ACCESS);
  EXPECT_NE(try_register(CONFIG_CONTEXTS, 8, PEAL_ACCESS_READ), PEAL_STATUS_OK);
  EXPECT_NE(try_register(CONFIG_CONTEXTS - 1, 8, PEAL_ACCESS_READ), PEAL_STATUS_OK);  // not open
}

TEST_F(CommandTest, FullKeyTableIsAnErrorAndAFreedKeyComesBackUnderAnotherGeneration) {
  std::vector<uint32_t> taken;
  uint32_t key = 0;
  peal_status status = PEAL_STATUS_OK;
  while ((status = card_register_memory(bench.card(), bench.context(), send.region, 8,
                                        PEAL_ACCESS_READ, &key)) == PEAL_STATUS_OK) {
    taken.push_back(key);
    ASSERT_LE(taken.size(), size_t{CONFIG_MEMORY_KEYS});
  }
  EXPECT_EQ(status, PEAL_STATUS_NO_RESOURCES);
  ASSERT_FALSE(taken.empty());
  RegionId region = 0;
  ASSERT_EQ(card_unregister_memory(bench.card(), bench.context(), taken.back(), &region),
            PEAL_STATUS_OK);
  ASSERT_EQ(
      card_register_memory(bench.card(), bench.context(), send.region, 8, PEAL_ACCESS_READ, &key),
      PEAL_STATUS_OK);
  EXPECT_EQ(key & 0xffff, taken.back() & 0xffff);
  EXPECT_NE(key, taken.back());
}

// Zero stands for no key, however often a place is used.
TEST_F(CommandTest, NoKeyIsEverZero) {
  CardBench other({.index = 5});
  uint32_t key = 0;
  RegionId region = 0;
  for (uint32_t i = 0; i < 0x10002; i++) {
    ASSERT_EQ(card_register_memory(other.card(), other.context(), 7, 8, PEAL_ACCESS_READ, &key),
              PEAL_STATUS_OK);
    ASSERT_NE(key, 0u) << i;
    ASSERT_EQ(card_unregister_memory(other.card(), other.context(), key, &region), PEAL_STATUS_OK);
  }
}

// An operation that fails gives its keys back too.
TEST_F(CommandTest, KeysAreFreeAfterAFailure) {
  fill_send(0, kBlock);
  bench.submit(good_entry());
  bench.finish_all_dma();
  bench.deliver(wire.death(0, 3));
  RegionId region = 0;
  for (const uint32_t key : {send.key, receive.key}) {
    EXPECT_EQ(card_unregister_memory(bench.card(), bench.context(), key, &region), PEAL_STATUS_OK);
  }
}

}  // namespace
}  // namespace peal::test
