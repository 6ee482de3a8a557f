// SPDX-License-Identifier: BSD-2-Clause
// Ranks that are no peers: the table of addresses that a member is given, what is read of it and
// when, and by it who may send what.
#include "firmware/group/remote.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "emulator/common/packet_text.h"
#include "firmware/group/liveness.h"
#include "firmware/group/member.h"
#include "tests/support/log_lines.h"
#include "tests/unit/firmware/collective/alltoall/direct_fixture.h"

namespace peal::test {
namespace {

// Rank 1 of 8, reserved; connected with a table of the test's.
class AddressTable : public CardTest {
 protected:
  AddressTable() : member(bench.reserve(8, 1)) {
    for (uint32_t rank = 0; rank < 8; rank++)
      everybody.push_back(rank == 1 ? member.address : CardBench::played_address(rank));
  }
  peal_status connect(uint32_t key) {
    member.table.key = key;
    return bench.connect(member, everybody);
  }
  peal_status unregister(uint32_t key) {
    RegionId region = 0;
    return card_unregister_memory(bench.card(), bench.context(), key, &region);
  }
  Membership member;
  std::vector<peal_peer_address> everybody;
  static constexpr size_t kBytes = 8 * sizeof(peal_peer_address);
};

TEST_F(AddressTable, ItsKeyAndLengthAreChecked) {
  const Memory shorter = bench.add_memory("shorter", kBytes - 1);
  const Memory unreadable = bench.add_memory("unreadable", kBytes, PEAL_ACCESS_WRITE);
  const Memory other = bench.add_memory_of(bench.open_context(), "other", kBytes, PEAL_ACCESS_READ);
  const Memory good = bench.add_memory("good", kBytes, PEAL_ACCESS_READ);
  EXPECT_EQ(connect(0x12345), PEAL_STATUS_BAD_KEY);
  EXPECT_EQ(connect(shorter.key), PEAL_STATUS_BAD_BOUNDS);
  EXPECT_EQ(connect(unreadable.key), PEAL_STATUS_BAD_ACCESS);
  EXPECT_EQ(connect(other.key), PEAL_STATUS_BAD_KEY);
  EXPECT_EQ(connect(good.key), PEAL_STATUS_OK);
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(AddressTable, ItMayLieAnywhereInTheMemory) {
  const Memory memory = bench.add_memory("tables", kBytes + 192, PEAL_ACCESS_READ);
  for (const uint64_t outside : {uint64_t{193}, uint64_t{192} + kBytes, ~uint64_t{0}}) {
    member.table_offset = outside;
    EXPECT_EQ(connect(memory.key), PEAL_STATUS_BAD_BOUNDS) << outside;
  }
  member.table_offset = 192;
  EXPECT_EQ(connect(0), PEAL_STATUS_BAD_BOUNDS) << "no memory, and a place in it";
  EXPECT_EQ(connect(memory.key), PEAL_STATUS_OK);
  const Memory blocks = bench.add_memory("blocks", 8 * 64);
  peal_submission entry = alltoall_entry(member, 0, 100, 64, blocks.key, blocks.key);
  entry.algorithm = PEAL_ALGORITHM_DIRECT;
  bench.take_log();
  bench.submit(entry);
  const std::string log = bench.take_log();
  EXPECT_EQ(log.substr(0, log.find('\n')), "dma_read tables+192 160");
  bench.finish_all_dma();
}

TEST_F(AddressTable, ItsMemoryStaysRegisteredAsLongAsTheMemberLives) {
  const Memory table = bench.add_memory("table", kBytes, PEAL_ACCESS_READ);
  ASSERT_EQ(connect(table.key), PEAL_STATUS_OK);
  EXPECT_EQ(unregister(table.key), PEAL_STATUS_BUSY);
  ASSERT_EQ(card_abandon_group(bench.card(), bench.context(), member.handle(), bench.now),
            PEAL_STATUS_OK);
  EXPECT_EQ(unregister(table.key), PEAL_STATUS_OK);
}

// A member that failed to connect holds nothing.
TEST_F(AddressTable, ARefusedConnectHoldsNoKey) {
  const Memory table = bench.add_memory("table", kBytes, PEAL_ACCESS_READ);
  everybody[2].rank = 3;
  EXPECT_EQ(connect(table.key), PEAL_STATUS_BAD_RANK);
  EXPECT_EQ(unregister(table.key), PEAL_STATUS_OK);
}

TEST_F(AddressTable, WithoutOneAlgorithmsThatTalkToEverybodyAreRefused) {
  ASSERT_EQ(connect(0), PEAL_STATUS_OK);
  const Memory memory = bench.add_memory("memory", 8 * 64);
  peal_submission entry = alltoall_entry(member, 0, 100, 64, memory.key, memory.key);
  entry.algorithm = PEAL_ALGORITHM_DIRECT;
  bench.submit(entry);
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=100 BAD_ALGORITHM\n");
  const auto before = bench.counters();
  bench.deliver(
      WireMaker(member).direct(4, direct_shape(64), 0, 0, pattern_between(0, 4, 1, 0, 64)));
  EXPECT_EQ(bench.counter_changes(before), "+1 drop_sender");
}

// Of more ranks than the card remembers, addresses would take each other's place for ever. (Cards
// that remember as many as a group can have refuse none.)
TEST_F(CardTest, InAGroupTooLargeToRememberAlgorithmsThatTalkToEverybodyAreRefused) {
  const auto posts = [this](uint32_t ranks, uint64_t group) {
    Membership large = bench.reserve(ranks, 1);
    std::vector<peal_peer_address> everybody;
    for (uint32_t rank = 0; rank < ranks; rank++)
      everybody.push_back(rank == 1 ? large.address : CardBench::played_address(rank));
    bench.add_table(large, everybody);
    EXPECT_EQ(bench.connect(large, everybody, group), PEAL_STATUS_OK);
    const Memory memory = bench.add_memory("memory", size_t{ranks} * 8);
    peal_submission entry = alltoall_entry(large, 0, 100, 8, memory.key, memory.key);
    entry.algorithm = PEAL_ALGORITHM_DIRECT;
    bench.take_log();
    bench.submit(entry);
    return lines_that_begin(bench.take_log(), "complete");
  };
  EXPECT_EQ(posts(CONFIG_REMEMBERED_ADDRESSES, kGroupId), "");
  const bool any = CONFIG_GROUP_RANKS_MAX > CONFIG_REMEMBERED_ADDRESSES;
  EXPECT_EQ(posts(any ? CONFIG_REMEMBERED_ADDRESSES + 1 : CONFIG_GROUP_RANKS_MAX, kGroupId + 1),
            any ? "complete ctx0 cookie=100 BAD_ALGORITHM\n" : "");
  bench.finish_all_dma();
}

TEST(AllArePeers, WhereEveryDistanceIsAPowerOfTwoEitherWay) {
  for (uint32_t ranks = 1; ranks <= 64; ranks++) {
    bool all = true;
    for (Rank other = 1; other < ranks; other++)
      all = all && peer_entry(0, other, ranks) != kNoPeer;
    EXPECT_EQ(peal_all_are_peers(ranks) != 0, all) << ranks;
    EXPECT_EQ(peal_may_talk_to_all(ranks, 16) != 0, all || ranks <= 16) << ranks;
  }
}

// A member of 8 with a table.
class Remote : public DirectTest {
 protected:
  void spoil_address(uint32_t of, void (*spoil)(peal_peer_address& address)) {
    uint8_t* at = bench.port.bytes(member.table.region).data() + of * sizeof(peal_peer_address);
    peal_peer_address address;
    std::memcpy(&address, at, sizeof(address));
    spoil(address);
    std::memcpy(at, &address, sizeof(address));
  }
};

TEST_F(Remote, APacketWaitsForTheAddressOfItsSender) {
  EXPECT_EQ(change(from(4)),
            "+160 dma_read_bytes, +1 dma_operations, +1 address_reads, +1 awaits_address");
  EXPECT_EQ(bench.take_log(), "dma_read addresses+0 160\n");
  EXPECT_EQ(change(from(6)), "+1 awaits_address");
  EXPECT_EQ(bench.take_log(), "");
  const auto before = bench.counters();
  bench.finish_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_RECEIVED) - before[PEAL_COUNTER_RECEIVED], 2u);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_EARLY_DATA), 2u);
  bench.finish_all_dma();
}

TEST_F(Remote, MorePacketsThanMayWaitAreDropped) {
  for (uint32_t i = 0; i < kAddressWaits; i++) bench.deliver(from(4));
  EXPECT_EQ(change(from(6)), "+1 drop_no_address");
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DUPLICATE), kAddressWaits - 1);
  // Whoever lost it asks: nothing is lost for good.
  post();
  bench.finish_all_dma();
  deliver_all();
  EXPECT_EQ(wrong(), -1);
}

TEST_F(Remote, OnlyWhomTheTableNamesIsHeard) {
  spoil_address(4, [](peal_peer_address& address) { address.incarnation++; });
  bench.deliver(from(4));
  const auto before = bench.counters();
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter_changes(before), "+1 drop_stranger");
  EXPECT_EQ(change(from(6)), "+1 received, +64 dma_write_bytes, +1 dma_operations, +1 early_data");
  bench.finish_all_dma();
}

// Entries of other ranks, or of a card that cuts messages otherwise: not a table of this group.
TEST_F(Remote, WhatIsNoTableEndsTheOperationWithAFault) {
  spoil_address(6, [](peal_peer_address& address) { address.rank = 4; });
  bench.deliver(from(4));
  post();
  bench.take_log();
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), kFaultToldToAll);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DROP_NO_ADDRESS), 1u);
}

TEST_F(Remote, AnotherGeometryIsNoTable) {
  spoil_address(6, [](peal_peer_address& address) { address.geometry ^= 1; });
  post();
  bench.finish_all_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_OPERATIONS_FAILED), 1u);
}

TEST_F(Remote, ATableThatCannotBeReadEndsTheOperationWithAFault) {
  bench.port.fault_dmas = {0, 1};
  post();
  bench.take_log();
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), kFaultToldToAll);
  // And the next one reads again.
  EXPECT_EQ(bench.counter(PEAL_COUNTER_ADDRESS_READS), 1u);
  bench.deliver(wire.probe(4));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 1>4 ALIVE\n");
}

// What algorithms among peers send, and the group's own, comes from peers only.
TEST_F(Remote, OnlyForEverybodysAlgorithmsIsEverybodyHeard) {
  const OperationShape bruck = bruck_shape(64);
  const OperationShape recycling{PEAL_OPERATION_RECYCLE, PEAL_ALGORITHM_BINOMIAL, 0};
  for (const Frame& frame : {wire.signal(4, kBarrierShape, 0, 0), wire.signal(4, recycling, 0, 0),
                             wire.farewell(4), wire.nack(4, bruck, 0, 0, 1, 0),
                             wire.refuse(4, bruck, 0, 2), wire.signal(4, kDestroyShape, 0, 0)}) {
    EXPECT_EQ(change(frame), "+1 drop_sender") << frame_text(frame);
  }
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Remote, AProbeIsAnsweredAndADeathBelieved) {
  bench.deliver(wire.probe(4));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 1>4 ALIVE\n");
  EXPECT_EQ(change(wire.alive(6)), "+1 received");
  bench.deliver(wire.death(6, 3));
  bench.take_log();
  // Nothing but the truth from now on.
  EXPECT_EQ(change(from(4)), "+1 sent_verdict, +1 drop_closed");
  EXPECT_EQ(bench.take_log(), "send 1>4 DEATH rank=3\n");
  EXPECT_EQ(change(wire.death(4, 3)), "+1 drop_closed");
}

// Of ranks that are no peers, too, those that owe something are probed, and dead when silent.
TEST_F(Remote, ASilentRankIsProbedAndNamed) {
  post();
  bench.finish_all_dma();
  for (const uint32_t sender : {0u, 2u, 3u, 4u, 5u, 7u}) bench.deliver(from(sender));
  bench.finish_all_dma();
  const CardTimeouts timeouts = default_timeouts();
  bench.take_log();
  bench.advance(timeouts.dead_ns / 2);
  EXPECT_EQ(distinct_lines(bench.take_wire_log()),
            "send 1>6 NACK seq=0 piece=0 origin=6 missing=0x1\n"
            "send 1>6 PROBE\n");
  bench.port.take_sent();  // their buffers are needed
  bench.deliver(wire.alive(6));
  bench.advance(timeouts.dead_ns - timeouts.probe_interval_ns);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_PEERS_DEAD), 0u);
  bench.port.take_sent();
  bench.advance(timeouts.dead_ns);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_PEERS_DEAD), 1u);
  EXPECT_EQ(distinct_lines(bench.take_wire_log()),
            "send 1>6 NACK seq=0 piece=0 origin=6 missing=0x1\n"
            "send 1>6 PROBE\n"
            "send 1>2 DEATH rank=6\n"
            "send 1>0 DEATH rank=6\n"
            "send 1>3 DEATH rank=6\n"
            "send 1>7 DEATH rank=6\n"
            "send 1>5 DEATH rank=6\n"
            "complete ctx0 cookie=100 PEER_DEAD rank=6\n");
}

// A block says that its sender lives, as any packet does.
TEST_F(Remote, WhoseBlockComesIsNotMissed) {
  post();
  bench.finish_all_dma();
  Member& own = *find_member(bench.card(), member.handle());
  const auto awaited = [&own] {
    return std::ranges::count_if(
        own.remote.watches, [](const RemoteWatch& each) { return each.awaited_since_ns != 0; });
  };
  await_peer(bench.card(), own, 6);
  EXPECT_EQ(awaited(), 1);
  bench.deliver(from(4));
  EXPECT_EQ(awaited(), 1) << "another one's";
  bench.deliver(from(6));
  EXPECT_EQ(awaited(), 0);
  // Nor is a peer's, where it has no number.
  const Peer& peer = own.membership.peers[peer_entry(1, 3, 8)];
  await_peer(bench.card(), own, 3);
  EXPECT_NE(peer.awaited_since_ns, 0u);
  bench.deliver(from(3));
  EXPECT_EQ(peer.awaited_since_ns, 0u);
  bench.finish_all_dma();
}

// A repair answers a question, and a block that comes the first time does not.
TEST_F(Remote, ARepairIsAnAnswer) {
  post();
  bench.finish_all_dma();
  bench.advance(default_timeouts().dead_ns / 2);
  const Member& own = *find_member(bench.card(), member.handle());
  EXPECT_NE(own.pace.waiting_ns, 0u);
  bench.port.take_sent();
  bench.deliver(from(4));
  EXPECT_NE(own.pace.waiting_ns, 0u);
  Frame repair = from(6);
  WireMaker::make_repair(repair);
  bench.deliver(repair);
  EXPECT_EQ(own.pace.waiting_ns, 0u);
  bench.finish_all_dma();
}

// What it owed is not wanted any more: it may be silent, and gone, as long as it likes.
TEST_F(Remote, WhoOwesNothingAnyMoreMayBeSilent) {
  post();
  bench.finish_all_dma();
  for (const uint32_t sender : {0u, 2u, 3u, 4u, 5u, 7u}) bench.deliver(from(sender));
  bench.finish_all_dma();
  const CardTimeouts timeouts = default_timeouts();
  bench.advance(timeouts.dead_ns / 2);
  bench.port.take_sent();
  Frame refusal = wire.refuse(0, direct_shape(kBlock), 0, 0);
  const peal_verdict verdict{0, PEAL_STATUS_DMA_FAULT};
  std::memcpy(refusal.payload.data(), &verdict, sizeof(verdict));
  seal(refusal);
  bench.deliver(refusal);
  bench.take_log();
  for (uint32_t i = 0; i < 8; i++) {
    bench.advance(timeouts.dead_ns / 4);
    bench.port.take_sent();
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_PEERS_DEAD), 0u);
  EXPECT_EQ(card_next_deadline(bench.card()), kNever);
}

// Rank 0 of 16, of whom more are no peers than are watched at a time.
class RemoteOfMany : public AlltoallTest {
 protected:
  RemoteOfMany() : AlltoallTest(PEAL_ALGORITHM_DIRECT, 16, 0, kBlock, {.tables = true}) {
    for (const Rank other : {3u, 9u}) bench.deliver(wire.probe(other));
    bench.finish_all_dma();  // it knows all addresses
    bench.port.take_sent();
  }
  void name_all() {
    for (const Rank other : kNoPeers)
      await_peer(bench.card(), *find_member(bench.card(), member.handle()), other);
  }
  // Who is probed within this time, each answering unless it is the silent one.
  std::vector<Rank> probed_within(TimeNs time, Rank silent = PEAL_NO_RANK) {
    std::vector<Rank> probed;
    const TimeNs until = bench.now + time;
    while (card_next_deadline(bench.card()) <= until) {
      bench.advance_to_deadline();
      for (const Frame& frame : bench.port.take_sent()) {
        if (frame.header.type != PEAL_PACKET_PROBE) continue;
        const Rank other = emulator::card_of_mac(frame.header.destination);
        probed.push_back(other);
        if (other != silent) bench.deliver(wire.alive(other));
      }
    }
    bench.advance(until - bench.now);
    return probed;
  }

  const CardTimeouts timeouts = default_timeouts();
  // All have had a place then, and those that got the last ones were probed.
  const TimeNs round = timeouts.dead_ns / 4 + timeouts.probe_interval_ns;
  static constexpr Rank kNoPeers[] = {3, 5, 6, 7, 9, 10, 11, 13};
};

TEST_F(RemoteOfMany, WhoAnswersGivesItsPlaceToTheNext) {
  name_all();
  EXPECT_EQ(probed_within(round), (std::vector<Rank>{3, 5, 6, 7, 9, 10, 11, 13}));
  EXPECT_EQ(card_next_deadline(bench.card()), kNever);
}

// Whatever is late answers soon, and has to be probed no more than before.
TEST_F(RemoteOfMany, NobodyIsProbedSoonerThanAfterAnInterval) {
  name_all();
  EXPECT_EQ(probed_within(timeouts.probe_interval_ns - 1), std::vector<Rank>{});
  for (const Rank other : kNoPeers) bench.deliver(wire.alive(other));
  EXPECT_EQ(probed_within(round), std::vector<Rank>{});
}

TEST_F(RemoteOfMany, WhoHasAnsweredWaitsForNoPlace) {
  name_all();
  bench.deliver(wire.alive(11));
  EXPECT_EQ(probed_within(round), (std::vector<Rank>{3, 5, 6, 7, 9, 10, 13}));
  name_all();
  EXPECT_EQ(probed_within(round), (std::vector<Rank>{3, 5, 6, 7, 9, 10, 11, 13}));
}

// Those that are named first in each look do not have all places.
TEST_F(RemoteOfMany, TheLastOfThoseThatAreNamedIsFoundDead) {
  const TimeNs from = bench.now;
  while (bench.counter(PEAL_COUNTER_PEERS_DEAD) == 0 && bench.now - from < 4 * timeouts.dead_ns) {
    name_all();
    (void)probed_within(timeouts.dead_ns / 8, 13);
  }
  EXPECT_LE(bench.now - from, timeouts.dead_ns + round + timeouts.dead_ns / 8);
  EXPECT_EQ(find_member(bench.card(), member.handle())->membership.dead_rank, 13);
}

// Who waits already comes before those that are named again.
TEST_F(RemoteOfMany, PlacesGoByTurns) {
  for (const Rank other : {3u, 5u, 6u, 7u, 9u, 10u}) {
    await_peer(bench.card(), *find_member(bench.card(), member.handle()), other);
  }
  (void)probed_within(timeouts.probe_interval_ns);
  name_all();  // 9 and 10 wait
  EXPECT_EQ(probed_within(round + timeouts.dead_ns / 8),
            (std::vector<Rank>{9, 10, 11, 13, 3, 5, 6, 7}));
}

TEST_F(RemoteOfMany, WhoIsNamedNoMoreIsForgotten) {
  name_all();
  for (uint32_t i = 0; i < 16; i++) {
    bench.advance(timeouts.dead_ns / 8);
    bench.port.take_sent();
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_PEERS_DEAD), 0u);
  EXPECT_EQ(card_next_deadline(bench.card()), kNever);
  // And may be named again.
  bench.deliver(wire.probe(3));  // the card sees what time it is
  name_all();
  EXPECT_EQ(probed_within(round).size(), std::size(kNoPeers));
}

TEST_F(RemoteOfMany, WhoIsNamedAgainWaitsOn) {
  for (uint32_t i = 0; i < 2; i++) {  // all who have a place are silent
    name_all();
    bench.advance(timeouts.dead_ns / 3);
    bench.port.take_sent();
  }
  bench.deliver(wire.alive(3));
  const std::vector<Rank> probed = probed_within(timeouts.dead_ns / 8);
  EXPECT_NE(std::ranges::find(probed, 9), probed.end());
}

// However soon places are free: all of a group have had one in a quarter of that time.
TEST_F(RemoteOfMany, PlacesGoNoSoonerThanARoundTakes) {
  name_all();
  EXPECT_EQ(probed_within(timeouts.probe_interval_ns), (std::vector<Rank>{3, 5, 6, 7}));
  EXPECT_EQ(probed_within(4 * (timeouts.dead_ns / 4) / 16), std::vector<Rank>{});
  EXPECT_EQ(probed_within(1), (std::vector<Rank>{9, 10, 11, 13}));
}

// A direct exchange names all who owe it something, whoever is asked.
TEST_F(RemoteOfMany, ADeadOneIsFoundAmongTheLate) {
  post(0, kBlock);
  bench.finish_all_dma();
  (void)probed_within(2 * timeouts.dead_ns);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_PEERS_DEAD), 0u);
  const TimeNs from = bench.now;
  while (bench.counter(PEAL_COUNTER_PEERS_DEAD) == 0 && bench.now - from < 4 * timeouts.dead_ns)
    (void)probed_within(timeouts.dead_ns / 8, 9);
  // It was named in the next look, and this loop looks as often.
  EXPECT_LE(bench.now - from, timeouts.dead_ns + round + timeouts.dead_ns / 4);
  EXPECT_EQ(find_member(bench.card(), member.handle())->membership.dead_rank, 9);
}

// The member goes while its table is being read: the memory is held until that is over.
TEST_F(Remote, ATableThatIsBeingReadIsHeld) {
  bench.deliver(from(4));
  ASSERT_EQ(card_abandon_group(bench.card(), bench.context(), member.handle(), bench.now),
            PEAL_STATUS_OK);
  RegionId region = 0;
  EXPECT_EQ(card_unregister_memory(bench.card(), bench.context(), member.table.key, &region),
            PEAL_STATUS_BUSY);
  bench.finish_all_dma();
  EXPECT_EQ(card_unregister_memory(bench.card(), bench.context(), member.table.key, &region),
            PEAL_STATUS_OK);
}

}  // namespace
}  // namespace peal::test
