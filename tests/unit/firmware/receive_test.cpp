// SPDX-License-Identifier: BSD-2-Clause
// Where a packet goes that is good as a frame: to whom, by whom, of what, and in which order that
// is asked. Rank 1 of 6; its peers are 0, 2, 3, 5; rank 4 is none.
#include "firmware/receive.h"

#include <cstring>

#include "firmware/group/member.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

class Receive : public GroupTest {
 protected:
  Receive() : GroupTest(6, 1) {}

  // What the counters say of a frame with one field changed.
  template <typename Field, typename Value>
  std::string with(Frame frame, Field peal_wire_header::*field, Value value) {
    frame.header.*field = static_cast<Field>(value);
    seal(frame);
    return change(frame);
  }
  static Frame verdict(Frame frame, uint32_t rank, uint32_t status) {
    const peal_verdict body = {rank, status};
    frame.payload.resize(sizeof(body));
    std::memcpy(frame.payload.data(), &body, sizeof(body));
    seal(frame);
    return frame;
  }
};

TEST_F(Receive, TheMemberIsFoundByIndexAndGeneration) {
  const Frame good = wire.probe(2);
  const uint32_t handle = good.header.member;
  EXPECT_EQ(with(good, &peal_wire_header::member, CONFIG_CARD_MEMBERS), "+1 drop_member");
  EXPECT_EQ(with(good, &peal_wire_header::member, handle | 0xffff), "+1 drop_member");
  EXPECT_EQ(with(good, &peal_wire_header::member, handle + 1), "+1 drop_member") << "never used";
  EXPECT_EQ(with(good, &peal_wire_header::member, handle + 0x10000), "+1 drop_generation");
  EXPECT_EQ(bench.take_log(), "");
  EXPECT_EQ(change(good), "+1 sent_liveness, +1 received");
  EXPECT_EQ(bench.take_log(), "send 1>2 ALIVE\n");
}

TEST_F(Receive, AMemberThatIsNotConnectedHearsNobody) {
  const Membership other = bench.reserve(6, 1);
  EXPECT_EQ(with(wire.probe(2), &peal_wire_header::member, other.handle()),
            "+1 drop_not_connected");
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Receive, WhoeverIsGoneIsNotWhoCameAfter) {
  const Membership gone = bench.reserve(6, 1);
  ASSERT_EQ(card_abandon_group(bench.card(), bench.context(), gone.handle(), bench.now),
            PEAL_STATUS_OK);
  const Membership after = bench.reserve(6, 1);
  ASSERT_EQ(after.handle() & 0xffff, gone.handle() & 0xffff);
  EXPECT_EQ(with(wire.probe(2), &peal_wire_header::member, gone.handle()), "+1 drop_generation");
  EXPECT_EQ(with(wire.probe(2), &peal_wire_header::member, after.handle()),
            "+1 drop_not_connected");
  EXPECT_EQ(bench.take_log(), "");
}

// What is no packet of any operation is not looked at further: not even for whom it is.
TEST_F(Receive, TheKindComesFirst) {
  Frame frame = wire.probe(2);
  frame.header.member = CONFIG_CARD_MEMBERS;
  EXPECT_EQ(with(frame, &peal_wire_header::type, PEAL_PACKET_DATA), "+1 drop_type");
  EXPECT_EQ(with(frame, &peal_wire_header::operation, PEAL_OPERATION_BARRIER), "+1 drop_type");
  EXPECT_EQ(with(frame, &peal_wire_header::algorithm, PEAL_ALGORITHM_COUNT), "+1 drop_type");
  EXPECT_EQ(with(frame, &peal_wire_header::group, 0), "+1 drop_member");
}

TEST_F(Receive, ThenTheGroupThenTheSender) {
  Frame frame = wire.probe(2);
  frame.header.sender = 6;
  frame.header.identity = 0;
  EXPECT_EQ(with(frame, &peal_wire_header::group, 0), "+1 drop_group");
  EXPECT_EQ(with(frame, &peal_wire_header::sender, 6), "+1 drop_sender");
  EXPECT_EQ(with(frame, &peal_wire_header::sender, 1), "+1 drop_sender") << "itself";
  EXPECT_EQ(with(frame, &peal_wire_header::sender, 4), "+1 drop_sender") << "no peer";
  EXPECT_EQ(with(frame, &peal_wire_header::sender, 2), "+1 drop_stranger");
  EXPECT_EQ(with(wire.probe(2), &peal_wire_header::signature, 0), "+1 drop_signature");
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Receive, NewsOfLifeMakeNoRecord) {
  EXPECT_EQ(change(wire.alive(2)), "+1 received");
  EXPECT_EQ(change(wire.farewell(2)), "+1 received");
  EXPECT_EQ(bench.take_log(), "");
  EXPECT_EQ(card_holds(bench.card()).operations, 0u);
}

TEST_F(Receive, ADeathMustNameARankOfTheGroup) {
  EXPECT_EQ(change(verdict(wire.death(2, 3), 6, PEAL_STATUS_PEER_DEAD)), "+1 drop_origin");
  EXPECT_EQ(change(verdict(wire.death(2, 3), 3, PEAL_STATUS_MISMATCH)), "+1 drop_origin");
  EXPECT_EQ(bench.take_log(), "");
}

// Nothing but the truth comes out of a poisoned group, and no news go round in circles.
TEST_F(Receive, WhoeverSpeaksToAPoisonedGroupIsTold) {
  bench.deliver(wire.death(2, 3));
  bench.take_log();
  for (const Frame& frame : {wire.probe(0), wire.alive(0), block_of(0, 0, 64),
                             wire.nack(0, broadcast_shape(64), 0, 0, 1, 0)}) {
    EXPECT_EQ(change(frame), "+1 sent_verdict, +1 drop_closed");
    EXPECT_EQ(bench.take_log(), "send 1>0 DEATH rank=3\n");
  }
  EXPECT_EQ(change(wire.death(0, 3)), "+1 drop_closed");
  EXPECT_EQ(change(wire.farewell(0)), "+1 drop_closed");
  EXPECT_EQ(bench.take_log(), "");
}

// Though it is just what an operation waits for, or has had.
TEST_F(Receive, InAPoisonedGroupNothingGoesOn) {
  post_broadcast(0, 64);
  bench.finish_all_dma();
  deliver_others(0, 64);
  bench.finish_all_dma();
  post_broadcast(1, 64);
  bench.deliver(wire.death(2, 3));
  bench.take_log();
  for (const uint64_t sequence : {0, 1}) {
    EXPECT_EQ(change(block_of(0, sequence, 64)), "+1 sent_verdict, +1 drop_closed");
    EXPECT_EQ(bench.take_log(), "send 1>0 DEATH rank=3\n");
  }
  bench.finish_all_dma();
}

TEST_F(Receive, NorDoesWhatWasRefused) {
  post_broadcast(0, 64);
  bench.finish_all_dma();
  bench.deliver(verdict(wire.refuse(2, broadcast_shape(64), 0, 3), 3, PEAL_STATUS_DMA_FAULT));
  bench.take_log();
  EXPECT_EQ(change(block_of(0, 0, 64)), "+1 drop_closed");
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Receive, ARefusalMustSayWhoAndWhy) {
  post_broadcast(0, 64);
  bench.finish_all_dma();
  bench.take_log();
  const Frame refusal = wire.refuse(2, broadcast_shape(64), 0, 3);
  EXPECT_EQ(change(verdict(refusal, 6, PEAL_STATUS_MISMATCH)), "+1 drop_origin");
  EXPECT_EQ(change(verdict(refusal, 3, PEAL_STATUS_OK)), "+1 drop_type");
  EXPECT_EQ(change(verdict(refusal, 3, PEAL_STATUS_PEER_DEAD)), "+1 drop_type");
  EXPECT_EQ(bench.take_log(), "");
  EXPECT_EQ(answer(verdict(refusal, 3, PEAL_STATUS_DMA_FAULT)),
            "send 1>2 REFUSE seq=0 rank=3\n"
            "send 1>0 REFUSE seq=0 rank=3\n"
            "send 1>3 REFUSE seq=0 rank=3\n"
            "send 1>5 REFUSE seq=0 rank=3\n"
            "complete ctx0 cookie=100 DMA_FAULT rank=3\n");
}

// "Not yet" must be one of the answers that there are, to a question that may have been asked. Of
// what it teaches elsewhere nothing is believed here.
TEST_F(Receive, AnAnswerMustBeOneThatThereIs) {
  post_broadcast(0, 64);
  post_relay(1);
  bench.finish_all_dma();
  bench.take_log();
  const Patience& patience = bench.card().members[0].patience;
  const TimeNs before_ns = patience.wait_ns;
  const auto answered = [&](OperationShape shape, uint64_t sequence, uint32_t reason,
                            uint32_t patience_ms, uint32_t asked_us) {
    return change(wire.not_yet(0, shape, sequence, 0, 0, 0, asked_us, reason, patience_ms));
  };
  const OperationShape all = broadcast_shape(64);
  const OperationShape alone = binomial_shape(8, 0);
  EXPECT_EQ(answered(all, 0, PEAL_NOT_YET_SPLIT, 0, now_us()), "+1 drop_type");
  EXPECT_EQ(answered(all, 0, PEAL_NOT_YET_SPLIT + 1, 0, now_us()), "+1 drop_type");
  EXPECT_EQ(answered(all, 0, 0xffff, 0, now_us()), "+1 drop_type");
  EXPECT_EQ(answered(all, 0, PEAL_NOT_YET_LATE, 50, now_us()), "+1 drop_type");
  EXPECT_EQ(answered(all, 0, PEAL_NOT_YET_WAITS, 0, now_us() + 1), "+1 drop_type");
  EXPECT_EQ(answered(alone, 1, PEAL_NOT_YET_WAITS, 50, now_us()), "+1 drop_type");
  EXPECT_EQ(answered(alone, 1, PEAL_NOT_YET_SENT, 50, now_us()), "+1 drop_type");
  EXPECT_EQ(bench.take_log(), "");
  EXPECT_EQ(patience.wait_ns, before_ns);
  EXPECT_EQ(answered(alone, 1, PEAL_NOT_YET_LATE, 50, now_us()), "+1 received");
  EXPECT_EQ(patience.wait_ns, 50 * TimeNs{1'000'000});
  EXPECT_EQ(answered(all, 0, PEAL_NOT_YET_LATE, 0, now_us()), "+1 received");
}

TEST_F(Receive, SoMustOneOfRecycling) {
  const auto answered = [&](uint32_t reason, uint32_t patience_ms, uint32_t asked_us) {
    return change(wire.recycle_not_yet(PEAL_RECYCLE_BELOW, 0, 1, 0, asked_us, reason, patience_ms));
  };
  EXPECT_EQ(answered(PEAL_NOT_YET_SPLIT + 1, 0, now_us()), "+1 drop_type");
  EXPECT_EQ(answered(PEAL_NOT_YET_SPLIT, 50, now_us()), "+1 drop_type");
  EXPECT_EQ(answered(PEAL_NOT_YET_WAITS, 50, now_us()), "+1 drop_type");
  EXPECT_EQ(answered(PEAL_NOT_YET_WAITS, 0, now_us() + 1), "+1 drop_type");
  EXPECT_EQ(bench.take_log(), "");
  EXPECT_EQ(answered(PEAL_NOT_YET_LATE, 50, now_us()), "+1 received");
}

// What is not of the group says nothing of its losses either, nor what a question is worth.
TEST_F(Receive, FlagsOfWhatIsDroppedSayNothing) {
  post_broadcast(0, 64);
  bench.finish_all_dma();
  Member& own = bench.card().members[0];
  own.pace.waiting_ns = 5;
  Frame repair = block_of(0, 0, 64);
  WireMaker::make_repair(repair);
  for (Frame frame : {wire.nack(2, broadcast_shape(64), 0, 0, 1, 0),
                      wire.recycle_nack(PEAL_RECYCLE_BELOW, 0, 1, 0), repair}) {
    if (frame.header.type == PEAL_PACKET_NACK) frame.header.flags |= PEAL_PACKET_LOSSES;
    EXPECT_EQ(with(frame, &peal_wire_header::signature, frame.header.signature ^ 1u),
              "+1 drop_signature");
    EXPECT_TRUE(own.patience.lossless);
    EXPECT_EQ(own.pace.waiting_ns, 5u);
  }
  Frame question = wire.recycle_nack(PEAL_RECYCLE_BELOW, 0, 1, 0);
  question.header.flags |= PEAL_PACKET_LOSSES;
  seal(question);
  bench.deliver(question);
  EXPECT_FALSE(own.patience.lossless);
  bench.deliver(repair);
  EXPECT_EQ(own.pace.waiting_ns, 0u);
}

// Signals carry nothing, also those of an operation that waits for them.
TEST_F(Receive, ASignalWithAPayloadIsNone) {
  post_barrier(0);
  bench.take_log();
  Frame frame = wire.signal(behind(0), kBarrierShape, 0, 0);
  frame.payload.resize(8);
  frame.header.length = 8;
  seal(frame);
  EXPECT_EQ(change(frame), "+1 drop_length");
  EXPECT_EQ(bench.take_log(), "");
}

// What is of two fields is of neither: group, operation and sequence must all be right.
TEST_F(Receive, WhatIsNotOfTheOperationIsNotTaken) {
  post_barrier(0);
  bench.take_log();
  const Frame good = wire.signal(behind(0), kBarrierShape, 0, 0);
  EXPECT_EQ(with(good, &peal_wire_header::signature, good.header.signature ^ 1u),
            "+1 drop_signature");
  EXPECT_EQ(with(good, &peal_wire_header::group, good.header.group ^ 1u), "+1 drop_group");
  EXPECT_EQ(with(good, &peal_wire_header::flags, 4), "+1 drop_type");
  EXPECT_EQ(with(good, &peal_wire_header::version, PEAL_WIRE_VERSION + 1), "+1 drop_version");
  EXPECT_EQ(with(good, &peal_wire_header::ethertype, 0), "+1 drop_ethertype");
  EXPECT_EQ(with(good, &peal_wire_header::identity, good.header.identity ^ 1u), "+1 drop_stranger");
  EXPECT_EQ(with(good, &peal_wire_header::sender, 2), "+1 drop_stranger");
  EXPECT_EQ(with(good, &peal_wire_header::sender, 6), "+1 drop_sender");
  EXPECT_EQ(bench.take_log(), "");
}

// Of 6 ranks, 3 is both two ahead of 1 and four behind it: one edge, whichever its packets name.
TEST_F(Receive, APeerThatStandsInTwoEntriesHasOneEdge) {
  post_barrier(0);
  bench.take_log();
  EXPECT_EQ(change(WireMaker::numbered(wire.signal(behind(2), kBarrierShape, 0, 2), 1)),
            "+1 received");
  const auto& peers = find_member(bench.card(), member.handle())->membership.peers;
  EXPECT_EQ(peers[peer_ahead(1)].heard, 1);
  EXPECT_EQ(peers[peer_behind(2)].heard, 0);
}

// A signature must be that of the header's own fields, whatever is known of the operation.
TEST_F(Receive, ASignatureOfOtherFieldsIsNobodys) {
  const Frame good = block_of(0, 0, 64);
  EXPECT_EQ(with(good, &peal_wire_header::block_bytes, 72), "+1 drop_signature");
  post_broadcast(0, 64);
  bench.finish_all_dma();
  bench.take_log();
  EXPECT_EQ(with(good, &peal_wire_header::block_bytes, 72), "+1 drop_signature");
  EXPECT_EQ(bench.take_log(), "");
  EXPECT_EQ(card_holds(bench.card()).operations, 1u);
}

}  // namespace
}  // namespace peal::test
