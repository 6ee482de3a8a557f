// SPDX-License-Identifier: BSD-2-Clause
// The direct all-to-all as one rank sees it, a piece at a time: in order, early, repeated,
// malformed, lost, in place.
#include "firmware/collective/alltoall/direct.h"

#include "tests/unit/bad_fields.h"
#include "tests/unit/firmware/collective/alltoall/direct_fixture.h"

namespace peal::test {
namespace {

class Direct : public DirectTest {};

TEST_F(Direct, EachBlockGoesToItsRankAndStaggered) {
  post();
  // The rank's own, two to peers; then an address is awaited.
  EXPECT_EQ(bench.take_log(),
            "dma_read addresses+0 160\n"
            "dma_read given+64 64\n"
            "dma_read given+128 64\n"
            "dma_read given+192 64\n");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
            "send 1>3 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
            "send 1>4 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
            "send 1>5 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
            "send 1>6 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
            "send 1>7 DATA seq=0 piece=0 origin=1 hop=0 len=64\n"
            "send 1>0 DATA seq=0 piece=0 origin=1 hop=0 len=64\n");
  const auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 7u);
  for (uint32_t i = 0; i < 7; i++) {
    const uint32_t to = (2 + i) % 8;
    EXPECT_EQ(sent[i].payload, own(to)) << to;
    EXPECT_EQ(sent[i].header.member, member.everybody[to].member) << to;
    // Only peers have edges that are counted.
    const bool peer = to != 4 && to != 6;
    EXPECT_EQ(sent[i].header.flags, peer ? PEAL_PACKET_NUMBERED : 0) << to;
    EXPECT_EQ(sent[i].header.edge, peer ? 1 : 0) << to;
  }
  for (const uint32_t sender : {0u, 7u, 6u, 5u, 4u, 3u}) bench.deliver(from(sender));
  EXPECT_EQ(bench.take_log(),
            "dma_write result+0 64\n"
            "dma_write result+448 64\n"
            "dma_write result+384 64\n"
            "dma_write result+320 64\n"
            "dma_write result+256 64\n"
            "dma_write result+192 64\n");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(), "");
  bench.deliver(from(2));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(), "dma_write result+128 64\ncomplete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong(), -1);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_ADDRESS_READS), 1u);
}

TEST_F(Direct, EverythingBeforeThePost) {
  deliver_all();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_EARLY_DATA), 7u);
  EXPECT_EQ(bench.take_wire_log(), "");
  post();
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), 7u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_EQ(wrong(), -1);
}

// A block on its way into the channel when the host posts.
TEST_F(Direct, EarlyDataIsNotFetchedBeforeItLiesThere) {
  bench.deliver(from(0));
  post();
  while (bench.port.dma_count() > 1) bench.finish_dma(bench.port.dma_count() - 1);
  for (const uint32_t sender : {2u, 3u, 4u, 5u, 6u, 7u}) bench.deliver(from(sender));
  while (bench.port.dma_count() > 1) bench.finish_dma(bench.port.dma_count() - 1);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 0u);
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_EQ(wrong(), -1);
}

TEST_F(Direct, DuplicateChangesNothing) {
  post();
  bench.finish_all_dma();
  for (const uint32_t sender : {2u, 4u}) {
    bench.deliver(from(sender));
    bench.finish_all_dma();
    bench.take_log();
    Frame again = from(sender);
    std::fill(again.payload.begin(), again.payload.end(), uint8_t{0x99});
    seal(again);
    EXPECT_EQ(change(again), "+1 duplicate");
    EXPECT_EQ(bench.take_log(), "");
  }
  deliver_all();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_EQ(wrong(), -1);
  EXPECT_EQ(change(from(4)), "+1 duplicate");
}

TEST_F(Direct, FieldsThatCannotBe) {
  post();
  bench.finish_all_dma();
  bench.take_log();
  using H = peal_wire_header;
  const std::vector<BadField> kBad = {
      {"hop", [](H& h) { h.hop = 1; }, "+1 drop_hop"},
      {"fragment", [](H& h) { h.fragment = 1; }, "+1 drop_fragment"},
      {"piece", [](H& h) { h.piece = 1; }, "+1 drop_piece"},
      {"piece all ones", [](H& h) { h.piece = ~0u; }, "+1 drop_piece"},
      {"origin itself", [](H& h) { h.origin = 1; }, "+1 drop_origin"},
      {"origin beyond", [](H& h) { h.origin = 8; }, "+1 drop_origin"},
      {"origin not the sender", [](H& h) { h.origin = 5; }, "+1 drop_sender"},
      {"sender beyond", [](H& h) { h.sender = 8; }, "+1 drop_sender"},
      {"sender all ones", [](H& h) { h.sender = 0xffff; }, "+1 drop_sender"},
      {"sender itself", [](H& h) { h.sender = 1; }, "+1 drop_sender"},
      {"another's identity", [](H& h) { h.identity ^= 1; }, "+1 drop_stranger"},
      {"ethertype", [](H& h) { h.ethertype ^= 1; }, "+1 drop_ethertype"},
      {"version", [](H& h) { ++h.version; }, "+1 drop_version"},
      {"an unknown flag", [](H& h) { h.flags |= 0x80; }, "+1 drop_type"},
      {"another life of the member", [](H& h) { h.member += 0x10000; }, "+1 drop_generation"},
      {"block length", [](H& h) { h.block_bytes ^= 1; }, "+1 drop_signature"},
      {"operation", [](H& h) { h.operation = PEAL_OPERATION_ALLGATHER; }, "+1 drop_signature"},
      {"group", [](H& h) { h.group ^= 1; }, "+1 drop_group"},
      {"sequence", [](H& h) { h.sequence = CONFIG_CHANNELS; }, "+1 drop_future"},
      {"signature", [](H& h) { h.signature ^= 0x80000000u; }, "+1 drop_signature"},
      {"type", [](H& h) { h.type = PEAL_PACKET_SIGNAL; }, "+1 drop_type"},
  };
  for (const uint32_t sender : {4u, 3u}) {
    expect_dropped(bench, from(sender), kBad);
    Frame shorter = from(sender);
    shorter.payload.pop_back();
    seal(shorter);
    EXPECT_EQ(change(shorter), "+1 drop_length");
  }
  deliver_all();
  EXPECT_EQ(wrong(), -1);
}

TEST_F(Direct, NacksAreRepairedOrAnsweredNotYet) {
  for (const uint32_t asker : {0u, 4u}) {
    const std::string at = "send 1>" + std::to_string(asker);
    // The first question of a rank that is no peer waits until its address has been read.
    EXPECT_EQ(answer(asker), at + " NOT_YET seq=0 piece=0 origin=1 late\n");
  }
  post();
  bench.finish_all_dma();
  for (const bool over : {false, true}) {
    for (const uint32_t asker : {0u, 4u}) {
      const std::string at = "send 1>" + std::to_string(asker);
      EXPECT_EQ(answer(asker), at + " DATA seq=0 piece=0 origin=1 hop=0 len=64 repair\n") << over;
      EXPECT_EQ(bench.port.take_sent()[0].payload, own(asker)) << over;
    }
    deliver_all();
    EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
    scribble();
  }
}

TEST_F(Direct, WhatCannotBeSentAgainNowWasSent) {
  post();
  bench.finish_all_dma();
  bench.spend_repairs();
  for (const uint32_t asker : {0u, 4u}) {
    EXPECT_EQ(answer(asker),
              "send 1>" + std::to_string(asker) + " NOT_YET seq=0 piece=0 origin=1 sent\n");
  }
}

// The block is out, but lies nowhere yet where it could be read again.
TEST_F(Direct, WhatIsOnItsWayIntoTheChannelIsNotRepairedYet) {
  post();
  bench.finish_dma();   // the addresses
  bench.finish_dma(1);  // the block for rank 2, behind the rank's own
  EXPECT_EQ(bench.port.take_sent().size(), 1u);
  bench.take_log();
  bench.deliver(wire.nack(2, direct_shape(kBlock), 0, 0, rank, 0));
  EXPECT_EQ(bench.take_wire_log(), "send 1>2 NOT_YET seq=0 piece=0 origin=1\n");
  bench.finish_all_dma();
  EXPECT_EQ(answer(2), "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=64 repair\n");
}

TEST_F(Direct, NacksThatMakeNoSense) {
  post();
  bench.finish_all_dma();
  bench.take_log();
  const OperationShape shape = direct_shape(kBlock);
  for (const uint32_t asker : {0u, 4u}) {
    EXPECT_EQ(change(wire.nack(asker, shape, 0, 0, rank, 1)), "+1 drop_hop");
    EXPECT_EQ(change(wire.nack(asker, shape, 0, 1, rank, 0)), "+1 drop_piece");
    EXPECT_EQ(change(wire.nack(asker, shape, 0, 0, 2, 0)), "+1 drop_origin");
    EXPECT_EQ(change(wire.nack(asker, shape, 0, 0, rank, 0, 0)), "+1 drop_fragment");
    EXPECT_EQ(change(wire.nack(asker, shape, 0, 0, rank, 0, 2)), "+1 drop_fragment");
  }
  EXPECT_EQ(bench.take_log(), "");
}

// Those that have come are left alone; peers or not.
TEST_F(Direct, InSilenceAllThatOweAreAskedOnceEach) {
  post();
  bench.finish_all_dma();
  for (const uint32_t sender : {2u, 3u, 5u, 6u}) bench.deliver(from(sender));
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  std::string log = bench.take_log();
  for (const char* line : {"send 1>0 NACK seq=0 piece=0 origin=0 missing=0x1\n",
                           "send 1>7 NACK seq=0 piece=0 origin=7 missing=0x1\n",
                           "send 1>4 NACK seq=0 piece=0 origin=4 missing=0x1\n"}) {
    const size_t found = log.find(line);
    ASSERT_NE(found, std::string::npos) << line << log;
    log.erase(found, std::string(line).size());
  }
  EXPECT_EQ(log, "");
}

// Ranks 4 and 6 are no peers. That rank 4 is late says nothing of rank 6.
TEST_F(Direct, ALateStrangerSpeaksForItselfAlone) {
  post();
  bench.finish_all_dma();
  for (const uint32_t sender : {0u, 2u, 3u, 5u, 7u}) bench.deliver(from(sender));
  bench.finish_all_dma();
  bench.advance(default_timeouts().nack_ns);
  bench.deliver(wire.not_yet(4, direct_shape(kBlock), 0, 0, 4, 0, now_us(), PEAL_NOT_YET_LATE));
  bench.take_log();
  bench.advance(2 * default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>6 NACK seq=0 piece=0 origin=6 missing=0x1\n"
            "send 1>4 NACK seq=0 piece=0 origin=4 missing=0x1\n");
}

TEST_F(Direct, NobodyIsAskedBeforeThePost) {
  bench.deliver(from(2));
  bench.finish_all_dma();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_wire_log(), "");
}

TEST_F(Direct, NoBytes) {
  post(0);
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_DATA), 7u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DMA_OPERATIONS), 1u);  // the addresses
  deliver_all(0);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_EQ(answer(4, 0), "send 1>4 DATA seq=0 piece=0 origin=1 hop=0 len=0 repair\n");
}

// A block must not land where the one for its sender has not been read, or not been kept, yet.
TEST_F(Direct, InPlaceABlockWaitsUntilTheOneForItsSenderIsKept) {
  post_in_place();
  bench.take_log();
  bench.deliver(from(2));
  const std::string log = bench.take_log();
  EXPECT_EQ(log.substr(0, 17), "dma_write channel") << log;
  bench.finish_all_dma();
  const auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 7u);
  EXPECT_EQ(sent[0].payload, own(2));
  bench.take_log();
  bench.deliver(from(3));
  EXPECT_EQ(bench.take_log(), "dma_write result+192 64\n");
  deliver_all();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_EQ(wrong(), -1);
}

TEST_F(Direct, InPlaceEverythingEarlyAndRepairsAfterTheEnd) {
  deliver_all();
  post_in_place();
  bench.finish_all_dma();
  const auto sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 7u);
  for (uint32_t i = 0; i < 7; i++) EXPECT_EQ(sent[i].payload, own((2 + i) % 8)) << i;
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED), 1u);
  EXPECT_EQ(wrong(), -1);
  scribble();
  for (const uint32_t asker : {0u, 2u, 4u, 6u}) {
    answer(asker);
    EXPECT_EQ(bench.port.take_sent().at(0).payload, own(asker)) << asker;
  }
}

TEST_F(Direct, AFaultOfTheUsersMemoryIsToldToAll) {
  bench.port.fault_dmas = {2, 1};  // the block for rank 2, or in a long one that for rank 2 as well
  post();
  bench.take_log();
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), kFaultToldToAll);
  // Whoever asks is told.
  EXPECT_EQ(answer(4), "send 1>4 REFUSE seq=0 rank=1\n");
}

}  // namespace
}  // namespace peal::test
