// SPDX-License-Identifier: BSD-2-Clause
// Each number once, whatever the wire does; refusals; what queues are told, and when.
#include "firmware/p2p/receiving.h"

#include "firmware/group/liveness.h"
#include "firmware/group/member.h"
#include "tests/support/log_lines.h"
#include "tests/unit/bad_fields.h"
#include "tests/unit/firmware/p2p/talk_fixture.h"

namespace peal::test {
namespace {

TEST_F(TalkTest, APutIsAcknowledgedWhenItIsInMemory) {
  bench.deliver(asking(put(0, 16, 3)));
  EXPECT_EQ(bench.take_log(), "dma_write memory+16 3\n");
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), "send 1>0 ACK landed=1\n");
  EXPECT_EQ(byte_at(16), 1);
}

TEST_F(TalkTest, AnMtuBehindABodyIsWrittenAtOnce) {
  const Memory large = bench.add_memory("large", CONFIG_MTU_BYTES, PEAL_ACCESS_WRITE);
  const Frame whole = put_by(large.key, 0, 0, CONFIG_MTU_BYTES);
  ASSERT_EQ(whole.payload.size(), kPayloadBytes);
  bench.deliver(whole);
  EXPECT_EQ(bench.take_log(), "dma_write large+0 " + std::to_string(CONFIG_MTU_BYTES) + "\n");
  bench.finish_dma();
}

TEST_F(TalkTest, WhatIsNotAskedForIsAcknowledgedWithTheNext) {
  bench.deliver(put(0, 0, 3));
  bench.finish_dma();
  EXPECT_EQ(bench.take_wire_log(), "");
  bench.deliver(asking(put(1, 3, 3)));
  bench.finish_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 ACK landed=2\n");
}

// By whichever way it comes in.
TEST_F(TalkTest, EveryFieldOfAHeaderIsLookedAt) {
  using H = peal_wire_header;
  expect_dropped(
      bench, put(0, 0, 3),
      {{"ethertype", [](H& h) { h.ethertype ^= 1; }, "+1 drop_ethertype"},
       {"version", [](H& h) { ++h.version; }, "+1 drop_version"},
       {"a type that is none", [](H& h) { h.type = 0xff; }, "+1 drop_type"},
       {"an operation", [](H& h) { h.operation = PEAL_OPERATION_BARRIER; }, "+1 drop_type"},
       {"an algorithm", [](H& h) { h.algorithm = PEAL_ALGORITHM_DISSEMINATION; }, "+1 drop_type"},
       {"a number on the edge", [](H& h) { h.flags = PEAL_PACKET_NUMBERED; }, "+1 drop_p2p_field"},
       {"a repair", [](H& h) { h.flags = PEAL_PACKET_REPAIR; }, "+1 drop_type"},
       {"an unknown flag", [](H& h) { h.flags = 0x80; }, "+1 drop_type"},
       {"group", [](H& h) { h.group ^= 1; }, "+1 drop_group"},
       {"another life of the member", [](H& h) { h.member += 0x10000; }, "+1 drop_generation"},
       {"identity", [](H& h) { h.identity ^= 1; }, "+1 drop_stranger"},
       {"signature", [](H& h) { h.signature ^= 1; }, "+1 drop_signature"},
       {"another rank's connection", from_rank(2), "+1 drop_connection"},
       {"another engine", [](H& h) { h.edge = p2p::kEngines; }, "+1 drop_p2p_field"},
       {"hop", [](H& h) { h.hop = 2; }, "+1 drop_p2p_field"},
       {"another life of the connection", [](H& h) { h.block_bytes += 0x10000; },
        "+1 drop_connection"},
       {"no connection", [](H& h) { h.block_bytes |= 0xffff; }, "+1 drop_connection"},
       {"acknowledged what was not sent", [](H& h) { h.piece = 1; }, "+1 drop_p2p_field"}});
  bench.deliver(asking(put(0, 0, 3)));
  bench.finish_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 ACK landed=1\n");
}

TEST_F(TalkTest, WhoTalksIsNotMissed) {
  Member& own = *find_member(bench.card(), member.handle());
  const Peer& peer = own.membership.peers[peer_entry(1, kSender, 4)];
  await_peer(bench.card(), own, kSender);
  EXPECT_NE(peer.awaited_since_ns, 0u);
  bench.deliver(skip(0));
  EXPECT_EQ(peer.awaited_since_ns, 0u);
}

TEST_F(TalkTest, ARepeatedPacketIsDroppedAndAcknowledged) {
  bench.deliver(put(0, 0, 3));
  EXPECT_EQ(change(put(0, 0, 3)), "+1 duplicate") << "while it lands";
  bench.finish_dma();
  bench.take_log();
  EXPECT_EQ(change(put(0, 0, 3)), "+1 duplicate, +1 sent_p2p_control") << "and afterwards";
  EXPECT_EQ(bench.take_log(), "send 1>0 ACK landed=1\n");
}

TEST_F(TalkTest, WhatComesBehindAGapLandsAndSaysSo) {
  bench.deliver(put(2, 20, 4));
  bench.finish_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 ACK landed=0 behind=0x2\n");
  bench.deliver(put(0, 0, 4));
  bench.finish_dma();
  bench.deliver(asking(put(1, 10, 4)));
  bench.finish_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 ACK landed=3\n");
  EXPECT_EQ(byte_at(0) * 100 + byte_at(10) * 10 + byte_at(20), 123);
}

TEST_F(TalkTest, NumbersOutsideTheWindowAreDropped) {
  EXPECT_EQ(change(put(p2p::kWindow, 0, 3)), "+1 drop_p2p_order");
  EXPECT_EQ(change(put(~0u, 0, 3)), "+1 duplicate, +1 sent_p2p_control");
  bench.deliver(put(p2p::kWindow - 1, 0, 3));
  bench.finish_dma();
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DMA_WRITE_BYTES), 3u);
}

TEST_F(TalkTest, WhatIsCarriedOutInOrderWaitsForWhatIsMissing) {
  const peal_p2p_announce message = {5, 0, 77, 0, 0, 0};
  const Frame second = talk(PEAL_PACKET_ANNOUNCE, kSender, handle, 1, message);
  EXPECT_EQ(change(second), "+1 sent_p2p_control, +1 drop_p2p_order");
  bench.deliver(put(0, 0, 3));
  EXPECT_EQ(change(second), "+1 received, +1 p2p_unexpected") << "what is landing is not missing";
  bench.finish_all_dma();
}

TEST_F(TalkTest, AnotherLifesPacketsAreDropped) {
  Frame stale = put(0, 0, 3);
  stale.header.block_bytes ^= 0x10000;
  seal(stale);
  EXPECT_EQ(change(stale), "+1 drop_connection");
  Frame beyond = put(0, 0, 3);
  beyond.header.block_bytes |= 0xffff;
  seal(beyond);
  EXPECT_EQ(change(beyond), "+1 drop_connection");
  Frame others = talk(PEAL_PACKET_SKIP, 2, handle, 0, peal_p2p_skip{});
  EXPECT_EQ(change(others), "+1 drop_connection") << "of another rank";
}

TEST_F(TalkTest, ARefusalIsToldAsOftenAsItIsAskedForUntilItIsSkipped) {
  const Frame bad = put_by(memory.key ^ 0x10000, 0, 0, 3);
  EXPECT_EQ(answer(bad), "send 1>0 REFUSED landed=0 refused=0 BAD_KEY\n");
  EXPECT_EQ(answer(bad), "send 1>0 REFUSED landed=0 refused=0 BAD_KEY\n");
  EXPECT_EQ(answer(put(0, 0, 3)), "send 1>0 REFUSED landed=0 refused=0 BAD_KEY\n")
      << "what was refused stays refused";
  EXPECT_EQ(answer(asking(skip(0))), "send 1>0 ACK landed=1\n");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DMA_WRITE_BYTES), 0u);
}

// What is told behind it is told in its turn.
TEST_F(TalkTest, ASkipOfNoProgramsPutIsTakenAtOnce) {
  bench.deliver(put(1, 0, 3, {3, 0, 1, 0}));
  bench.finish_dma();
  const uint64_t before = bench.counter(PEAL_COUNTER_NOTICES_REFUSED);
  bench.deliver(skip(0));
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NOTICES_REFUSED), before + 1) << "there is no such queue";
  EXPECT_EQ(bench.card().queues.failed_top, 0u);
}

TEST_F(TalkTest, PutsMayNotLeaveTheirMemory) {
  const Memory unwritable = bench.add_memory("unwritable", 64, PEAL_ACCESS_READ);
  const Memory other =
      bench.add_memory_of(bench.open_context(), "other", 64, PEAL_ACCESS_READ | PEAL_ACCESS_WRITE);
  uint32_t number = 0;
  const auto refusal = [&](const Frame& frame) {
    const std::string log = answer(frame);
    bench.deliver(skip(number++));
    return log.substr(log.rfind(' ') + 1);
  };
  EXPECT_EQ(refusal(put(number, 4094, 3)), "BAD_BOUNDS\n");
  EXPECT_EQ(refusal(put(number, ~uint64_t{0}, 3)), "BAD_BOUNDS\n");
  EXPECT_EQ(refusal(put_by(unwritable.key, number, 0, 3)), "BAD_ACCESS\n");
  EXPECT_EQ(refusal(put_by(other.key, number, 0, 3)), "BAD_KEY\n");
  EXPECT_EQ(refusal(talk(PEAL_PACKET_STREAM, kSender, handle, number,
                         peal_p2p_stream{0, 0x10000, {}}, {1, 2, 3})),
            "CLOSED\n");
  EXPECT_EQ(refusal(talk(PEAL_PACKET_GET, kSender, handle, number,
                         peal_p2p_get{4000, 97, memory.key, 5})),
            "BAD_BOUNDS\n");
  EXPECT_EQ(refusal(talk(PEAL_PACKET_READY, kSender, handle, number, peal_p2p_ready{0x10000, 5})),
            "DMA_FAULT\n");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_P2P_REFUSED), number);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_DMA_OPERATIONS), 0u);
}

// Records for what others get are few. A get for which there is none may not hold up what is behind
// it: it is refused, for good by this number, and its owner takes it by a later one.
TEST_F(TalkTest, AGetWithoutARecordIsRefusedByItsNumber) {
  const auto get = [&](uint32_t number) {
    return talk(PEAL_PACKET_GET, kSender, handle, number, peal_p2p_get{0, 8, memory.key, 5});
  };
  uint32_t number = 0;
  while (bench.card().p2p.services_used < p2p::kServices) {
    ASSERT_EQ(change(get(number++)).find("drop"), std::string::npos);
  }
  const std::string refusal =
      "REFUSED landed=" + std::to_string(number) + " refused=" + std::to_string(number) + " BUSY\n";
  EXPECT_NE(answer(get(number)).find(refusal), std::string::npos);
  for (uint32_t streamed = 1; streamed <= p2p::kServices; streamed++) {
    bench.finish_all_dma();
    bench.deliver(ack(streamed));
  }
  ASSERT_EQ(bench.card().p2p.services_used, 0u);
  EXPECT_NE(answer(get(number)).find(refusal), std::string::npos) << "a copy may be under way";
  bench.deliver(skip(number++));
  EXPECT_EQ(change(get(number)).find("drop"), std::string::npos);
  EXPECT_EQ(bench.card().p2p.services_used, 1u);
}

TEST_F(TalkTest, WhatCannotBeWrittenIsRefused) {
  bench.port.fault_dmas = {0, 1};
  bench.deliver(put(0, 0, 3));
  bench.finish_dma();
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 REFUSED landed=0 refused=0 DMA_FAULT\n");
  EXPECT_EQ(answer(asking(skip(0))), "send 1>0 ACK landed=1\n");
}

// Memory stays registered while a put lands in it.
TEST_F(TalkTest, APutHoldsItsKeyWhileItLands) {
  bench.deliver(put(0, 0, 3));
  RegionId region = 0;
  EXPECT_EQ(card_unregister_memory(bench.card(), bench.context(), memory.key, &region),
            PEAL_STATUS_BUSY);
  bench.finish_dma();
  EXPECT_EQ(card_unregister_memory(bench.card(), bench.context(), memory.key, &region),
            PEAL_STATUS_OK);
}

// --- what queues are told ---

class NoticeTest : public TalkTest {
 protected:
  // Hands the packet to point-to-point itself, so that what it notes is not taken by the card.
  void take(const Frame& frame) {
    Packet* packet = bench.port.receive(frame);
    ASSERT_NE(packet, nullptr);
    Card& card = bench.card();
    ++card.packets_held;
    packet->holds = 1;
    p2p::receive(card, card.members[member.handle() & 0xffff], packet,
                 CardBench::played_address(kSender));
    if (--packet->holds == 0) {
      --card.packets_held;
      bench.port.release_packet(packet);
    }
  }
  std::string noticed() {
    std::string text;
    for (const p2p::Noticed& each : p2p::noticed(bench.card())) {
      text += std::to_string(each.source) + ":" + std::to_string(each.notice.queue) + "." +
              std::to_string(each.notice.counter) + " to " + std::to_string(each.notice.steps) +
              " of " + std::to_string(each.notice.iteration) + "\n";
    }
    p2p::forget_noticed(bench.card());
    return text;
  }
};

TEST_F(NoticeTest, ASignalIsToldAtOnce) {
  take(put(0, 0, 0, {3, 1, 7, 1ull << 40}));
  EXPECT_EQ(noticed(), "0:3.1 to 7 of 1099511627776\n");
  take(put(0, 0, 0, {3, 1, 7, 1ull << 40}));
  EXPECT_EQ(noticed(), "") << "once";
}

TEST_F(NoticeTest, NothingIsToldBeforeWhatCameBeforeIsInMemory) {
  take(put(0, 0, 8));
  take(put(2, 0, 0, {3, 0, 2, 9}));
  take(put(1, 8, 0, {3, 0, 1, 9}));
  EXPECT_EQ(noticed(), "") << "the first is still landing";
  bench.port.take_log();
  const HeldDma dma = bench.port.finish_dma(0);
  Card& card = bench.card();
  p2p::on_landed(card, dma_take_done(card, dma.token, dma.ok));
  EXPECT_EQ(noticed(), "0:3.0 to 1 of 9\n0:3.0 to 2 of 9\n");
}

TEST_F(NoticeTest, WithoutAQueueNothingIsTold) {
  take(put(0, 0, 0));
  take(skip(1));
  EXPECT_EQ(noticed(), "");
}

// --- fields that cannot be ---

TEST_F(TalkTest, FieldsThatCannotBeAreDropped) {
  const auto with = [&](void (*spoil)(peal_wire_header & header)) {
    Frame frame = put(0, 0, 3);
    spoil(frame.header);
    seal_checksums(frame);
    return change(frame);
  };
  EXPECT_EQ(with([](peal_wire_header& h) { h.hop = PEAL_P2P_ANSWER; }), "+1 drop_p2p_field");
  EXPECT_EQ(with([](peal_wire_header& h) { h.edge = CONFIG_TRANSMIT_ENGINES; }),
            "+1 drop_p2p_field");
  EXPECT_EQ(with([](peal_wire_header& h) { h.flags = PEAL_PACKET_NUMBERED; }), "+1 drop_p2p_field");
  EXPECT_EQ(with([](peal_wire_header& h) { h.flags = PEAL_PACKET_REPAIR; }), "+1 drop_type");
  EXPECT_EQ(with([](peal_wire_header& h) { h.operation = PEAL_OPERATION_PUT; }), "+1 drop_type");
  EXPECT_EQ(with([](peal_wire_header& h) { h.algorithm = PEAL_ALGORITHM_DIRECT; }), "+1 drop_type");
  EXPECT_EQ(with([](peal_wire_header& h) { h.signature ^= 1; }), "+1 drop_signature");
  EXPECT_EQ(with([](peal_wire_header& h) { h.identity ^= 1; }), "+1 drop_stranger");
  EXPECT_EQ(with([](peal_wire_header& h) { h.sender = 4; }), "+1 drop_sender");
  EXPECT_EQ(with([](peal_wire_header& h) { h.sender = 1; }), "+1 drop_stranger");
  EXPECT_EQ(with([](peal_wire_header& h) { h.piece = 1; }), "+1 drop_p2p_field");
  EXPECT_EQ(change(ack(0, 1)), "+1 drop_p2p_field") << "nothing was sent";
}

TEST_F(TalkTest, LengthsThatCannotBeAreDropped) {
  const auto of = [&](peal_packet_type type, size_t bytes) {
    return change(talk(type, kSender, handle, 0, std::vector<uint8_t>(bytes)));
  };
  for (const auto type : {PEAL_PACKET_PUT, PEAL_PACKET_STREAM, PEAL_PACKET_ANNOUNCE}) {
    EXPECT_EQ(of(type, PEAL_P2P_BODY_BYTES - 1), "+1 drop_length");
  }
  for (const auto type : {PEAL_PACKET_PUT, PEAL_PACKET_STREAM, PEAL_PACKET_ANNOUNCE}) {
    EXPECT_EQ(of(type, kPayloadBytes + 1), "+1 drop_oversized");
  }
  EXPECT_EQ(of(PEAL_PACKET_GET, CONFIG_MTU_BYTES + 1), "+1 drop_oversized") << "nothing follows";
  for (const auto type : {PEAL_PACKET_OPEN, PEAL_PACKET_ACCEPT, PEAL_PACKET_CLOSE, PEAL_PACKET_ACK,
                          PEAL_PACKET_REFUSED, PEAL_PACKET_READY, PEAL_PACKET_DONE}) {
    EXPECT_EQ(of(type, 7), "+1 drop_length");
    EXPECT_EQ(of(type, 9), "+1 drop_length");
  }
  EXPECT_EQ(of(PEAL_PACKET_GET, 23), "+1 drop_length");
  EXPECT_EQ(of(PEAL_PACKET_SEEK, sizeof(peal_p2p_seek) - 1), "+1 drop_length");
  EXPECT_EQ(of(PEAL_PACKET_SKIP, 1), "+1 drop_length");
  EXPECT_EQ(of(PEAL_PACKET_CLOSED, 1), "+1 drop_length");
}

TEST_F(TalkTest, AnAnnouncementMayNotComeWithoutRoom) {
  const auto announce = [&](uint32_t number, size_t bytes) {
    const peal_p2p_announce message = {5, bytes == 0 ? 100 : bytes, number, 0, 0, 0};
    return change(
        talk(PEAL_PACKET_ANNOUNCE, kSender, handle, number, message, std::vector<uint8_t>(bytes)));
  };
  for (uint32_t i = 0; i < p2p::kTokens; i++)
    EXPECT_EQ(announce(i, 16), "+1 received, +1 p2p_unexpected");
  EXPECT_EQ(announce(p2p::kTokens, 16), "+1 drop_p2p_field") << "its bytes have no room";
  // (One more may have been sought, and its receive be gone.)
  for (uint32_t i = p2p::kTokens; i <= p2p::kPlaces; i++)
    EXPECT_EQ(announce(i, 0), "+1 received, +1 p2p_unexpected");
  EXPECT_EQ(announce(p2p::kPlaces + 1, 0), "+1 drop_p2p_field") << "there is no place for it";
}

TEST_F(TalkTest, PartOfAMessageDoesNotComeWithItsAnnouncement) {
  const peal_p2p_announce message = {5, 100, 1, 0, 0, 0};
  EXPECT_EQ(
      change(talk(PEAL_PACKET_ANNOUNCE, kSender, handle, 0, message, std::vector<uint8_t>(99))),
      "+1 drop_p2p_field");
}

TEST_F(TalkTest, WithoutADmaRecordAPutIsDroppedAndNamed) {
  const uint32_t free = bench.card().dma_in_use;
  bench.card().dma_in_use = CONFIG_DMA_RECORDS;
  EXPECT_EQ(change(put(0, 0, 3)), "+1 drop_no_dma, +1 no_dma_record");
  bench.card().dma_in_use = free;
  EXPECT_EQ(answer(asking(put(0, 0, 3))), "send 1>0 ACK landed=1\n");
}

}  // namespace
}  // namespace peal::test
