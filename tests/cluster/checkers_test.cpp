// SPDX-License-Identifier: BSD-2-Clause
// The checkers themselves: each finds what it is there for, and is content with a proper run.
#include "emulator/cluster/checkers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "abi/queue.h"
#include "abi/status.h"
#include "emulator/cluster/cluster.h"
#include "emulator/cluster/hosts.h"
#include "emulator/cluster/packet_pool.h"
#include "emulator/common/packet_text.h"
#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

// Two ranks of one group, as the hosts would have made them.
class Checkers : public testing::Test {
 protected:
  Checkers() : scenario_(plan(2, broadcast(100), 20)), world_(scenario_) {
    world_.channels = 8;
    world_.groups[0].id = 1;
    world_.groups[0].posted.assign(21, 2);
    for (uint32_t rank = 0; rank < 2; rank++) {
      MemberState& member = world_.members.emplace_back();
      member.rank = rank;
      member.place = {rank, 0};
      member.context = 3;
      member.handle = 0x10000 + rank;
      member.posts.resize(21);
      world_.groups[0].members.push_back(rank);
    }
  }

  peal_completion completion(uint32_t member, uint64_t sequence, peal_status status,
                             peal_operation operation = PEAL_OPERATION_ALLGATHER) {
    peal_completion entry{};
    entry.cookie = make_cookie(member, sequence);
    entry.sequence = sequence;
    entry.member = world_.members[member].handle;
    entry.operation = operation;
    entry.status = static_cast<uint16_t>(status);
    entry.failed_rank = PEAL_NO_RANK;
    return entry;
  }

  void post(uint32_t member, uint64_t sequence) {
    world_.members[member].posts[sequence].state = PostState::kPosted;
  }

  peal_wire_header data(uint32_t sequence) {
    peal_wire_header header{};
    emulator::card_mac(1, header.destination);
    emulator::card_mac(0, header.source);
    header.ethertype = __builtin_bswap16(PEAL_ETHERTYPE);
    header.version = PEAL_WIRE_VERSION;
    header.type = PEAL_PACKET_DATA;
    header.group = 1;
    header.sequence = sequence;
    header.operation = PEAL_OPERATION_ALLGATHER;
    return header;
  }

  Scenario scenario_;
  World world_;
};

TEST_F(Checkers, CompletionOnceIsFineTwiceIsNot) {
  CompletionChecker checker(world_);
  post(0, 0);
  EXPECT_EQ(checker.check(1, 0, 3, completion(0, 0, PEAL_STATUS_OK)), 0u);
  EXPECT_TRUE(world_.findings.none());
  EXPECT_EQ(world_.members[0].finished_below, 1u);
  EXPECT_EQ(checker.check(2, 0, 3, completion(0, 0, PEAL_STATUS_OK)), kNoMember);
  EXPECT_TRUE(world_.findings.has("exactly-once"));
}

TEST_F(Checkers, CompletionThatNobodyPosted) {
  CompletionChecker checker(world_);
  checker.check(1, 0, 3, completion(0, 4, PEAL_STATUS_OK));
  EXPECT_TRUE(world_.findings.has("exactly-once"));
}

// What one that left has not posted is over, and is no completion that could come.
TEST_F(Checkers, WhatWillNeverBePostedIsOverAndNotCompleted) {
  CompletionChecker checker(world_);
  MemberState& left = world_.members[0];
  post(0, 0);
  left.aborted = true;
  left.pass_over();
  EXPECT_EQ(left.finished_below, 0u);
  EXPECT_EQ(checker.check(1, 0, 3, completion(0, 0, PEAL_STATUS_OK)), 0u);
  EXPECT_TRUE(world_.findings.none());
  EXPECT_EQ(left.finished_below, left.posts.size());
  checker.check(2, 0, 3, completion(0, 1, PEAL_STATUS_BAD_GROUP));
  EXPECT_TRUE(world_.findings.has("exactly-once"));
}

TEST_F(Checkers, CompletionToTheWrongContext) {
  CompletionChecker checker(world_);
  post(0, 0);
  checker.check(1, 0, 4, completion(0, 0, PEAL_STATUS_OK));
  EXPECT_TRUE(world_.findings.has("exactly-once"));
}

TEST_F(Checkers, CompletionWithWildCookie) {
  CompletionChecker checker(world_);
  peal_completion entry = completion(0, 0, PEAL_STATUS_OK);
  entry.cookie = ~0ull;
  checker.check(1, 0, 3, entry);
  EXPECT_TRUE(world_.findings.has("exactly-once"));
}

TEST_F(Checkers, SuccessBeforeAllHavePosted) {
  CompletionChecker checker(world_);
  world_.groups[0].posted[1] = 1;
  post(0, 0);
  post(0, 1);
  checker.check(1, 0, 3, completion(0, 0, PEAL_STATUS_OK));
  EXPECT_TRUE(world_.findings.none());
  checker.check(1, 0, 3, completion(0, 1, PEAL_STATUS_OK));
  EXPECT_TRUE(world_.findings.has("barrier"));
}

// A broadcast needs its root, and nobody else.
TEST_F(Checkers, SuccessBeforeTheRootHasPosted) {
  scenario_.groups[0].operations.assign(20, root_broadcast(100, 1));
  CompletionChecker checker(world_);
  world_.groups[0].posted.assign(21, 1);
  post(0, 0);
  post(1, 1);
  checker.check(1, 1, 3, completion(1, 1, PEAL_STATUS_OK, PEAL_OPERATION_BROADCAST));
  EXPECT_EQ(world_.findings.lines(), std::vector<std::string>());
  checker.check(2, 0, 3, completion(0, 0, PEAL_STATUS_OK, PEAL_OPERATION_BROADCAST));
  EXPECT_EQ(world_.findings.lines(),
            std::vector<std::string>{"barrier at 2 ns: group 0 rank 0 sequence 0: succeeded before "
                                     "the root had posted it"});
}

// Whoever posts what the root posts may succeed; whoever does not, must not.
TEST_F(Checkers, DisagreementWithTheRoot) {
  OperationPlan in_place = root_broadcast(100, 1);
  in_place.in_place = true;
  scenario_.groups[0].operations.assign(20, root_broadcast(100, 1));
  scenario_.groups[0].disagreements = {{0, 0, root_broadcast(101, 1)}, {0, 1, in_place}};
  CompletionChecker checker(world_);
  for (const uint64_t sequence : {0, 1})
    for (const uint32_t rank : {0, 1}) post(rank, sequence);
  const auto succeed = [&](uint32_t rank, uint64_t sequence) {
    checker.check(sequence, rank, 3,
                  completion(rank, sequence, PEAL_STATUS_OK, PEAL_OPERATION_BROADCAST));
  };
  succeed(1, 0);
  succeed(1, 1);
  succeed(0, 1);
  EXPECT_EQ(world_.findings.lines(), std::vector<std::string>());
  succeed(0, 0);
  EXPECT_EQ(world_.findings.lines(),
            std::vector<std::string>{"status at 0 ns: group 0 rank 0 sequence 0: succeeded "
                                     "although the ranks disagree"});
}

TEST_F(Checkers, SequencesBeginWhereTheGroupSays) {
  scenario_.groups[0].first_sequence = (uint64_t{1} << 32) - 32;
  CompletionChecker checker(world_);
  post(0, 3);
  peal_completion entry = completion(0, 3, PEAL_STATUS_OK);
  entry.sequence += scenario_.groups[0].first_sequence;
  checker.check(1, 0, 3, entry);
  EXPECT_TRUE(world_.findings.none());
  WireChecker wire(world_);
  world_.members[0].finished_below = world_.members[1].finished_below = 30;
  peal_wire_header header = data(5);  // the 38th, over the end of the wire's 32 bits
  wire.on_send(1, {0, 1, &header, nullptr, 0});
  EXPECT_TRUE(world_.findings.has("running-ahead") == (37 >= 30 + world_.channels));
  header = data(6);
  wire.on_send(1, {0, 1, &header, nullptr, 0});
  EXPECT_TRUE(world_.findings.has("running-ahead"));
}

TEST_F(Checkers, ADmaThatStartsInTheBuffersOfTheDead) {
  MemoryChecker checker(world_);
  world_.region_member = {0, 0};
  world_.members[0].dead = true;
  checker.on_dma(1, {0, 0, 0, 8, true, false, true});
  EXPECT_TRUE(world_.findings.none());
  world_.members[0].closed = true;
  checker.on_dma(1, {0, 0, 0, 8, true, true, true});  // was under way
  EXPECT_TRUE(world_.findings.none());
  checker.on_dma(1, {0, 0, 0, 8, true, false, true});
  EXPECT_TRUE(world_.findings.has("dead-memory"));
}

TEST_F(Checkers, ADmaWhereTheCardHoldsNothing) {
  MemoryChecker checker(world_);
  checker.on_dma(1, {0, 5, 0, 8, true, false, true});  // channels: nobody's user memory
  checker.on_dma(2, {0, 5, 0, 8, true, true, true});
  EXPECT_TRUE(world_.findings.none());
  checker.on_dma(3, {0, 5, 0, 8, true, true, false});
  EXPECT_TRUE(world_.findings.has("quiet"));
  EXPECT_FALSE(world_.findings.has("isolation"));
  checker.on_dma(4, {0, kNoRegionNumber, 0, 8, false, false, false});
  EXPECT_TRUE(world_.findings.has("isolation"));
}

TEST_F(Checkers, ADmaInABufferThatIsTheUsers) {
  MemoryChecker checker(world_);
  world_.region_member = {0, 0};
  UserMemory& memory = world_.members[0].memory;
  memory = UserMemory({1, 0}, {2, 0, 1, 100, 200});
  std::vector<uint8_t> send(memory.send_bytes());
  std::vector<uint8_t> receive(memory.receive_bytes());
  memory.place(0, send.data(), 1, receive.data());
  EXPECT_EQ(memory.prepare(0, 0, broadcast(100)), "");
  checker.on_dma(1, {0, 0, memory.send_offset(0), 8, false, false, true});
  EXPECT_TRUE(world_.findings.none());
  EXPECT_NE(memory.finish(0, true), "");  // nobody gathered anything
  checker.on_dma(1, {0, 0, memory.send_offset(0), 8, false, false, true});
  EXPECT_TRUE(world_.findings.has("user-buffers"));
}

// It is read between post and completion, as far as the operation's parts go.
TEST_F(Checkers, ADmaInATableOfParts) {
  world_.region_member = {0, 0, 0};
  UserMemory& memory = world_.members[0].memory;
  memory = UserMemory({1, 0}, {2, 0, 2, 200, 200});
  std::vector<uint8_t> send(memory.send_bytes());
  std::vector<uint8_t> receive(memory.receive_bytes());
  memory.place(0, send.data(), 1, receive.data());
  constexpr uint64_t kPart = sizeof(peal_part);
  memory.place_tables(2, 4 * kPart);
  const auto finding = [this](uint64_t offset, uint32_t bytes, bool write, bool finished) {
    World world = world_;
    MemoryChecker(world).on_dma(1, {0, 2, offset, bytes, write, finished, true});
    const std::string text = world.findings.none() ? "" : world.findings.lines()[0];
    return text.substr(std::min(text.size(), text.find("region: ") + 8));
  };
  constexpr bool kRead = false;
  constexpr bool kWrite = true;
  for (const bool finished : {false, true}) {
    EXPECT_EQ(finding(4 * kPart, kPart, kRead, finished), "the table is the user's");
  }
  struct Case {
    OperationPlan operation;
    uint32_t parts;
  };
  const Case cases[] = {{alltoallv(100), 4},
                        {alltoallv(100, true), 2},
                        {allgatherv(100), 2},
                        {stepped_alltoallv(100), 4},
                        {alltoall(100), 0}};
  for (uint32_t sequence = 0; sequence < std::size(cases); sequence++) {
    const Case& each = cases[sequence];
    SCOPED_TRACE(operation_text(each.operation));
    const std::string of = "sequence " + std::to_string(sequence);
    EXPECT_EQ(memory.prepare(1, sequence, each.operation), "");
    const uint32_t bytes = each.parts * kPart;
    for (const bool finished : {false, true}) {
      EXPECT_EQ(finding(4 * kPart, bytes, kRead, finished), "");
      EXPECT_EQ(finding(4 * kPart, bytes + 1, kRead, finished), "outside the table of " + of);
    }
    EXPECT_EQ(finding(4 * kPart, kPart, kWrite, false), "the card may only read it");
    EXPECT_EQ(finding(0, kPart, kRead, false), "the table is the user's");  // another slot's
    EXPECT_EQ(finding(8 * kPart, kPart, kRead, false), "outside the region");
    memory.finish(1, false);
    // As when the operation ended while the table was still on its way.
    for (const bool finished : {false, true}) {
      EXPECT_EQ(finding(4 * kPart, kPart, kRead, finished),
                "the table is the user's, " + of + " is complete");
    }
  }
}

TEST(Seals, APayloadThatIsWrittenAfterItWasSent) {
  PacketPool pool(1024, true);
  for (const bool spoil : {false, true}) {
    SimPacket* packet = pool.allocate();
    std::memset(packet->payload, 7, 1024);
    pool.seal(packet, 100);
    packet->payload[100] = 8;  // behind what was sent
    if (spoil) packet->payload[99] = 8;
    EXPECT_EQ(pool.release(packet), !spoil);
  }
  EXPECT_EQ(pool.packets_in_use(), 0u);
}

TEST(Seals, EveryByteThatIsWritten) {
  PacketPool pool(1024, true);
  for (uint32_t bytes = 0; bytes <= 200; bytes++) {
    for (uint32_t at = 0; at < bytes; at++) {
      SimPacket* packet = pool.allocate();
      for (uint32_t i = 0; i < bytes; i++) packet->payload[i] = static_cast<uint8_t>(i * 3);
      pool.seal(packet, bytes);
      packet->payload[at] ^= uint8_t{1} << at % 8;
      ASSERT_FALSE(pool.release(packet)) << at << " of " << bytes;
    }
  }
}

// Words that have changed places: sums side by side must not be one for all.
TEST(Seals, WordsThatHaveChangedPlaces) {
  PacketPool pool(1024, true);
  for (uint32_t one = 0; one < 128; one += 8) {
    for (uint32_t other = one + 8; other < 128; other += 8) {
      SimPacket* packet = pool.allocate();
      for (uint32_t i = 0; i < 128; i++) packet->payload[i] = static_cast<uint8_t>(i * 3);
      pool.seal(packet, 128);
      for (uint32_t i = 0; i < 8; i++)
        std::swap(packet->payload[one + i], packet->payload[other + i]);
      ASSERT_FALSE(pool.release(packet)) << one << " and " << other;
    }
  }
}

// A run as a whole: the same plan is fine, and is found wanting when more is asked of it.
TEST(Runs, MorePacketsThanTheyMayTakeAreACollapse) {
  Scenario scenario = plan(8, broadcast(5000), 20);
  scenario.effort_max = 1.1;
  const Report fine = run(scenario);
  EXPECT_TRUE(fine.ok) << failures(fine);
  EXPECT_GE(fine.effort(), 1.0);
  scenario.effort_max = 0.5;
  const Report collapsed = run(scenario);
  EXPECT_EQ(collapsed.failed_checks(), "collapse");
  EXPECT_FALSE(collapsed.only_stuck());
}

TEST(Runs, ThatNeedMoreEventsThanTheyMayAreStuck) {
  Scenario scenario = plan(8, broadcast(5000), 20);
  scenario.events_max = 1000;
  const Report report = run(scenario);
  EXPECT_TRUE(report.findings.contains("stuck"));
  EXPECT_FALSE(report.ok);
}

TEST(Runs, ThatNeverEndAreStuckAndNothingElse) {
  Scenario scenario = plan(4, kBarrier, 1);
  scenario.faults.loss = 1;
  scenario.timeouts.dead_ns = 1000 * kSecond;
  const Report report = run(scenario);
  EXPECT_TRUE(report.only_stuck()) << failures(report);
}

// Hosts say which memory holds their tables.
TEST(Runs, WatchTheTablesOfParts) {
  const Scenario scenario = plan(2, alltoallv(100), 1);
  World world(scenario);
  Hosts hosts(world);
  Cluster cluster({}, nullptr, &hosts);
  hosts.start(cluster);
  while (world.members.empty()) ASSERT_TRUE(cluster.step());
  MemoryChecker checker(world);
  for (uint32_t region = 0; region < world.region_member.size(); region++)
    if (world.region_member[region] == 0 && !world.members[0].memory.owns(region))
      checker.on_dma(1, {0, region, 0, 16, false, false, true});
  EXPECT_EQ(world.findings.lines(),
            std::vector<std::string>{"user-buffers at 1 ns: group 0 rank 0: read of 16 bytes at 0 "
                                     "of the tables region: the table is the user's"});
}

// A submission that the card refuses is a failure without a reason.
TEST(Runs, OfAnOperationThatNoHostMayAskFor) {
  const Report report = run(bare_plan(2, {PEAL_OPERATION_RECYCLE}, 1));
  EXPECT_EQ(report.lines, (std::vector<std::string>{
                              "status at 400 ns: group 0 rank 0 sequence 0: unexpected status "
                              "BAD_OPCODE",
                              "status at 400 ns: group 0 rank 1 sequence 0: unexpected status "
                              "BAD_OPCODE"}));
}

TEST_F(Checkers, FailureWithoutAReason) {
  CompletionChecker checker(world_);
  for (const auto status :
       {PEAL_STATUS_PEER_DEAD, PEAL_STATUS_MISMATCH, PEAL_STATUS_TOO_MANY, PEAL_STATUS_DMA_FAULT}) {
    World world = world_;
    CompletionChecker fresh(world);
    world.members[0].posts[0].state = PostState::kPosted;
    peal_completion entry = completion(0, 0, status);
    entry.failed_rank = 1;
    fresh.check(1, 0, 3, entry);
    EXPECT_TRUE(world.findings.has("status")) << status;
  }
}

// Who is told that the ranks disagree is told with whom.
TEST_F(Checkers, AMismatchNamesARankOfTheGroup) {
  scenario_.groups[0].disagreements = {{1, 0, broadcast(101)}};
  const auto findings = [this](uint32_t failed_rank) {
    World world = world_;
    CompletionChecker fresh(world);
    world.members[0].posts[0].state = PostState::kPosted;
    peal_completion entry = completion(0, 0, PEAL_STATUS_MISMATCH);
    entry.failed_rank = failed_rank;
    EXPECT_EQ(fresh.check(1, 0, 3, entry), 0u);
    return world.findings.lines();
  };
  const auto nobody = [](const char* named) {
    return std::vector<std::string>{std::string("status at 1 ns: group 0 rank 0 sequence 0: "
                                                "MISMATCH with rank ") +
                                    named + ", which the group does not have"};
  };
  EXPECT_EQ(findings(0), std::vector<std::string>());
  EXPECT_EQ(findings(1), std::vector<std::string>());
  EXPECT_EQ(findings(2), nobody("2"));
  EXPECT_EQ(findings(PEAL_NO_RANK), nobody("4294967295"));
}

TEST_F(Checkers, ADeadRankMayBeNamedALivingOneNot) {
  scenario_.accidents.push_back({Accident::Kind::kSilence, {1, 0}, 100});
  EXPECT_FALSE(may_be_dead(world_, 0, 1, 99));
  EXPECT_TRUE(may_be_dead(world_, 0, 1, 100));
  EXPECT_FALSE(may_be_dead(world_, 0, 0, 100));
  EXPECT_FALSE(may_be_dead(world_, 0, 7, 100));
}

// That it will leave says nothing: it may be called dead when it has left.
TEST_F(Checkers, WhoWillLeaveIsNotDeadBefore) {
  scenario_.groups[0].abandons.push_back({1, true, 3, 0});
  EXPECT_FALSE(may_be_dead(world_, 0, 1, 100));
  world_.members[1].aborted = true;
  EXPECT_TRUE(may_be_dead(world_, 0, 1, 100));
  world_.members[1].aborted = false;
  world_.members[1].gave_up = true;
  EXPECT_TRUE(may_be_dead(world_, 0, 1, 100));
  EXPECT_FALSE(may_be_dead(world_, 0, 0, 100));
}

TEST_F(Checkers, OnlyALongOutageIsDeath) {
  emulator::Partition partition;
  partition.first_card = partition.last_card = 1;
  partition.from_ns = 0;
  partition.until_ns = scenario_.timeouts.dead_ns / 2;
  scenario_.faults.partitions = {partition};
  EXPECT_FALSE(may_be_dead(world_, 0, 1, kNever - 1));
  scenario_.faults.partitions[0].until_ns = scenario_.timeouts.dead_ns;
  EXPECT_TRUE(may_be_dead(world_, 0, 1, kNever - 1));
}

TEST_F(Checkers, RunningKOperationsAhead) {
  WireChecker checker(world_);
  peal_wire_header header = data(7);
  checker.on_send(1, {0, 1, &header, nullptr, 0});
  EXPECT_TRUE(world_.findings.none());
  header = data(8);
  checker.on_send(1, {0, 1, &header, nullptr, 0});
  EXPECT_TRUE(world_.findings.has("running-ahead"));
}

TEST_F(Checkers, RunningAheadFollowsTheSlowest) {
  WireChecker checker(world_);
  world_.members[0].finished_below = 10;
  world_.members[1].finished_below = 2;
  peal_wire_header header = data(9);
  checker.on_send(1, {0, 1, &header, nullptr, 0});
  EXPECT_TRUE(world_.findings.none());
  header = data(10);
  checker.on_send(1, {0, 1, &header, nullptr, 0});
  EXPECT_TRUE(world_.findings.has("running-ahead"));
}

TEST_F(Checkers, FramesThatAreNotWellFormed) {
  WireChecker good(world_);
  peal_wire_header header = data(0);
  good.on_send(1, {0, 1, &header, nullptr, 0});
  EXPECT_TRUE(world_.findings.none());
  const auto wrong = [this](auto spoil, uint32_t to_card = 1) {
    World world = world_;
    WireChecker checker(world);
    peal_wire_header spoiled = data(0);
    spoil(spoiled);
    checker.on_send(1, {0, to_card, &spoiled, nullptr, 0});
    return world.findings.has("wire");
  };
  EXPECT_TRUE(wrong([](auto&) {}, world_.scenario.cards));
  EXPECT_TRUE(wrong([](auto& h) { h.type = 99; }));
  EXPECT_TRUE(wrong([](auto& h) { h.version = 99; }));
  EXPECT_TRUE(wrong([](auto& h) { h.group = 99; }));
  EXPECT_TRUE(wrong([](auto& h) { h.sender = 99; }));
  EXPECT_TRUE(wrong([](auto& h) { h.sender = 1; }));
  EXPECT_TRUE(wrong([](auto& h) { h.source[5] = 9; }));
}

TEST_F(Checkers, APostThatNeverEndsIsStuck) {
  check_progress(world_, 1);
  EXPECT_TRUE(world_.findings.has("stuck"));
}

}  // namespace
}  // namespace peal::sim
