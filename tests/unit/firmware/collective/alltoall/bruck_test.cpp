// SPDX-License-Identifier: BSD-2-Clause
// Bruck's all-to-all as one rank sees it: step by step, early, repeated, malformed, lost; in
// staging and, where the image has no room there, piece by piece through the channel.
#include "firmware/collective/alltoall/bruck.h"

#include "firmware/operation/layout.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

constexpr size_t kBlock = 64;
constexpr uint32_t kWindow = CONFIG_PIECE_WINDOW;

class BruckBase : public GroupTest {
 protected:
  explicit BruckBase(uint32_t ranks_ = 4, uint32_t rank_ = 1, size_t block_max = kBlockMax)
      : GroupTest(ranks_, rank_),
        given(bench.add_memory("given", block_max * ranks, PEAL_ACCESS_READ)),
        result(bench.add_memory("result", block_max * ranks)) {
    bench.take_log();
  }

  void put(const Memory& memory, uint64_t sequence, size_t block) {
    auto at = bench.port.bytes(memory.region).begin();
    for (uint32_t to = 0; to < ranks; to++) {
      const auto own = pattern_between(sequence, rank, to, 0, block);
      at = std::copy(own.begin(), own.end(), at);
    }
  }
  void post(uint64_t sequence, size_t block) {
    put(given, sequence, block);
    bench.submit(alltoall_entry(member, sequence, 100 + sequence, block, given.key, result.key));
  }
  void post_in_place(uint64_t sequence, size_t block) {
    put(result, sequence, block);
    peal_submission entry = alltoall_entry(member, sequence, 100 + sequence, block, 0, result.key);
    entry.flags = PEAL_SUBMIT_IN_PLACE;
    bench.submit(entry);
  }
  void scribble() {
    for (const Memory& memory : {given, result}) {
      auto& bytes = bench.port.bytes(memory.region);
      std::fill(bytes.begin(), bytes.end(), uint8_t{0x5c});
    }
  }
  [[nodiscard]] long wrong_byte(uint64_t sequence, size_t block) {
    const auto& bytes = bench.port.bytes(result.region);
    for (uint32_t from = 0; from < ranks; from++) {
      const auto expected = pattern_between(sequence, from, rank, 0, block);
      for (size_t i = 0; i < block; i++) {
        if (bytes[from * block + i] != expected[i]) return static_cast<long>(from * block + i);
      }
    }
    return -1;
  }
  // What a rank sends in step k: the blocks whose way has bit k, of which lower bits were done.
  [[nodiscard]] std::vector<uint8_t> lot(uint32_t sender, uint32_t k, uint64_t sequence,
                                         size_t offset, size_t bytes) const {
    std::vector<uint8_t> payload;
    for (uint32_t way = 1; way < ranks; way++) {
      if ((way >> k & 1) == 0) continue;
      const uint32_t from = (sender + way % (1u << k)) % ranks;
      const auto block =
          pattern_between(sequence, from, (from + ranks - way) % ranks, offset, bytes);
      payload.insert(payload.end(), block.begin(), block.end());
    }
    return payload;
  }
  [[nodiscard]] uint32_t below(uint32_t k) const { return (rank + ranks - (1u << k)) % ranks; }
  [[nodiscard]] uint32_t above(uint32_t k) const { return (rank + (1u << k)) % ranks; }
  // The whole step in one packet.
  [[nodiscard]] Frame step(uint32_t k, uint64_t sequence = 0, size_t block = kBlock) const {
    return wire.bruck(bruck_shape(block), static_cast<uint32_t>(sequence), 0, k, 0,
                      lot(above(k), k, sequence, 0, block));
  }
  std::string change(const Frame& frame) {
    const auto before = bench.counters();
    bench.deliver(frame);
    return bench.counter_changes(before);
  }
  std::string answer(uint32_t from, uint32_t k, size_t block = kBlock, uint32_t piece = 0,
                     uint64_t fragments = 1) {
    bench.take_log();
    bench.port.take_sent();
    bench.deliver(wire.nack(from, bruck_shape(block), 0, piece, 0, k, fragments));
    bench.finish_all_dma();
    return bench.take_wire_log();
  }

  Memory given;
  Memory result;
};

// Rank 1 of 4: step 0 to 0 and from 2, step 1 to and from 3.
class BruckOf4 : public BruckBase {
 protected:
  void deliver_all(uint64_t sequence = 0, size_t block = kBlock) {
    bench.deliver(step(0, sequence, block));
    bench.deliver(step(1, sequence, block));
    bench.finish_all_dma();
  }
};

TEST_F(BruckOf4, InOrder) {
  post(0, kBlock);
  EXPECT_EQ(bench.take_log(), "dma_read given+0 256\n");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(), "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=128\n");
  auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].payload, lot(1, 0, 0, 0, kBlock));
  EXPECT_EQ(sent[0].header.origin, 1);
  bench.deliver(step(0));
  EXPECT_EQ(bench.take_log(), "send 1>3 DATA seq=0 piece=0 step=1 frag=0 len=128\n");
  sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].payload, lot(1, 1, 0, 0, kBlock));
  bench.deliver(step(1));
  // The blocks of ranks 1, 2, 3, that of 0, and what was sent.
  EXPECT_EQ(bench.take_log(),
            "dma_write result+64 192\n"
            "dma_write result+0 64\n"
            "dma_write channel+256 256\n");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

TEST_F(BruckOf4, LaterStepFirst) {
  post(0, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  bench.deliver(step(1));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(), "");
  bench.deliver(step(0));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>3 DATA seq=0 piece=0 step=1 frag=0 len=128\n"
            "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

TEST_F(BruckOf4, EverythingBeforeThePost) {
  deliver_all();
  EXPECT_EQ(bench.take_log(), "");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_EARLY_DATA), 2u);
  post(0, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=128\n"
            "send 1>3 DATA seq=0 piece=0 step=1 frag=0 len=128\n"
            "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

TEST_F(BruckOf4, DuplicateChangesNothing) {
  post(0, kBlock);
  bench.finish_all_dma();
  bench.deliver(step(0));
  bench.finish_all_dma();
  bench.take_log();
  Frame again = step(0);
  std::fill(again.payload.begin(), again.payload.end(), uint8_t{0x99});
  seal(again);
  EXPECT_EQ(change(again), "+1 duplicate");
  EXPECT_EQ(bench.take_log(), "");
  bench.deliver(step(1));
  bench.finish_all_dma();
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
  EXPECT_EQ(change(again), "+1 duplicate");
}

struct BadField {
  const char* name;
  void (*spoil)(peal_wire_header& header);
  const char* counted;
};

TEST_F(BruckOf4, FieldsThatCannotBe) {
  post(0, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  using H = peal_wire_header;
  const BadField kBad[] = {
      {"step", [](H& h) { h.hop = 2; }, "+1 drop_hop"},
      {"step 255", [](H& h) { h.hop = 255; }, "+1 drop_hop"},
      {"step of another peer", [](H& h) { h.hop = 1; }, "+1 drop_sender"},
      {"piece", [](H& h) { h.piece = 1; }, "+1 drop_piece"},
      {"piece all ones", [](H& h) { h.piece = ~0u; }, "+1 drop_piece"},
      {"fragment", [](H& h) { h.fragment = 1; }, "+1 drop_fragment"},
      {"fragment all ones", [](H& h) { h.fragment = 0xff; }, "+1 drop_fragment"},
      {"origin itself", [](H& h) { h.origin = 1; }, "+1 drop_origin"},
      {"origin beyond", [](H& h) { h.origin = 4; }, "+1 drop_origin"},
      {"origin not the sender", [](H& h) { h.origin = 3; }, "+1 drop_sender"},
      {"sender",
       [](H& h) {
         h.sender = h.origin = 0;
         h.identity = identity_of(0);
       },
       "+1 drop_sender"},
      {"sequence", [](H& h) { h.sequence = CONFIG_CHANNELS; }, "+1 drop_future"},
      {"signature", [](H& h) { h.signature ^= 0x80000000u; }, "+1 drop_signature"},
      {"operation", [](H& h) { h.operation = PEAL_OPERATION_ALLGATHER; }, "+1 drop_type"},
      {"type", [](H& h) { h.type = PEAL_PACKET_SIGNAL; }, "+1 drop_type"},
  };
  for (const BadField& bad : kBad) {
    Frame frame = step(0);
    bad.spoil(frame.header);
    seal(frame);
    EXPECT_EQ(change(frame), bad.counted) << bad.name;
    EXPECT_EQ(bench.take_log(), "") << bad.name;
  }
  Frame shorter = step(0);
  shorter.payload.pop_back();
  seal(shorter);
  EXPECT_EQ(change(shorter), "+1 drop_length");
  deliver_all();
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

TEST_F(BruckOf4, OneStepIsAskedForAtATime) {
  post(0, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_log(), "send 1>2 NACK seq=0 piece=0 step=0 missing=0x1\n");
  bench.deliver(step(0));
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_log(), "send 1>3 NACK seq=0 piece=0 step=1 missing=0x1\n");
}

TEST_F(BruckOf4, NobodyIsAskedBeforeThePost) {
  bench.deliver(step(1));
  bench.finish_all_dma();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(BruckOf4, ASilentPartnerIsProbed) {
  post(0, kBlock);
  bench.finish_all_dma();
  bench.advance(default_timeouts().nack_ns + default_timeouts().probe_interval_ns);
  EXPECT_NE(bench.take_wire_log().find("send 1>2 PROBE\n"), std::string::npos);
}

TEST_F(BruckOf4, NacksAreRepairedOrAnsweredNotYet) {
  EXPECT_EQ(answer(0, 0), "send 1>0 NOT_YET seq=0 piece=0 step=0 late\n");
  post(0, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(answer(0, 0), "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=128 repair\n");
  EXPECT_EQ(answer(3, 1), "send 1>3 NOT_YET seq=0 piece=0 step=1\n");
  deliver_all();
  // The user takes both buffers back; the repairs are right all the same.
  scribble();
  EXPECT_EQ(answer(0, 0), "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=128 repair\n");
  EXPECT_EQ(bench.port.take_sent()[0].payload, lot(1, 0, 0, 0, kBlock));
  EXPECT_EQ(answer(3, 1), "send 1>3 DATA seq=0 piece=0 step=1 frag=0 len=128 repair\n");
  EXPECT_EQ(bench.port.take_sent()[0].payload, lot(1, 1, 0, 0, kBlock));
}

TEST_F(BruckOf4, NacksThatMakeNoSense) {
  post(0, kBlock);
  bench.finish_all_dma();
  bench.take_log();
  const OperationShape shape = bruck_shape(kBlock);
  EXPECT_EQ(change(wire.nack(2, shape, 0, 0, 1, 0)), "+1 drop_sender");
  EXPECT_EQ(change(wire.nack(0, shape, 0, 0, 1, 2)), "+1 drop_hop");
  EXPECT_EQ(change(wire.nack(0, shape, 0, 1, 1, 0)), "+1 drop_piece");
  EXPECT_EQ(change(wire.nack(0, shape, 0, 0, 1, 0, 2)), "+1 drop_fragment");
  EXPECT_EQ(bench.take_log(), "");
}

// What the card spends on repairs is bounded; whoever asks beyond that still hears something.
TEST_F(BruckOf4, BeyondTheBudgetOfRepairsTheAnswerIsNotYet) {
  post(0, kBlock);
  bench.finish_all_dma();
  uint32_t repaired = 0;
  for (uint32_t asked = 0; asked < 1000; asked++) {
    const std::string log = answer(0, 0);
    if (log == "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=128 repair\n") {
      repaired++;
    } else {
      ASSERT_EQ(log, "send 1>0 NOT_YET seq=0 piece=0 step=0\n") << asked;
    }
  }
  EXPECT_EQ(repaired + bench.counter(PEAL_COUNTER_HELD_BACK_REPAIR), 1000u);
  EXPECT_GT(bench.counter(PEAL_COUNTER_HELD_BACK_REPAIR), 0u);
}

TEST_F(BruckOf4, NoBytes) {
  post(0, 0);
  EXPECT_EQ(bench.take_log(), "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=0\n");
  deliver_all(0, 0);
  EXPECT_EQ(bench.take_log(),
            "send 1>3 DATA seq=0 piece=0 step=1 frag=0 len=0\n"
            "complete ctx0 cookie=100 OK\n");
}

TEST_F(BruckOf4, InPlaceTheOwnBlocksAreReadFirst) {
  deliver_all();
  post_in_place(0, kBlock);
  EXPECT_EQ(bench.take_log(), "dma_read result+0 256\n");
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(),
            "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=128\n"
            "send 1>3 DATA seq=0 piece=0 step=1 frag=0 len=128\n"
            "dma_write result+64 192\n"
            "dma_write result+0 64\n"
            "dma_write channel+256 256\n");
  const auto sent = bench.port.take_sent();
  EXPECT_EQ(sent[0].payload, lot(1, 0, 0, 0, kBlock));
  EXPECT_EQ(sent[1].payload, lot(1, 1, 0, 0, kBlock));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
  scribble();
  EXPECT_EQ(answer(0, 0), "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=128 repair\n");
  EXPECT_EQ(bench.port.take_sent()[0].payload, lot(1, 0, 0, 0, kBlock));
}

// Nothing else would bring it back: the partner may already have everything but this.
TEST_F(BruckOf4, AStepWithoutAPacketIsTriedAgainSoon) {
  post(0, kBlock);
  bench.port.fail_allocations = {0, 1};
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "");
  bench.advance(default_timeouts().nack_ns / 4 + 1);
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=128\n");
}

TEST_F(BruckOf4, OwnBlocksWithoutAPacketAreReadSoon) {
  bench.port.fail_allocations = {0, 1};
  post(0, kBlock);
  EXPECT_EQ(bench.take_log(), "");
  bench.advance(default_timeouts().nack_ns / 4 + 1);
  EXPECT_EQ(bench.take_log(), "dma_read given+0 256\n");
}

TEST_F(BruckOf4, BlocksOfTheNextOperationDoNotMix) {
  post(0, kBlock);
  bench.deliver(step(0, 1));
  bench.deliver(step(1, 1));
  bench.finish_all_dma();
  deliver_all(0);
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
  post(1, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(wrong_byte(1, kBlock), -1);
  ASSERT_EQ(bench.port.take_completions().size(), 2u);
}

class BadAlltoall : public BruckOf4 {
 protected:
  void expect_refused(const peal_submission& entry, const std::string& status) {
    bench.submit(entry);
    EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=7 " + status + "\n");
    EXPECT_EQ(card_outstanding(bench.card(), bench.context()), 0u);
  }
  [[nodiscard]] peal_submission good() const {
    return alltoall_entry(member, 0, 7, kBlockMax, given.key, result.key);
  }
};

TEST_F(BadAlltoall, CommandsAreRefusedByName) {
  const Memory write_only = bench.add_memory("write only", kBlockMax * 4, PEAL_ACCESS_WRITE);
  peal_submission entry = good();
  entry.block_bytes = kBlockMax + 1;
  expect_refused(entry, "BAD_BOUNDS");
  entry.block_bytes = uint64_t{1} << 32;
  expect_refused(entry, "BAD_LENGTH");
  entry = good();
  entry.send_offset = 1;
  expect_refused(entry, "BAD_BOUNDS");
  entry = good();
  entry.receive_offset = 1;
  expect_refused(entry, "BAD_BOUNDS");
  entry = good();
  entry.send_key ^= 0x10000;
  expect_refused(entry, "BAD_KEY");
  entry = good();
  entry.receive_key ^= 0x10000;
  expect_refused(entry, "BAD_KEY");
  entry = good();
  entry.receive_key = given.key;
  expect_refused(entry, "BAD_ACCESS");
  entry = good();
  entry.send_key = write_only.key;
  expect_refused(entry, "BAD_ACCESS");
  entry = good();
  entry.flags = PEAL_SUBMIT_IN_PLACE;
  entry.receive_key = write_only.key;
  expect_refused(entry, "BAD_ACCESS");
  entry = good();
  entry.algorithm = PEAL_ALGORITHM_RECURSIVE_DOUBLING;
  expect_refused(entry, "BAD_ALGORITHM");
  entry = good();
  entry.root = 1;
  expect_refused(entry, "BAD_ROOT");
  bench.submit(good());
  bench.finish_all_dma();
  EXPECT_EQ(card_outstanding(bench.card(), bench.context()), 1u);
}

class BruckFault : public BruckOf4, public ::testing::WithParamInterface<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Transfers, BruckFault, ::testing::Range(0u, 6u));

// The read of the own blocks, the two parts of the result, what is retained; none behind them.
TEST_P(BruckFault, EndsAStagedOperationByName) {
  bench.port.fault_dmas = {GetParam(), 1};
  post(0, kBlock);
  bench.finish_all_dma();
  deliver_all();
  EXPECT_EQ(bench.port.take_completions().size(), 1u);
  const std::string log = bench.take_wire_log();
  const bool ok = log.find("complete ctx0 cookie=100 OK") != std::string::npos;
  const bool fault = log.find("complete ctx0 cookie=100 DMA_FAULT") != std::string::npos;
  EXPECT_EQ(ok, GetParam() >= 4) << log;
  EXPECT_EQ(fault, GetParam() < 4) << log;
}

// Rank 3 of 5: to 2, 1, 4 and from 4, 0, 2, of two, two and one block.
class BruckOf5 : public BruckBase {
 protected:
  BruckOf5() : BruckBase(5, 3) {}
};

TEST_F(BruckOf5, InOrder) {
  post(0, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 3>2 DATA seq=0 piece=0 step=0 frag=0 len=128\n");
  bench.deliver(step(0));
  EXPECT_EQ(bench.take_wire_log(), "send 3>1 DATA seq=0 piece=0 step=1 frag=0 len=128\n");
  bench.deliver(step(1));
  EXPECT_EQ(bench.take_wire_log(), "send 3>4 DATA seq=0 piece=0 step=2 frag=0 len=64\n");
  const auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 3u);
  for (uint32_t k = 0; k < 3; k++) EXPECT_EQ(sent[k].payload, lot(3, k, 0, 0, kBlock)) << k;
  bench.deliver(step(2));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

class BruckOf2 : public BruckBase {
 protected:
  BruckOf2() : BruckBase(2, 0) {}
};

TEST_F(BruckOf2, OneExchange) {
  post(0, kBlock);
  bench.finish_all_dma();
  bench.deliver(step(0));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 0>1 DATA seq=0 piece=0 step=0 frag=0 len=64\n"
            "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

class BruckOf1 : public BruckBase {
 protected:
  BruckOf1() : BruckBase(1, 0) {}
};

TEST_F(BruckOf1, CopiesTheBlock) {
  uint64_t sequence = 0;
  for (const size_t block : {size_t{0}, kBlock, kBlockMax}) {
    post(sequence, block);
    bench.finish_all_dma();
    EXPECT_EQ(bench.take_wire_log(),
              "complete ctx0 cookie=" + std::to_string(100 + sequence) + " OK\n");
    EXPECT_EQ(wrong_byte(sequence, block), -1);
    sequence++;
  }
}

// Rank 1 of 64: 32 blocks a step, eight lots of those that stay together in a packet.
class BruckOf64 : public BruckBase {
 protected:
  BruckOf64() : BruckBase(64, 1, kBlock) {}
  Frame part(uint32_t k, uint32_t fragment, size_t blocks) const {
    const auto all = lot(above(k), k, 0, 0, kBlock);
    const size_t first = fragment * blocks * kBlock;
    const size_t end = std::min(first + blocks * kBlock, all.size());
    return wire.bruck(
        bruck_shape(kBlock), 0, 0, k, fragment,
        {all.begin() + static_cast<long>(first), all.begin() + static_cast<long>(end)});
  }
};

TEST_F(BruckOf64, FragmentsOfALargeStep) {
  post(0, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>0 DATA seq=0 piece=0 step=0 frag=0 len=512\n"
            "send 1>0 DATA seq=0 piece=0 step=0 frag=1 len=512\n"
            "send 1>0 DATA seq=0 piece=0 step=0 frag=2 len=512\n"
            "send 1>0 DATA seq=0 piece=0 step=0 frag=3 len=512\n");
  std::vector<uint8_t> sent;
  for (const Frame& frame : bench.port.take_sent())
    sent.insert(sent.end(), frame.payload.begin(), frame.payload.end());
  EXPECT_EQ(sent, lot(1, 0, 0, 0, kBlock));
  for (const uint32_t fragment : {3u, 0u, 2u}) bench.deliver(part(0, fragment, 8));
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "send 1>2 NACK seq=0 piece=0 step=0 missing=0x2\n");
  EXPECT_EQ(answer(0, 0, kBlock, 0, 0x6),
            "send 1>0 DATA seq=0 piece=0 step=0 frag=1 len=512 repair\n"
            "send 1>0 DATA seq=0 piece=0 step=0 frag=2 len=512 repair\n");
  const auto all = lot(1, 0, 0, 0, kBlock);
  EXPECT_EQ(bench.port.take_sent()[1].payload,
            std::vector<uint8_t>(all.begin() + 1024, all.begin() + 1536));
  EXPECT_EQ(change(part(0, 3, 8)).find("+1 drop"), std::string::npos);
  bench.deliver(part(0, 1, 8));
  for (uint32_t k = 1; k < 6; k++) {
    const uint32_t room = CONFIG_MTU_BYTES / kBlock;
    const uint32_t blocks = room >> k == 0 ? room : std::min(room >> k, 8u) << k;
    for (uint32_t fragment = 0; fragment * blocks < 32; fragment++)
      bench.deliver(part(k, fragment, blocks));
    bench.finish_all_dma();
    bench.port.take_sent();
  }
  ASSERT_EQ(bench.port.take_completions().size(), 1u);
  EXPECT_EQ(wrong_byte(0, kBlock), -1);
}

// Blocks of several pieces, too many for staging: each of a packet's eight lots is written for
// itself. A packet whose blocks cannot all be written is as good as lost, and comes again.
class BruckOf64Scattered : public BruckOf64 {
 protected:
  static constexpr uint32_t kPiece = piece_bytes_for(64 + 6 * 32);
  static constexpr size_t kScattered = size_t{2 * kWindow} * kPiece;

  Frame lots(uint32_t sequence, uint32_t piece, uint32_t k, uint32_t fragment) const {
    const auto all = lot(above(k), k, sequence, piece * kPiece, kPiece);
    const long bytes = static_cast<long>((8 << k) * kPiece);
    const auto first = all.begin() + fragment * bytes;
    return wire.bruck(bruck_shape(kScattered), sequence, piece, k, fragment,
                      {first, first + bytes});
  }
  // Of all that may come early, in the order of operations.
  std::vector<Frame> early() const {
    std::vector<Frame> frames;
    for (uint32_t sequence = 0; sequence < CONFIG_CHANNELS; sequence++) {
      for (uint32_t piece = 0; piece < 2 * kWindow; piece++) {
        for (uint32_t fragment = 0; fragment < 6; fragment++)
          frames.push_back(lots(sequence, piece, fragment / 4, fragment % 4));
      }
    }
    return frames;
  }
};

TEST_F(BruckOf64Scattered, APacketThatCannotBeWrittenWholeIsNotTaken) {
  bench.port.log_dma = false;
  bench.port.refuse_dmas = {0, kAlways};
  const std::vector<Frame> frames = early();
  // Blocks of the last step stay together: they take one record, so that seven are left in the end.
  const auto last = lot(above(5), 5, 0, 0, kPiece);
  const std::string counted = change(wire.bruck(
      bruck_shape(kScattered), 0, 0, 5, 0,
      {last.begin(), last.begin() + static_cast<long>(CONFIG_MTU_BYTES / kPiece * kPiece)}));
  ASSERT_EQ(counted.find("drop"), std::string::npos) << counted;
  constexpr size_t kRoom = (CONFIG_DMA_RECORDS - 1) / 8;
  ASSERT_GT(frames.size(), kRoom);
  for (size_t i = 0; i < kRoom; i++) {
    const std::string taken = change(frames[i]);
    ASSERT_EQ(taken.find("drop"), std::string::npos) << i << taken;
  }
  EXPECT_EQ(change(frames[kRoom]), "+1 drop_no_dma");
  bench.port.refuse_dmas = {};
  bench.advance(default_timeouts().nack_ns);
  bench.finish_all_dma();
  const std::string again = change(frames[kRoom]);
  EXPECT_EQ(again.find("drop"), std::string::npos) << again;
  EXPECT_EQ(again.find("duplicate"), std::string::npos) << again;
  bench.finish_all_dma();
}

// Rank 1 of 4 again, with blocks of more pieces than a channel has images: each of them a packet's
// payload, but for the last.
class BruckPieces : public BruckBase {
 protected:
  static constexpr uint32_t kPieces = 4 * kWindow + 1;
  static constexpr uint32_t kTail = 40;
  static constexpr size_t kPiece = CONFIG_MTU_BYTES;
  static constexpr size_t kLong = (kPieces - 1) * kPiece + kTail;

  BruckPieces() : BruckBase(4, 1, kLong) {
    EXPECT_EQ(piece_bytes_for(4 + 2 * 2), kPiece);
    bench.port.log_dma = false;
  }
  [[nodiscard]] static size_t length(uint32_t piece) {
    return piece + 1 == kPieces ? kTail : kPiece;
  }
  [[nodiscard]] static uint32_t fragments(uint32_t piece) { return piece + 1 == kPieces ? 1 : 2; }
  [[nodiscard]] std::vector<uint8_t> fragment_of(uint32_t sender, uint32_t piece, uint32_t k,
                                                 uint32_t fragment) const {
    const auto all = lot(sender, k, 0, piece * kPiece, length(piece));
    if (fragments(piece) == 1) return all;
    const auto first = all.begin() + static_cast<long>(fragment * kPiece);
    return {first, first + static_cast<long>(kPiece)};
  }
  [[nodiscard]] Frame part(uint32_t piece, uint32_t k, uint32_t fragment) const {
    return wire.bruck(bruck_shape(kLong), 0, piece, k, fragment,
                      fragment_of(above(k), piece, k, fragment));
  }
  void deliver_step(uint32_t piece, uint32_t k) {
    for (uint32_t fragment = 0; fragment < fragments(piece); fragment++)
      bench.deliver(part(piece, k, fragment));
    bench.finish_all_dma();
  }
  void deliver_piece(uint32_t piece) {
    deliver_step(piece, 0);
    deliver_step(piece, 1);
  }
  // What was sent since the last call: every packet compared, "piece.step.fragment" of each.
  std::string sent() {
    std::string text;
    for (const Frame& frame : bench.port.take_sent()) {
      const auto& header = frame.header;
      if (header.type != PEAL_PACKET_DATA) continue;
      text += std::to_string(header.piece) + "." + std::to_string(header.hop) + "." +
              std::to_string(header.fragment) + " ";
      EXPECT_EQ(frame.payload, fragment_of(rank, header.piece, header.hop, header.fragment))
          << text;
    }
    bench.take_log();
    return text;
  }
  // "p.k.0 p.k.1 "
  static std::string step_text(uint32_t piece, uint32_t k) {
    std::string text;
    for (uint32_t fragment = 0; fragment < fragments(piece); fragment++)
      text +=
          std::to_string(piece) + "." + std::to_string(k) + "." + std::to_string(fragment) + " ";
    return text;
  }
  void post_long() {
    post(0, kLong);
    bench.finish_all_dma();
  }
  void finish() {
    for (uint32_t piece = 0; piece < kPieces; piece++) {
      deliver_piece(piece);
      sent();
    }
  }
};

TEST_F(BruckPieces, GoAsFarAsTheWindow) {
  post_long();
  std::string expected;
  for (uint32_t piece = 0; piece < kWindow; piece++) expected += step_text(piece, 0);
  EXPECT_EQ(sent(), expected);
  for (uint32_t piece = 0; piece < kPieces; piece++) {
    deliver_step(piece, 0);
    EXPECT_EQ(sent(), step_text(piece, 1));
    deliver_step(piece, 1);
    EXPECT_EQ(sent(), piece + kWindow < kPieces ? step_text(piece + kWindow, 0) : "");
    ASSERT_EQ(bench.port.take_completions().size(), piece + 1 == kPieces ? 1u : 0u);
  }
  EXPECT_EQ(wrong_byte(0, kLong), -1);
}

TEST_F(BruckPieces, InPlaceNothingIsWrittenOverWhatIsStillToBeRead) {
  put(result, 0, kLong);
  post_in_place(0, kLong);
  bench.finish_all_dma();
  std::string expected;
  for (uint32_t piece = 0; piece < kWindow; piece++) expected += step_text(piece, 0);
  EXPECT_EQ(sent(), expected);
  for (uint32_t piece = 0; piece < kPieces; piece++) {
    deliver_piece(piece);
    expected = step_text(piece, 1);
    if (piece + kWindow < kPieces) expected += step_text(piece + kWindow, 0);
    EXPECT_EQ(sent(), expected);
  }
  ASSERT_EQ(bench.port.take_completions().size(), 1u);
  EXPECT_EQ(wrong_byte(0, kLong), -1);
}

// A peer may be W pieces ahead of us, which is W more than we are; nobody is further.
TEST_F(BruckPieces, EarlyPiecesWaitInTheChannelAndThoseBeyondTheWindowAreRefused) {
  for (uint32_t piece = 0; piece < 2 * kWindow; piece++) deliver_piece(piece);
  EXPECT_EQ(change(part(2 * kWindow, 0, 0)), "+1 drop_piece");
  EXPECT_EQ(change(part(0, 1, 1)), "+1 duplicate");
  EXPECT_EQ(sent(), "");
  post_long();
  std::string expected;
  for (uint32_t piece = 0; piece < kWindow; piece++)
    expected += step_text(piece, 0) + step_text(piece, 1);
  EXPECT_EQ(sent().substr(0, expected.size()), expected);
  for (uint32_t piece = 2 * kWindow; piece < kPieces; piece++) deliver_piece(piece);
  ASSERT_EQ(bench.port.take_completions().size(), 1u);
  EXPECT_EQ(wrong_byte(0, kLong), -1);
}

TEST_F(BruckPieces, StepsThatWereSentAreRetainedForThePiecesThatMayBeAskedFor) {
  post_long();
  finish();
  ASSERT_EQ(bench.port.take_completions().size(), 1u);
  scribble();
  for (uint32_t piece = kPieces - 2 * kWindow; piece < kPieces; piece++) {
    const uint64_t all = (uint64_t{1} << fragments(piece)) - 1;
    answer(0, 0, kLong, piece, all);
    EXPECT_EQ(sent(), step_text(piece, 0));
    answer(3, 1, kLong, piece, all);
    EXPECT_EQ(sent(), step_text(piece, 1));
  }
  EXPECT_EQ(answer(0, 0, kLong, 0), "send 1>0 NOT_YET seq=0 piece=0 step=0\n");
  EXPECT_EQ(change(part(kPieces - 1, 0, 0)), "+1 duplicate");
}

// Which of it were sent already says whether it may be asked for.
TEST_F(BruckPieces, OfAStepThatIsBeingSentOnlyWhatHasGoneIsRepaired) {
  post(0, kLong);
  while (bench.port.dma_count() > 0 && bench.counter(PEAL_COUNTER_SENT_DATA) == 0) {
    if (bench.port.dma(0).write) bench.port.fail_allocations = {1, 1};
    bench.finish_dma();
  }
  ASSERT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), 1u);
  bench.port.fail_allocations = {};
  bench.port.take_sent();
  bench.deliver(wire.nack(0, bruck_shape(kLong), 0, 0, 0, 0, 2));
  bench.take_log();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_NOT_YET), 1u);
  bench.deliver(wire.nack(0, bruck_shape(kLong), 0, 0, 0, 0, 3));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_REPAIR), 1u);
}

TEST_F(BruckPieces, AFirstStepWaitsForAllOwnBlocksInTheChannel) {
  post(0, kLong);
  const uint32_t blocks = 4;
  uint32_t written = 0;
  while (written < blocks) {
    EXPECT_EQ(sent(), "");
    const HeldDma& first = bench.port.dma(0);
    EXPECT_TRUE(first.write || first.bytes == kPiece);
    if (first.write && first.host.offset < CONFIG_CHANNEL_BYTES / (2 * kWindow)) written++;
    EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), 0u);
    bench.finish_dma();
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), 2u);
  bench.finish_all_dma();
}

TEST_F(BruckPieces, TheNextStepWaitsForTheBytesInTheChannel) {
  post_long();
  sent();
  const uint64_t before = bench.counter(PEAL_COUNTER_SENT_DATA);
  bench.deliver(part(0, 0, 0));
  bench.deliver(part(0, 0, 1));
  ASSERT_EQ(bench.port.dma_count(), 2u);
  bench.finish_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), before);
  bench.finish_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), before + 2);
  bench.finish_all_dma();
  EXPECT_EQ(sent(), step_text(0, 1));
}

// Nor is a piece's result taken from the channel before its last bytes are in it.
TEST_F(BruckPieces, TheResultWaitsForTheBytesInTheChannel) {
  post_long();
  deliver_step(0, 0);
  sent();
  bench.port.log_dma = true;
  bench.deliver(part(0, 1, 0));
  bench.deliver(part(0, 1, 1));
  const std::string log = bench.take_log();
  EXPECT_EQ(log.find("dma_read"), std::string::npos) << log;
  bench.finish_all_dma();
  EXPECT_NE(bench.take_log().find("dma_write result+0 " + std::to_string(kPiece)),
            std::string::npos);
}

// Rank 3 owes step 1 of every piece, rank 2 step 0 of all but the first.
TEST_F(BruckPieces, EachNeighbourIsAskedForTheFirstPieceThatItOwes) {
  post_long();
  deliver_step(0, 0);
  if (kWindow > 1) bench.deliver(part(1, 0, 1));
  bench.finish_all_dma();
  bench.take_log();
  bench.port.take_sent();
  bench.advance(default_timeouts().nack_ns);
  std::string expected = "send 1>3 NACK seq=0 piece=0 step=1 missing=0x3\n";
  if (kWindow > 1) expected += "send 1>2 NACK seq=0 piece=1 step=0 missing=0x1\n";
  EXPECT_EQ(bench.take_wire_log(), expected);
}

// Whoever owes several pieces has most likely not begun, or sends them one after the other.
TEST_F(BruckPieces, ANeighbourIsAskedForOnePieceAtATime) {
  post_long();
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "send 1>2 NACK seq=0 piece=0 step=0 missing=0x3\n");
}

class BruckPiecesFault : public BruckPieces, public ::testing::WithParamInterface<uint32_t> {
 protected:
  void expect_fault() {
    const auto done = bench.port.take_completions();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(status_text(done[0].second.status), "DMA_FAULT");
    EXPECT_EQ(done[0].second.failed_rank, 1u);
  }
};

// Own blocks: from the user, and into the channel.
class BruckOwnFault : public BruckPiecesFault {};
INSTANTIATE_TEST_SUITE_P(Transfers, BruckOwnFault, ::testing::Range(0u, 8 * kWindow));

TEST_P(BruckOwnFault, EndsTheOperationByName) {
  bench.port.fault_dmas = {GetParam(), 1};
  post_long();
  expect_fault();
}

// What came into the channel, four blocks from there and to the user.
class BruckResultFault : public BruckPiecesFault {};
INSTANTIATE_TEST_SUITE_P(Transfers, BruckResultFault, ::testing::Range(0u, 9u));

TEST_P(BruckResultFault, EndsTheOperationByName) {
  post_long();
  deliver_step(0, 0);
  bench.deliver(part(0, 1, 0));
  bench.finish_all_dma();
  ASSERT_EQ(bench.port.take_completions().size(), 0u);
  bench.port.fault_dmas = {GetParam(), 1};
  bench.deliver(part(0, 1, 1));
  bench.finish_all_dma();
  expect_fault();
}

// A packet that could not be filled is lost like any other, and asked for.
TEST_F(BruckPieces, APacketThatCannotBeReadIsLost) {
  bench.port.fault_dmas = {8 * kWindow, 1};
  post_long();
  std::string text = step_text(0, 0);
  for (uint32_t piece = 1; piece < kWindow; piece++) text += step_text(piece, 0);
  EXPECT_EQ(sent(), text.substr(text.find(' ') + 1));
  answer(0, 0, kLong, 0, 1);
  EXPECT_EQ(sent(), "0.0.0 ");
}

}  // namespace
}  // namespace peal::test
