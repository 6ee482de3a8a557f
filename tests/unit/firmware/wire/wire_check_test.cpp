// SPDX-License-Identifier: BSD-2-Clause
// Frames that are refused before any state is looked at. Each is a good packet with one thing
// wrong: its own counter grows by one and nothing else happens;
// then the good packet itself is taken.
#include "firmware/wire/wire_check.h"

#include <functional>

#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

struct BadFrame {
  const char* name;
  std::function<void(Frame&)> spoil;  // seals where the checksum is to stay right
  const char* counted;
};

void PrintTo(const BadFrame& bad, std::ostream* out) { *out << bad.name; }

// Changes a header field and sums again.
template <typename Field, typename Value>
std::function<void(Frame&)> set(Field peal_wire_header::*field, Value value) {
  return [=](Frame& frame) {
    frame.header.*field = static_cast<Field>(value);
    seal_checksums(frame);
  };
}

std::function<void(Frame&)> flip_bit(size_t bit) {
  return [=](Frame& frame) {
    if (bit < 8 * PEAL_HEADER_BYTES) {
      reinterpret_cast<uint8_t*>(&frame.header)[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    } else {
      frame.payload.at(bit / 8 - PEAL_HEADER_BYTES) ^= static_cast<uint8_t>(1 << bit % 8);
    }
  };
}

std::function<void(Frame&)> resize(size_t bytes) {
  return [=](Frame& frame) { frame.payload.resize(bytes); };
}

std::function<void(Frame&)> resize_and_seal(size_t bytes) {
  return [=](Frame& frame) {
    frame.payload.resize(bytes);
    seal(frame);
  };
}

class BadData : public GroupTest, public ::testing::WithParamInterface<BadFrame> {};

TEST_P(BadData, IsCountedAndChangesNothing) {
  post_broadcast(0, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  const Frame good = block_of(0, 0, kBlock);
  Frame bad = good;
  GetParam().spoil(bad);

  const auto before = bench.counters();
  const TimeNs deadline = card_next_deadline(bench.card());
  bench.deliver(bad);
  EXPECT_EQ(bench.counter_changes(before), std::string("+1 ") + GetParam().counted);
  EXPECT_EQ(bench.take_log(), "");
  EXPECT_EQ(card_next_deadline(bench.card()), deadline);
  EXPECT_EQ(card_holds(bench.card()).packets, bench.port.packets_unsent());

  deliver_others(0, kBlock);
  EXPECT_EQ(bench.take_log(),
            "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 len=64\n"
            "dma_write receive+0 256\n"
            "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

using H = peal_wire_header;

INSTANTIATE_TEST_SUITE_P(
    Frames, BadData,
    ::testing::Values(
        BadFrame{"ethertype", set(&H::ethertype, 0x0008), "drop_ethertype"},
        BadFrame{"ethertype_little_endian", set(&H::ethertype, PEAL_ETHERTYPE), "drop_ethertype"},
        BadFrame{"version_zero", set(&H::version, 0), "drop_version"},
        BadFrame{"version_next", set(&H::version, PEAL_WIRE_VERSION + 1), "drop_version"},
        BadFrame{"type_zero", set(&H::type, 0), "drop_type"},
        BadFrame{"type_beyond", set(&H::type, PEAL_PACKET_TYPE_COUNT), "drop_type"},
        BadFrame{"type_255", set(&H::type, 255), "drop_type"},
        BadFrame{"signal_of_allgather", set(&H::type, PEAL_PACKET_SIGNAL), "drop_type"},
        BadFrame{"death_of_operation", set(&H::type, PEAL_PACKET_DEATH), "drop_type"},
        BadFrame{"probe_of_operation", set(&H::type, PEAL_PACKET_PROBE), "drop_type"},
        BadFrame{"not_yet_with_payload", set(&H::type, PEAL_PACKET_NOT_YET), "drop_length"},
        BadFrame{"nack_of_odd_length", set(&H::type, PEAL_PACKET_NACK), "drop_length"},
        BadFrame{"flags", set(&H::flags, 0x80), "drop_type"},
        BadFrame{"operation_none", set(&H::operation, PEAL_OPERATION_NONE), "drop_type"},
        BadFrame{"operation_beyond", set(&H::operation, PEAL_OPERATION_COUNT), "drop_type"},
        BadFrame{"data_of_barrier", set(&H::operation, PEAL_OPERATION_BARRIER), "drop_type"},
        BadFrame{"algorithm_none", set(&H::algorithm, PEAL_ALGORITHM_NONE), "drop_type"},
        BadFrame{"algorithm_beyond", set(&H::algorithm, PEAL_ALGORITHM_COUNT), "drop_type"},
        BadFrame{"algorithm_of_barrier", set(&H::algorithm, PEAL_ALGORITHM_DISSEMINATION),
                 "drop_type"},
        BadFrame{"block_bytes", set(&H::block_bytes, kBlock + 1), "drop_signature"},
        BadFrame{"length_short_of_frame", set(&H::length, kBlock - 1), "drop_length"},
        BadFrame{"length_beyond_frame", set(&H::length, kBlock + 1), "drop_length"},
        BadFrame{"length_beyond_mtu", set(&H::length, CONFIG_MTU_BYTES + 1), "drop_oversized"},
        BadFrame{"payload_cut_off", resize(kBlock - 8), "drop_length"},
        BadFrame{"payload_gone", resize(0), "drop_length"},
        BadFrame{"payload_too_long", resize(kBlock + 1), "drop_length"},
        BadFrame{"oversized", resize_and_seal(CONFIG_MTU_BYTES + 1), "drop_oversized"},
        BadFrame{"jumbo", resize_and_seal(0xffff), "drop_oversized"},
        BadFrame{"group_bit", flip_bit(8 * offsetof(H, group)), "drop_checksum"},
        BadFrame{"origin_bit", flip_bit(8 * offsetof(H, origin)), "drop_checksum"},
        BadFrame{"destination_bit", flip_bit(3), "drop_checksum"},
        BadFrame{"last_header_bit", flip_bit(511), "drop_checksum"},
        BadFrame{"first_payload_bit", flip_bit(512), "drop_checksum"},
        BadFrame{"last_payload_bit", flip_bit(512 + 8 * kBlock - 1), "drop_checksum"},
        BadFrame{"header_sum", flip_bit(8 * offsetof(H, header_crc) + 31), "drop_checksum"},
        BadFrame{"payload_sum", flip_bit(8 * offsetof(H, payload_crc)), "drop_checksum"}),
    [](const auto& test) { return std::string(test.param.name); });

// --- the same for the small packets ---

class BadSignal : public GroupTest, public ::testing::WithParamInterface<BadFrame> {};

TEST_P(BadSignal, IsCountedAndChangesNothing) {
  post_barrier(0);
  bench.take_log();
  const Frame good = wire.signal(behind(0), kBarrierShape, 0, 0);
  Frame bad = good;
  GetParam().spoil(bad);
  const auto before = bench.counters();
  bench.deliver(bad);
  EXPECT_EQ(bench.counter_changes(before), std::string("+1 ") + GetParam().counted);
  EXPECT_EQ(bench.take_log(), "");
  bench.deliver(good);
  EXPECT_EQ(bench.take_log(), "send 1>3 SIGNAL barrier seq=0 round=1\n");
}

INSTANTIATE_TEST_SUITE_P(
    Frames, BadSignal,
    ::testing::Values(
        BadFrame{"block_bytes", set(&H::block_bytes, 8), "drop_type"},
        BadFrame{"algorithm", set(&H::algorithm, PEAL_ALGORITHM_RECURSIVE_DOUBLING), "drop_type"},
        BadFrame{"operation", set(&H::operation, PEAL_OPERATION_NONE), "drop_type"},
        BadFrame{"payload", resize_and_seal(1), "drop_length"},
        BadFrame{"type_nack_without_payload", set(&H::type, PEAL_PACKET_NACK), "drop_length"},
        BadFrame{"type_refuse_without_payload", set(&H::type, PEAL_PACKET_REFUSE), "drop_length"},
        BadFrame{"type_death", set(&H::type, PEAL_PACKET_DEATH), "drop_type"}),
    [](const auto& test) { return std::string(test.param.name); });

class WireCheck : public GroupTest {};

// Frames too short for a header; the runner promises 64 readable bytes, whatever is in them.
TEST_F(WireCheck, ShortFramesAreCountedWhateverTheyHold) {
  Frame frame = block_of(0, 0, 8);
  frame.payload.clear();
  for (uint32_t bytes = 0; bytes < PEAL_HEADER_BYTES; bytes++) {
    const auto before = bench.counters();
    bench.deliver_raw(frame, bytes);
    EXPECT_EQ(bench.counter_changes(before), "+1 drop_short") << bytes;
  }
  EXPECT_EQ(bench.take_log(), "");
}

// Every bit of a frame is under a checksum or under a check of its own.
TEST_F(WireCheck, NoFlippedBitGetsThrough) {
  post_broadcast(0, 8);
  bench.finish_all_dma();
  bench.take_log();
  const Frame good = block_of(0, 0, 8);
  const uint64_t received = bench.counter(PEAL_COUNTER_RECEIVED);
  for (size_t bit = 0; bit < 8 * good.bytes(); bit++) {
    Frame bad = good;
    flip_bit(bit)(bad);
    bench.deliver(bad);
    ASSERT_EQ(bench.counter(PEAL_COUNTER_RECEIVED), received) << "bit " << bit;
    ASSERT_EQ(bench.take_log(), "") << "bit " << bit;
  }
}

// Where the port takes care of checksums, or nobody needs to, the firmware does not look at them.
class OthersSum : public GroupTest, public ::testing::WithParamInterface<Checksums> {
 protected:
  static BenchOptions with(Checksums checksums) {
    BenchOptions options;
    options.checksums = checksums;
    return options;
  }
  OthersSum() : GroupTest(4, 1, with(GetParam())) {}
};

INSTANTIATE_TEST_SUITE_P(Checksums, OthersSum,
                         ::testing::Values(Checksums::kHardware, Checksums::kSkipped));

TEST_P(OthersSum, TheFieldIsNotLookedAt) {
  post_barrier(0);
  bench.take_log();
  Frame frame = wire.signal(behind(0), kBarrierShape, 0, 0);
  frame.header.header_crc = 0;
  frame.header.payload_crc = 0;
  bench.deliver(frame);
  EXPECT_EQ(bench.take_log(), "send 1>3 SIGNAL barrier seq=0 round=1\n");
}

// Recycling is nobody's to refuse.
TEST_F(WireCheck, RecyclingIsNotRefused) {
  const OperationShape recycling{PEAL_OPERATION_RECYCLE, PEAL_ALGORITHM_BINOMIAL, 0};
  const auto before = bench.counters();
  bench.deliver(wire.refuse(2, recycling, 0, 3));
  EXPECT_EQ(bench.counter_changes(before), "+1 drop_type");
  EXPECT_EQ(bench.take_log(), "");
}

// Half of a group's id is on the wire;
// what belongs to no operation shows that its sender knows all.
TEST_F(WireCheck, WhatIsOfNoOperationKnowsTheWholeGroup) {
  for (Frame frame : {wire.death(2, 3), wire.probe(2), wire.alive(2), wire.farewell(2)}) {
    frame.header.signature ^= 1;
    seal(frame);
    const auto before = bench.counters();
    bench.deliver(frame);
    EXPECT_EQ(bench.counter_changes(before), "+1 drop_signature");
    EXPECT_EQ(bench.take_log(), "");
  }
}

// That packets were lost questions say, answers and signals, and nothing else.
TEST_F(WireCheck, DataDoesNotSayThatPacketsWereLost) {
  post_broadcast(0, 8);
  bench.finish_all_dma();
  bench.take_log();
  for (Frame frame : {block_of(0, 0, 8), wire.probe(2), wire.farewell(2)}) {
    frame.header.flags |= PEAL_PACKET_LOSSES;
    seal(frame);
    EXPECT_EQ(change(frame), "+1 drop_type");
  }
  Frame unknown = wire.probe(2);
  unknown.header.flags |= PEAL_PACKET_FLAGS + 1;
  seal(unknown);
  EXPECT_EQ(change(unknown), "+1 drop_type");
  EXPECT_EQ(bench.take_log(), "");
}

}  // namespace
}  // namespace peal::test
