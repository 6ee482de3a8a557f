// SPDX-License-Identifier: BSD-2-Clause
// Numbers of an edge: what they say of packets that are missing.
#include "firmware/wire/edge.h"

#include <gtest/gtest.h>

namespace peal::test {
namespace {

peal_wire_header numbered(uint8_t type, uint32_t number) {
  peal_wire_header header = {};
  header.type = type;
  header.flags = PEAL_PACKET_NUMBERED;
  header.edge = static_cast<uint8_t>(number);
  if (!counts_on_edge(header)) header.fragment = static_cast<uint8_t>(number >> 8);
  return header;
}

EdgeSays says(Peer& peer, uint8_t type, uint32_t number) {
  return edge_heard(peer, numbered(type, number));
}
// Does it say that packets are missing?
bool heard(Peer& peer, uint8_t type, uint32_t number) {
  return says(peer, type, number) == EdgeSays::kGap;
}

TEST(Edge, CountsFromOneAndGoesRound) {
  Peer peer = {};
  for (uint32_t i = 1; i <= 600; i++) {
    peal_wire_header header = {};
    header.flags = 0;
    edge_count(peer, &header);
    EXPECT_EQ(header.edge, static_cast<uint8_t>(i));
    EXPECT_EQ(header.flags, PEAL_PACKET_NUMBERED);
  }
  peal_wire_header header = {};
  edge_tell(peer, &header);
  EXPECT_EQ(header.edge, static_cast<uint8_t>(600));
  EXPECT_EQ(header.fragment, 600 >> 8);
  EXPECT_EQ(peer.sent, 600u);
}

TEST(Edge, InOrderNothingIsMissing) {
  Peer peer = {};
  for (uint32_t i = 1; i <= 70'000; i++) {
    const uint8_t types[] = {PEAL_PACKET_DATA, PEAL_PACKET_SIGNAL, PEAL_PACKET_REFUSE};
    const uint8_t type = types[i % 3];
    EXPECT_FALSE(heard(peer, type, i)) << i;
    EXPECT_EQ(says(peer, PEAL_PACKET_ALIVE, i), EdgeSays::kComplete) << i;
  }
}

TEST(Edge, AGapShowsOnceAtTheNextPacket) {
  Peer peer = {};
  EXPECT_TRUE(heard(peer, PEAL_PACKET_DATA, 2));
  EXPECT_FALSE(heard(peer, PEAL_PACKET_DATA, 3));
  EXPECT_FALSE(heard(peer, PEAL_PACKET_DATA, 1));  // only overtaken
  EXPECT_FALSE(heard(peer, PEAL_PACKET_DATA, 3));  // repeated
  EXPECT_FALSE(heard(peer, PEAL_PACKET_DATA, 4));
  EXPECT_TRUE(heard(peer, PEAL_PACKET_SIGNAL, 104));
}

// At the end of all nothing follows; whoever answers a probe says how many there were.
TEST(Edge, ALossAtTheEndShowsInTheAnswerToAProbe) {
  Peer peer = {};
  EXPECT_FALSE(heard(peer, PEAL_PACKET_DATA, 1));
  EXPECT_TRUE(heard(peer, PEAL_PACKET_ALIVE, 2));
  EXPECT_FALSE(heard(peer, PEAL_PACKET_ALIVE, 2));
  EXPECT_FALSE(heard(peer, PEAL_PACKET_DATA, 3));
}

TEST(Edge, IsCompleteWhenAllHasComeThatThereWas) {
  Peer peer = {};
  EXPECT_EQ(says(peer, PEAL_PACKET_ALIVE, 0), EdgeSays::kComplete);
  EXPECT_EQ(says(peer, PEAL_PACKET_DATA, 1), EdgeSays::kNothing);
  EXPECT_EQ(says(peer, PEAL_PACKET_ALIVE, 0), EdgeSays::kNothing);  // of before
  EXPECT_EQ(says(peer, PEAL_PACKET_NACK, 1), EdgeSays::kComplete);
  EXPECT_EQ(says(peer, PEAL_PACKET_DATA, 1), EdgeSays::kNothing);  // repeated
  EXPECT_EQ(says(peer, PEAL_PACKET_NOT_YET, 3), EdgeSays::kGap);
  EXPECT_EQ(says(peer, PEAL_PACKET_ALIVE, 3), EdgeSays::kComplete);
}

// What in eight bits would be none, or behind what has come.
TEST(Edge, ManyThatAreLostShowInTheAnswer) {
  for (const uint32_t lost : {127, 128, 200, 255, 256, 257, 512, 1'000, 32'767}) {
    Peer from = {};
    Peer to = {};
    peal_wire_header header = {};
    for (uint32_t i = 0; i < 300; i++) {
      header = {};
      header.type = PEAL_PACKET_DATA;
      edge_count(from, &header);
      EXPECT_EQ(edge_heard(to, header), EdgeSays::kNothing);
    }
    for (uint32_t i = 0; i < lost; i++) edge_skip(from);
    header = {};
    header.type = PEAL_PACKET_ALIVE;
    edge_tell(from, &header);
    EXPECT_EQ(edge_heard(to, header), EdgeSays::kGap) << lost;
    EXPECT_EQ(edge_heard(to, header), EdgeSays::kComplete) << lost;
    header = {};
    header.type = PEAL_PACKET_DATA;
    edge_count(from, &header);
    EXPECT_TRUE(edge_is_next(to, header)) << lost;
  }
}

// A number in eight bits means the nearest one.
TEST(Edge, WhatAPacketMissesIsSaidByTheNextAnswer) {
  Peer peer = {};
  EXPECT_EQ(says(peer, PEAL_PACKET_DATA, 257), EdgeSays::kNothing) << "as if it were the first";
  EXPECT_EQ(says(peer, PEAL_PACKET_ALIVE, 257), EdgeSays::kGap);
  EXPECT_EQ(peer.heard, 257u);
  EXPECT_EQ(says(peer, PEAL_PACKET_DATA, 257 + 127), EdgeSays::kGap);
  EXPECT_EQ(peer.heard, 257u + 127);
}

// (A number in eight bits that is far behind what was said is taken for one that is ahead.)
TEST(Edge, AnAnswerThatOvertookManyIsBelievedAgain) {
  Peer peer = {};
  EXPECT_EQ(says(peer, PEAL_PACKET_ALIVE, 300), EdgeSays::kGap);
  for (uint32_t i = 1; i <= 300; i++)
    EXPECT_EQ(says(peer, PEAL_PACKET_DATA, i), EdgeSays::kNothing);
  EXPECT_EQ(says(peer, PEAL_PACKET_ALIVE, 300), EdgeSays::kComplete);
  EXPECT_EQ(peer.heard, 300u);
  EXPECT_EQ(says(peer, PEAL_PACKET_ALIVE, 299), EdgeSays::kNothing) << "of before";
}

TEST(Edge, AnAnswerThatOvertookManyHidesNoLoss) {
  for (const uint32_t lost : {1u, 2u, 127u}) {
    Peer peer = {};
    EXPECT_EQ(says(peer, PEAL_PACKET_ALIVE, 600), EdgeSays::kGap);
    for (uint32_t i = 1; i <= 600 - lost; i++) (void)says(peer, PEAL_PACKET_DATA, i);
    EXPECT_GT(peer.heard, 600u);
    EXPECT_EQ(says(peer, PEAL_PACKET_ALIVE, 600), EdgeSays::kGap) << lost;
    EXPECT_EQ(says(peer, PEAL_PACKET_ALIVE, 600), EdgeSays::kComplete) << lost;
  }
}

// Of a ring's neighbour is known how many it holds back.
TEST(Edge, WhatIsExplainedIsNoGap) {
  Peer peer = {};
  peer.heard = 254;
  edge_explained(peer, numbered(PEAL_PACKET_DATA, 258), 3);
  EXPECT_EQ(peer.heard, 257u);
  EXPECT_EQ(says(peer, PEAL_PACKET_DATA, 258), EdgeSays::kNothing);
  edge_explained(peer, numbered(PEAL_PACKET_DATA, 262), 2);
  EXPECT_EQ(peer.heard, 258u);
}

TEST(Edge, WithoutANumberNothingIsSaid) {
  Peer peer = {};
  peal_wire_header header = numbered(PEAL_PACKET_DATA, 9);
  header.flags = PEAL_PACKET_REPAIR;
  EXPECT_EQ(edge_heard(peer, header), EdgeSays::kNothing);
  EXPECT_EQ(peer.heard, 0u);
}

}  // namespace
}  // namespace peal::test
