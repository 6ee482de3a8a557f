// SPDX-License-Identifier: BSD-2-Clause
// A membership from reservation to its tombstone, several on one card, and the end of a context.
#include "firmware/group/member.h"

#include <algorithm>
#include <set>

#include "firmware/channels.h"
#include "firmware/group/liveness.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

class MemberSlots : public CardTest {
 protected:
  peal_status reserve(uint32_t ranks, uint32_t rank) {
    peal_reserve_group request{};
    request.ranks = ranks;
    request.rank = rank;
    const RegionId channels = bench.port.add_region("channel", kChannelsBytes);
    return card_reserve_group(bench.card(), bench.context(), request, channels, bench.now,
                              &address);
  }
  static peal_connect_group good_request(const Membership& member) {
    peal_connect_group request{};
    request.member = member.handle();
    request.group = 5;
    for (uint32_t distance = 1; distance < member.ranks; distance *= 2) {
      request.peers[request.peer_count++] =
          CardBench::played_address((member.rank + distance) % member.ranks);
      request.peers[request.peer_count++] =
          CardBench::played_address((member.rank + member.ranks - distance) % member.ranks);
    }
    return request;
  }
  peal_status connect(const peal_connect_group& request) {
    return card_connect_group(bench.card(), bench.context(), request, bench.now);
  }
  peal_peer_address address{};
};

TEST_F(MemberSlots, RanksAreChecked) {
  EXPECT_EQ(reserve(0, 0), PEAL_STATUS_BAD_RANK);
  EXPECT_EQ(reserve(4, 4), PEAL_STATUS_BAD_RANK);
  EXPECT_EQ(reserve(4, 0xffffffff), PEAL_STATUS_BAD_RANK);
  EXPECT_EQ(reserve(CONFIG_GROUP_RANKS_MAX + 1, 0), PEAL_STATUS_BAD_RANK);
  EXPECT_EQ(reserve(0xffffffff, 0), PEAL_STATUS_BAD_RANK);
  EXPECT_EQ(reserve(CONFIG_GROUP_RANKS_MAX, CONFIG_GROUP_RANKS_MAX - 1), PEAL_STATUS_OK);
  EXPECT_EQ(address.rank, CONFIG_GROUP_RANKS_MAX - 1);
  EXPECT_EQ(address.incarnation, bench.incarnation());
}

// It is hundreds of KiB, and written before it is read.
TEST_F(MemberSlots, WhatIsKeptByRankIsNotTouchedWhenAPlaceIsTakenAgain) {
  ASSERT_EQ(reserve(2, 0), PEAL_STATUS_OK);
  const uint32_t before = address.member & 0xffff;
  peal::Member& place = bench.card().members[before];
  std::fill(std::begin(place.by_rank), std::end(place.by_rank), uint8_t{0x5a});
  place.membership.poisoned = true;
  ASSERT_EQ(card_abandon_group(bench.card(), bench.context(), address.member, bench.now),
            PEAL_STATUS_OK);
  ASSERT_EQ(reserve(3, 1), PEAL_STATUS_OK);
  ASSERT_EQ(address.member & 0xffff, before);
  EXPECT_FALSE(place.membership.poisoned) << "all else is as new";
  EXPECT_TRUE(std::all_of(std::begin(place.by_rank), std::end(place.by_rank),
                          [](uint8_t byte) { return byte == 0x5a; }));
}

// Whoever waits for somebody of a member that is going arms its timer: its place is taken again
// without.
TEST_F(MemberSlots, NoTimerOutlivesAMember) {
  const Membership first = bench.join(2, 0);
  Member& member = *find_member(bench.card(), first.handle());
  ++member.dma;  // so it is buried, and not released
  bury_member(bench.card(), member);
  await_peer(bench.card(), member, 1);
  ASSERT_NE(member.timer.place, 0u);
  --member.dma;
  release_member(bench.card(), member);
  EXPECT_EQ(member.timer.place, 0u);
}

TEST_F(MemberSlots, ContextIsChecked) {
  peal_reserve_group request{};
  request.ranks = 1;
  for (const ContextId context :
       {ContextId{CONFIG_CONTEXTS - 1}, ContextId{CONFIG_CONTEXTS}, ~0u}) {
    EXPECT_EQ(card_reserve_group(bench.card(), context, request, 0, bench.now, &address),
              PEAL_STATUS_CLOSED);
  }
}

TEST_F(MemberSlots, FullTableIsNoResourcesUntilOneIsGivenBack) {
  std::set<uint32_t> handles;
  for (uint32_t i = 0; i < CONFIG_CARD_MEMBERS; i++) {
    ASSERT_EQ(reserve(2, 0), PEAL_STATUS_OK);
    EXPECT_TRUE(handles.insert(address.member).second);
  }
  EXPECT_EQ(reserve(2, 0), PEAL_STATUS_NO_RESOURCES);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_MEMBER), 1u);
  const uint32_t given_back = *handles.begin();
  EXPECT_EQ(card_abandon_group(bench.card(), bench.context(), given_back, bench.now),
            PEAL_STATUS_OK);
  EXPECT_EQ(card_abandon_group(bench.card(), bench.context(), given_back, bench.now),
            PEAL_STATUS_BAD_GROUP);
  EXPECT_EQ(reserve(2, 0), PEAL_STATUS_OK);
  EXPECT_EQ(address.member & 0xffff, given_back & 0xffff);
  EXPECT_NE(address.member, given_back) << "the same slot must not answer to the old handle";
}

TEST_F(MemberSlots, ConnectIsChecked) {
  const Membership member = bench.reserve(5, 3);
  peal_connect_group bad = good_request(member);
  bad.member ^= 0x10000;
  EXPECT_EQ(connect(bad), PEAL_STATUS_BAD_GROUP);
  bad = good_request(member);
  bad.group = 0;
  EXPECT_EQ(connect(bad), PEAL_STATUS_BAD_GROUP);
  for (const uint32_t count : {0u, 4u, 5u, 8u, 20u, 21u, 0xffffffffu}) {
    bad = good_request(member);
    bad.peer_count = count;
    EXPECT_EQ(connect(bad), PEAL_STATUS_BAD_RANK) << count;
  }
  for (uint32_t entry = 0; entry < 6; entry++) {
    bad = good_request(member);
    bad.peers[entry].rank = 3;
    EXPECT_EQ(connect(bad), PEAL_STATUS_BAD_RANK) << entry;
  }
  EXPECT_EQ(connect(good_request(member)), PEAL_STATUS_OK);
  EXPECT_EQ(connect(good_request(member)), PEAL_STATUS_BUSY);  // not twice
}

TEST_F(MemberSlots, AnotherContextMayNeitherConnectNorAbandon) {
  const Membership member = bench.reserve(5, 3);
  const ContextId other = bench.open_context();
  EXPECT_EQ(card_connect_group(bench.card(), other, good_request(member), bench.now),
            PEAL_STATUS_BAD_GROUP);
  EXPECT_EQ(card_abandon_group(bench.card(), other, member.handle(), bench.now),
            PEAL_STATUS_BAD_GROUP);
}

// --- destroy and tombstone ---

class Leaving : public GroupTest {
 protected:
  void destroy(uint32_t sequence) {
    bench.submit(destroy_entry(member, sequence, 9));
    for (uint32_t round = 0; round < 2; round++) {
      bench.deliver(wire.signal(behind(round), kDestroyShape, sequence, round));
    }
  }
};

TEST_F(Leaving, IsABarrierAndThenTheSlotAndChannelsAreFree) {
  destroy(0);
  EXPECT_EQ(bench.take_log(),
            "send 1>2 SIGNAL destroy seq=0 round=0\n"
            "send 1>3 SIGNAL destroy seq=0 round=1\n"
            "complete ctx0 cookie=9 OK\n"
            "send 1>0 FAREWELL\n"
            "send 1>3 FAREWELL\n");
  RegionId channels = 0;
  EXPECT_TRUE(card_channel_released(bench.card(), &channels));
  EXPECT_EQ(channels, member.channels);
  EXPECT_FALSE(card_channel_released(bench.card(), &channels));
  post_barrier(1);
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=101 BAD_GROUP\n");
}

TEST_F(Leaving, WaitsForEarlierOperations) {
  post_barrier(0);
  bench.submit(destroy_entry(member, 1, 9));
  EXPECT_EQ(bench.take_log(), "send 1>2 SIGNAL barrier seq=0 round=0\n");
  for (uint32_t round = 0; round < 2; round++) {
    bench.deliver(wire.signal(behind(round), kBarrierShape, 0, round));
  }
  EXPECT_EQ(bench.take_log(),
            "send 1>3 SIGNAL barrier seq=0 round=1\n"
            "complete ctx0 cookie=100 OK\n"
            "send 1>2 SIGNAL destroy seq=1 round=0\n");
}

TEST_F(Leaving, NothingMayFollow) {
  bench.submit(destroy_entry(member, 0, 9));
  bench.take_log();
  post_barrier(1);
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=101 CLOSED\n");
}

TEST_F(Leaving, TheTombstoneRepairsTheLastSignals) {
  destroy(0);
  bench.take_log();
  bench.deliver(wire.nack(2, kDestroyShape, 0, 0, 0, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 SIGNAL destroy seq=0 round=0 repair\n");
  bench.deliver(wire.nack(3, kDestroyShape, 0, 0, 0, 1));
  EXPECT_EQ(bench.take_log(), "send 1>3 SIGNAL destroy seq=0 round=1 repair\n");
  bench.deliver(wire.probe(3));
  EXPECT_EQ(bench.take_log(), "send 1>3 ALIVE\n");
}

// A repair that somebody asked for is still being read when the group ends: from then on the
// tombstone answers, and nobody keeps the place by asking on.
TEST_F(Leaving, ARepairUnderWayKeepsThePlaceButNotTheMember) {
  const size_t block = CONFIG_MTU_BYTES;  // too large for staging, so repairs are read
  post_broadcast(0, block);
  bench.finish_all_dma();
  deliver_others(0, block);
  const Frame question = wire.nack(2, broadcast_shape(block), 0, 0, 1, 0);
  bench.deliver(question);
  destroy(1);
  bench.take_log();
  RegionId channels = 0;
  EXPECT_FALSE(card_channel_released(bench.card(), &channels));
  bench.deliver(question);
  bench.deliver(wire.signal(0, kBarrierShape, 2, 0));
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_log(), "");
  bench.deliver(wire.nack(2, kDestroyShape, 1, 0, 0, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 SIGNAL destroy seq=1 round=0 repair\n");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=" +
                                       std::to_string(block) + " repair\n");
  EXPECT_TRUE(card_channel_released(bench.card(), &channels));
  EXPECT_EQ(channels, member.channels);
}

TEST_F(Leaving, EverythingElseIsClosedThere) {
  destroy(0);
  bench.take_log();
  const auto change = [&](const Frame& frame) {
    const auto before = bench.counters();
    bench.deliver(frame);
    return bench.counter_changes(before);
  };
  EXPECT_EQ(change(wire.signal(0, kDestroyShape, 0, 0)), "+1 drop_closed");
  EXPECT_EQ(change(wire.signal(0, kBarrierShape, 1, 0)), "+1 drop_closed");
  EXPECT_EQ(change(wire.nack(2, kDestroyShape, 1, 0, 0, 0)), "+1 drop_closed");
  EXPECT_EQ(change(wire.nack(2, kBarrierShape, 0, 0, 0, 0)), "+1 drop_closed");
  EXPECT_EQ(change(wire.death(0, 3)), "+1 drop_closed");
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Leaving, TheSlotsNextMemberIsNotTheOld) {
  destroy(0);
  const Membership next = bench.join(4, 1, 88);
  EXPECT_EQ(next.handle() & 0xffff, member.handle() & 0xffff);
  bench.take_log();
  // To the old handle: the tombstone. To the new: the new.
  bench.deliver(wire.nack(2, kDestroyShape, 0, 0, 0, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 SIGNAL destroy seq=0 round=0 repair\n");
  bench.submit(barrier_entry(next, 0, 5));
  bench.take_log();
  Frame old = wire.signal(0, kBarrierShape, 0, 0);  // the old group's
  bench.deliver(old);
  old.header.member = next.handle();
  seal(old);
  const auto before = bench.counters();
  bench.deliver(old);
  EXPECT_EQ(bench.counter_changes(before), "+1 drop_group");
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Leaving, ManyGroupsOneAfterTheOther) {
  for (uint32_t i = 0; i < 5 * CONFIG_CARD_MEMBERS; i++) {
    const Membership next = bench.join(1, 0, 100 + i);
    bench.submit(barrier_entry(next, 0, 1));
    bench.submit(destroy_entry(next, 1, 2));
    EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=1 OK\ncomplete ctx0 cookie=2 OK\n") << i;
    RegionId channels = 0;
    ASSERT_TRUE(card_channel_released(bench.card(), &channels));
    ASSERT_EQ(channels, next.channels);
    bench.port.remove_region(channels);
  }
}

// --- tombstones: as long as somebody may still ask, and not a moment longer ---

class Tombstones : public CardTest {
 protected:
  // A group of two whose destroy has completed here.
  Membership leave(uint64_t group) {
    Membership member = bench.join(2, 0, group);
    bench.submit(destroy_entry(member, 0, 9));
    bench.deliver(WireMaker(member).signal(1, kDestroyShape, 0, 0));
    RegionId channels = 0;
    EXPECT_TRUE(card_channel_released(bench.card(), &channels));
    bench.port.remove_region(channels);
    return member;
  }
  bool answers(const Membership& member) {
    bench.take_log();
    bench.deliver(WireMaker(member).nack(1, kDestroyShape, 0, 0, 0, 0));
    const std::string log = bench.take_log();
    EXPECT_TRUE(log.empty() || log == "send 0>1 SIGNAL destroy seq=0 round=0 repair\n") << log;
    return !log.empty();
  }
  peal_status try_reserve() { return try_reserve(bench.context()); }
  peal_status try_reserve(ContextId context) {
    peal_reserve_group request{};
    request.ranks = 2;
    const RegionId channels = bench.port.add_region("channel", kChannelsBytes);
    return card_reserve_group(bench.card(), context, request, channels, bench.now, &reserved_);
  }
  uint32_t reserved() const { return reserved_.member; }

 private:
  peal_peer_address reserved_{};
};

// A peer that could not be reached for a second asks again: whatever else the card did meanwhile.
TEST_F(Tombstones, StandsWhateverComesAfterIt) {
  const Membership first = leave(1000);
  uint32_t made = 0;
  while (made < 5 * CONFIG_CARD_MEMBERS && try_reserve() == PEAL_STATUS_OK) {
    ASSERT_EQ(card_abandon_group(bench.card(), bench.context(), reserved(), bench.now),
              PEAL_STATUS_OK);
    made++;
  }
  EXPECT_TRUE(answers(first));
  bench.advance(default_timeouts().dead_ns);
  EXPECT_TRUE(answers(first));
}

TEST_F(Tombstones, ExhaustionIsBackPressureAndEndsByItself) {
  std::vector<Membership> gone;
  for (uint32_t i = 0; i < CONFIG_CARD_MEMBERS * 2 - 1; i++) gone.push_back(leave(1000 + i));
  EXPECT_EQ(try_reserve(), PEAL_STATUS_OK);
  EXPECT_EQ(try_reserve(), PEAL_STATUS_NO_RESOURCES);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_MEMBER), 1u);
  for (const Membership& member : gone) EXPECT_TRUE(answers(member));
  bench.now += 2 * default_timeouts().dead_ns;
  EXPECT_EQ(try_reserve(), PEAL_STATUS_OK);
  leave(5000);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_TOMBSTONES_REUSED), 1u);
}

TEST_F(Tombstones, AFarewellEndsIt) {
  const Membership member = leave(1000);
  EXPECT_TRUE(answers(member));
  bench.deliver(WireMaker(member).farewell(1));
  EXPECT_FALSE(answers(member));
}

TEST_F(Tombstones, AFarewellBeforeTheOwnEndLeavesNone) {
  Membership member = bench.join(2, 0, 1000);
  bench.submit(destroy_entry(member, 0, 9));
  bench.deliver(WireMaker(member).farewell(1));
  bench.take_log();
  bench.deliver(WireMaker(member).signal(1, kDestroyShape, 0, 0));
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=9 OK\nsend 0>1 FAREWELL\n");
  EXPECT_FALSE(answers(member));
}

TEST_F(Tombstones, EachPeerAheadMustSayFarewell) {
  Membership member = bench.join(4, 1, 1000);
  const WireMaker wire(member);
  bench.submit(destroy_entry(member, 0, 9));
  bench.deliver(wire.signal(0, kDestroyShape, 0, 0));
  bench.deliver(wire.signal(3, kDestroyShape, 0, 1));
  const auto log_after = [&](const Frame& frame) {
    bench.take_log();
    bench.deliver(frame);
    return bench.take_log();
  };
  const std::string answer = "send 1>3 SIGNAL destroy seq=0 round=1 repair\n";
  bench.deliver(wire.farewell(0));  // waits for nothing of ours
  EXPECT_EQ(log_after(wire.nack(3, kDestroyShape, 0, 0, 0, 1)), answer);
  bench.deliver(wire.farewell(2));
  EXPECT_EQ(log_after(wire.nack(3, kDestroyShape, 0, 0, 0, 1)), answer);
  bench.deliver(wire.farewell(3));
  EXPECT_EQ(log_after(wire.nack(3, kDestroyShape, 0, 0, 0, 1)), "");
}

// Nothing had happened for long: the card's clock stood, and the tombstone began in the past.
TEST_F(Tombstones, OneThatWasAbandonedAfterALongSilenceStands) {
  const auto asks = [&](const Membership& member) {
    bench.take_log();
    bench.deliver(WireMaker(member).nack(1, kBarrierShape, 0, 0, 0, 0));
    return bench.take_log();
  };
  const std::string death = "send 0>1 DEATH rank=0\n";
  const Membership first = bench.join(2, 0, 1000);
  bench.now += 10 * default_timeouts().dead_ns;
  ASSERT_EQ(card_abandon_group(bench.card(), bench.context(), first.handle(), bench.now),
            PEAL_STATUS_OK);
  const Membership second = bench.join(2, 0, 2000);
  ASSERT_EQ(card_abandon_group(bench.card(), bench.context(), second.handle(), bench.now),
            PEAL_STATUS_OK);
  EXPECT_EQ(asks(second), death);
  EXPECT_EQ(asks(first), death);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_TOMBSTONES_REUSED), 0u);
}

// Groups that die one after the other, as fast as a client can make them.
TEST_F(Tombstones, ThoseOfOneClientKeepNoOtherOut) {
  const ContextId evil = 1;
  const ContextId good = 2;
  ASSERT_EQ(card_open_context(bench.card(), evil, 7), PEAL_STATUS_OK);
  ASSERT_EQ(card_open_context(bench.card(), good, 8), PEAL_STATUS_OK);
  uint32_t made = 0;
  while (made < 5 * CONFIG_CARD_MEMBERS && try_reserve(evil) == PEAL_STATUS_OK) {
    peal_connect_group request{};
    request.member = reserved();
    request.group = 1000 + made++;
    request.peer_count = 2;
    request.peers[0] = request.peers[1] = CardBench::played_address(1);
    ASSERT_EQ(card_connect_group(bench.card(), evil, request, bench.now), PEAL_STATUS_OK);
    ASSERT_EQ(card_abandon_group(bench.card(), evil, reserved(), bench.now), PEAL_STATUS_OK);
    RegionId channels = 0;
    ASSERT_TRUE(card_channel_released(bench.card(), &channels));
    bench.port.remove_region(channels);
  }
  EXPECT_EQ(made, 2u * CONFIG_CARD_MEMBERS);
  for (uint32_t i = 0; i < CONFIG_CARD_MEMBERS; i++) {
    ASSERT_EQ(try_reserve(good), PEAL_STATUS_OK) << i;
  }
}

// 65,535 reservations bring a place's handles round; a peer may still ask under the old one.
TEST_F(Tombstones, ItsHandleIsNobodyElses) {
  const Membership gone = leave(1000);
  RegionId channels = 0;
  for (uint32_t i = 0; i < 70'000; i++) {
    peal_reserve_group request{};
    request.ranks = 2;
    peal_peer_address address{};
    ASSERT_EQ(card_reserve_group(bench.card(), bench.context(), request, 3, bench.now, &address),
              PEAL_STATUS_OK);
    ASSERT_NE(address.member, gone.handle()) << i;
    ASSERT_EQ(card_abandon_group(bench.card(), bench.context(), address.member, bench.now),
              PEAL_STATUS_OK);
    ASSERT_TRUE(card_channel_released(bench.card(), &channels));
  }
  EXPECT_TRUE(answers(gone));
}

// --- who is who ---

// Another client of the same card knows everything about the group but is not the member.
TEST_F(Tombstones, NobodyElseOnTheCardMayHaveTheSameRankOfAGroup) {
  bench.join(4, 1, 1000);
  Membership second = bench.reserve(4, 1);
  std::vector<peal_peer_address> everybody;
  for (uint32_t rank = 0; rank < 4; rank++) everybody.push_back(CardBench::played_address(rank));
  EXPECT_EQ(bench.connect(second, everybody, 1000), PEAL_STATUS_BAD_GROUP);
  EXPECT_EQ(bench.connect(second, everybody, 1001), PEAL_STATUS_OK);
}

TEST_F(Tombstones, CardsOfAnotherGeometryAreRefused) {
  Membership member = bench.reserve(4, 1);
  std::vector<peal_peer_address> everybody;
  for (uint32_t rank = 0; rank < 4; rank++) everybody.push_back(CardBench::played_address(rank));
  everybody[3].geometry ^= 1;
  EXPECT_EQ(bench.connect(member, everybody, 1000), PEAL_STATUS_MISMATCH);
}

// A member that leaves a connected group without a word:
// those who wait for it must not wait for ever.
TEST_F(Leaving, WhoWaitsForAnAbandonedMemberIsTold) {
  ASSERT_EQ(card_abandon_group(bench.card(), bench.context(), member.handle(), bench.now),
            PEAL_STATUS_OK);
  bench.take_log();
  bench.deliver(wire.nack(2, kBarrierShape, 0, 0, 0, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 DEATH rank=1\n");
}

TEST_F(Leaving, AnAbandonedMembersOperationsEndAndItsPeersAreTold) {
  post_barrier(0);
  post_barrier(1);
  bench.take_log();
  ASSERT_EQ(card_abandon_group(bench.card(), bench.context(), member.handle(), bench.now),
            PEAL_STATUS_OK);
  EXPECT_EQ(bench.take_log(),
            "send 1>2 DEATH rank=1\n"
            "send 1>0 DEATH rank=1\n"
            "send 1>3 DEATH rank=1\n"
            "complete ctx0 cookie=100 PEER_DEAD rank=1\n"
            "complete ctx0 cookie=101 PEER_DEAD rank=1\n");
  RegionId channels = 0;
  EXPECT_TRUE(card_channel_released(bench.card(), &channels));
  post_barrier(2);
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=102 BAD_GROUP\n");
  EXPECT_EQ(card_abandon_group(bench.card(), bench.context(), member.handle(), bench.now),
            PEAL_STATUS_BAD_GROUP);
}

TEST_F(Leaving, AnAbandonedMembersBuffersAreItsHostsOnlyAfterTheDma) {
  post_broadcast(0, 64);
  ASSERT_GT(bench.port.dma_count(), 0u);
  ASSERT_EQ(card_abandon_group(bench.card(), bench.context(), member.handle(), bench.now),
            PEAL_STATUS_OK);
  EXPECT_TRUE(bench.port.take_completions().empty());
  RegionId channels = 0;
  EXPECT_FALSE(card_channel_released(bench.card(), &channels));
  bench.finish_all_dma();
  const auto completions = bench.port.take_completions();
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].second.status, PEAL_STATUS_PEER_DEAD);
  EXPECT_EQ(completions[0].second.failed_rank, 1u);
  EXPECT_TRUE(card_channel_released(bench.card(), &channels));
}

// --- the end of a context ---

class ClosedContext : public GroupTest {};

TEST_F(ClosedContext, IsQuietOnlyWhenNoDmaIsUnderWay) {
  post_broadcast(0, 64);
  ASSERT_GT(bench.port.dma_count(), 0u);
  card_close_context(bench.card(), bench.context(), bench.now);
  EXPECT_FALSE(card_context_quiet(bench.card(), bench.context()));
  bench.port.take_completions();
  bench.finish_all_dma();
  EXPECT_TRUE(card_context_quiet(bench.card(), bench.context()));
  EXPECT_TRUE(bench.port.take_completions().empty()) << "nobody is there to read them";
}

// A member that has left in order and only waits for a repair that somebody asked for is not dead.
TEST_F(ClosedContext, AfterADestroyItIsNoDeathWhateverIsUnderWay) {
  constexpr size_t kTwoPieces = 2 * CONFIG_MTU_BYTES;
  post_broadcast(0, kTwoPieces);
  bench.finish_all_dma();
  for (const uint32_t origin : {0u, 2u, 3u}) {
    const auto block = pattern_block(0, origin, 0, kTwoPieces);
    for (uint32_t piece = 0; piece < 2; piece++) {
      const auto from = block.begin() + piece * CONFIG_MTU_BYTES;
      bench.deliver(wire.hopping(broadcast_shape(kTwoPieces), 0, piece, origin,
                                 {from, from + CONFIG_MTU_BYTES}));
    }
  }
  bench.finish_all_dma();
  bench.take_log();
  bench.submit(destroy_entry(member, 1, 9));
  bench.deliver(wire.nack(2, broadcast_shape(kTwoPieces), 0, 0, 1, 0));
  ASSERT_EQ(bench.port.dma_count(), 1u);
  bench.deliver(wire.signal(0, kDestroyShape, 1, 0));
  bench.deliver(wire.signal(3, kDestroyShape, 1, 1));
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>2 SIGNAL destroy seq=1 round=0\n"
            "send 1>3 SIGNAL destroy seq=1 round=1\n"
            "complete ctx0 cookie=9 OK\n"
            "send 1>0 FAREWELL\n"
            "send 1>3 FAREWELL\n");
  card_close_context(bench.card(), bench.context(), bench.now);
  EXPECT_EQ(bench.take_log(), "");
  EXPECT_FALSE(card_context_quiet(bench.card(), bench.context()));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 len=" + kMtuText + " repair\n");
  EXPECT_TRUE(card_context_quiet(bench.card(), bench.context()));
}

TEST_F(ClosedContext, ItsKeysAndGroupsAreGone) {
  post_barrier(0);
  card_close_context(bench.card(), bench.context(), bench.now);
  const ContextId again = bench.open_context();
  EXPECT_EQ(again, bench.context());
  bench.take_log();
  bench.submit(
      allgather_entry(member, 1, 7, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, 8, send.key, receive.key));
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=7 BAD_GROUP\n");
  RegionId region = 0;
  EXPECT_EQ(card_unregister_memory(bench.card(), again, send.key, &region), PEAL_STATUS_BAD_KEY);
  EXPECT_TRUE(card_channel_released(bench.card(), &region));
  EXPECT_EQ(region, member.channels);
}

TEST_F(ClosedContext, OthersOnTheCardGoOn) {
  const ContextId other = bench.open_context();
  const Membership theirs = bench.reserve_in(other, 1, 0);
  peal_connect_group request{};
  request.member = theirs.handle();
  request.group = 6;
  ASSERT_EQ(card_connect_group(bench.card(), other, request, bench.now), PEAL_STATUS_OK);
  card_close_context(bench.card(), bench.context(), bench.now);
  bench.take_log();
  bench.submit_in(other, barrier_entry(theirs, 0, 3));
  EXPECT_EQ(bench.take_log(), "complete ctx1 cookie=3 OK\n");
}

TEST_F(ClosedContext, TableOfContextsIsFinite) {
  ContextId context = 1;  // the bench has place 0
  while (card_open_context(bench.card(), context) == PEAL_STATUS_OK) context++;
  EXPECT_EQ(context, static_cast<uint32_t>(CONFIG_CONTEXTS));
  EXPECT_EQ(card_open_context(bench.card(), 3), PEAL_STATUS_NO_RESOURCES);  // taken
  card_close_context(bench.card(), 3, bench.now);
  EXPECT_EQ(card_open_context(bench.card(), 3), PEAL_STATUS_OK);
}

// --- several members of one group on one card ---

TEST(SameCard, RanksOfOneGroupTalkThroughTheWire) {
  CardBench bench;
  constexpr uint32_t kRanks = 4;
  std::vector<Membership> members;
  std::vector<peal_peer_address> everybody;
  std::vector<Memory> receive;
  const Memory send = bench.add_memory("send", 256);
  for (uint32_t rank = 0; rank < kRanks; rank++) {
    members.push_back(bench.reserve(kRanks, rank));
    everybody.push_back(members.back().address);
    receive.push_back(bench.add_memory("receive" + std::to_string(rank), 256));
  }
  for (auto& member : members) ASSERT_EQ(bench.connect(member, everybody), PEAL_STATUS_OK);
  for (uint32_t rank = 0; rank < kRanks; rank++) {
    const auto block = pattern_block(0, rank, 0, 64);
    std::copy(block.begin(), block.end(), bench.port.bytes(send.region).begin() + rank * 64);
    peal_submission entry =
        allgather_entry(members[rank], 0, rank, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, 64, send.key,
                        receive[rank].key);
    entry.send_offset = rank * 64;
    bench.submit(entry);
  }
  for (int turn = 0; turn < 20; turn++) {
    bench.finish_all_dma();
    for (const Frame& frame : bench.port.take_sent()) bench.deliver(frame);
  }
  EXPECT_EQ(bench.port.take_completions().size(), kRanks);
  for (uint32_t rank = 0; rank < kRanks; rank++) {
    EXPECT_EQ(bench.port.bytes(receive[rank].region), pattern_result(0, kRanks, 64)) << rank;
  }
  EXPECT_EQ(bench.problems(), "");
}

// A card that was started again gives out other handles:
// what is meant for its former members finds none.
TEST(AnotherLife, GivesOutOtherHandles) {
  CardBench one({.index = 1});
  CardBench other({.index = 2});  // another incarnation
  EXPECT_NE(one.join(4, 1).handle(), other.join(4, 1).handle());
}

// The wire shows half of a group's id; the card knows all of it.
TEST_F(Tombstones, GroupsThatShareHalfOfTheirIdsAreTwo) {
  bench.join(4, 1, 0x1'0000'1000);
  Membership second = bench.reserve(4, 1);
  std::vector<peal_peer_address> everybody;
  for (uint32_t rank = 0; rank < 4; rank++) everybody.push_back(CardBench::played_address(rank));
  EXPECT_EQ(bench.connect(second, everybody, 0x2'0000'1000), PEAL_STATUS_OK);
}

TEST_F(Tombstones, FarewellsBeforeTheOwnEndAddUp) {
  Membership member = bench.join(4, 1, 1000);
  const WireMaker wire(member);
  bench.submit(destroy_entry(member, 0, 9));
  bench.deliver(wire.farewell(2));
  bench.deliver(wire.farewell(3));
  bench.deliver(wire.signal(0, kDestroyShape, 0, 0));
  bench.deliver(wire.signal(3, kDestroyShape, 0, 1));
  bench.take_log();
  bench.deliver(wire.nack(2, kDestroyShape, 0, 0, 0, 0));
  bench.deliver(wire.nack(3, kDestroyShape, 0, 0, 0, 1));
  EXPECT_EQ(bench.take_log(), "");  // not even a tombstone is left
}

// All epochs were finished by all before anybody could be done with the destroy.
TEST_F(Leaving, TheTombstoneRepairsRecyclingToo) {
  run_barriers(0, kEpoch);
  destroy(static_cast<uint32_t>(kEpoch));
  bench.take_log();
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_BELOW, 0, 2, 0));
  EXPECT_EQ(bench.take_log(), "send 1>2 SIGNAL recycle epoch=0 below root=2 hop=0 repair\n");
  bench.deliver(wire.recycle_nack(PEAL_RECYCLE_ALL, 0, 0, 1));
  EXPECT_EQ(bench.take_log(), "send 1>3 SIGNAL recycle epoch=0 all root=0 hop=1 repair\n");
  EXPECT_EQ(change(wire.recycle_nack(PEAL_RECYCLE_ALL, 0, 0, 0)), "+1 drop_hop");
}

// A promise that was not kept when the group was left: its timer goes with the member.
TEST_F(Leaving, NoTimerOutlivesTheMember) {
  constexpr size_t kUnstaged = CONFIG_MTU_BYTES;  // in the unit profile
  post_broadcast(0, kUnstaged);
  bench.finish_all_dma();
  deliver_others(0, kUnstaged);
  bench.deliver(wire.nack(3, broadcast_shape(kUnstaged), 0, 0, 0, 1));
  EXPECT_NE(card_next_deadline(bench.card()), kNever);
  destroy(1);
  EXPECT_EQ(card_next_deadline(bench.card()), kNever);
}

// The dead of a poisoned group is named to whoever asks, also to those who have said farewell.
TEST_F(Tombstones, ThePoisonedStandsAfterFarewells) {
  Membership member = bench.join(2, 0, 1000);
  const WireMaker wire(member);
  bench.deliver(wire.farewell(1));
  bench.deliver(wire.death(1, 1));
  bench.submit(destroy_entry(member, 0, 9));
  bench.take_log();
  bench.deliver(wire.nack(1, kDestroyShape, 0, 0, 0, 0));
  EXPECT_EQ(bench.take_log(), "send 0>1 DEATH rank=1\n");
}

// Until the last who might still ask would have given up, nobody else gets its place.
TEST_F(Tombstones, StandsAsLongAsAPeerMayBeAway) {
  const Membership first = leave(1000);
  bench.now += default_timeouts().dead_ns;
  const Membership second = leave(1001);
  EXPECT_TRUE(answers(first));
  EXPECT_TRUE(answers(second));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_TOMBSTONES_REUSED), 0u);
}

// Channels that nobody fetches are back-pressure too.
TEST_F(MemberSlots, ReleasedChannelsAreFetchedOrNobodyComesIn) {
  for (uint32_t i = 0; i < CONFIG_CARD_MEMBERS; i++) {
    ASSERT_EQ(reserve(2, 0), PEAL_STATUS_OK);
    ASSERT_EQ(card_abandon_group(bench.card(), bench.context(), address.member, bench.now),
              PEAL_STATUS_OK);
  }
  EXPECT_EQ(reserve(2, 0), PEAL_STATUS_NO_RESOURCES);
  RegionId channels = 0;
  EXPECT_TRUE(card_channel_released(bench.card(), &channels));
  EXPECT_EQ(reserve(2, 0), PEAL_STATUS_OK);
}

// Disagreement about the end leaves the group as it was.
TEST_F(Leaving, ARefusedDestroyLeavesTheGroupOpen) {
  bench.submit(destroy_entry(member, 0, 9));
  bench.deliver(wire.refuse(2, kDestroyShape, 0, 3));
  bench.take_log();
  post_barrier(1);
  EXPECT_EQ(bench.take_log(), "send 1>2 SIGNAL barrier seq=1 round=0\n");
}

// However many groups of others die, the living can be left: their tombstones are promised.
TEST_F(Tombstones, ThoseOfTheLivingAreKept) {
  const auto make = [&](ContextId context, uint64_t group) {
    peal_connect_group request{};
    request.member = reserved();
    request.group = group;
    request.peer_count = 2;
    request.peers[0] = request.peers[1] = CardBench::played_address(1);
    return card_connect_group(bench.card(), context, request, bench.now);
  };
  std::vector<uint32_t> living;
  for (uint32_t i = 0; i + 1 < CONFIG_CARD_MEMBERS; i++) {
    ASSERT_EQ(try_reserve(), PEAL_STATUS_OK);
    ASSERT_EQ(make(bench.context(), 1000 + i), PEAL_STATUS_OK);
    living.push_back(reserved());
  }
  RegionId channels = 0;
  uint64_t group = 5000;
  for (ClientId client = 7; client < 10; client++) {
    const ContextId context = client - 6;
    ASSERT_EQ(card_open_context(bench.card(), context, client), PEAL_STATUS_OK);
    while (try_reserve(context) == PEAL_STATUS_OK) {
      ASSERT_EQ(make(context, group++), PEAL_STATUS_OK);
      ASSERT_EQ(card_abandon_group(bench.card(), context, reserved(), bench.now), PEAL_STATUS_OK);
      ASSERT_TRUE(card_channel_released(bench.card(), &channels));
    }
  }
  for (const uint32_t member : living) {
    EXPECT_EQ(card_abandon_group(bench.card(), bench.context(), member, bench.now), PEAL_STATUS_OK);
  }
  EXPECT_EQ(bench.counter(PEAL_COUNTER_TOMBSTONES_REUSED), 0u);
}

}  // namespace
}  // namespace peal::test
