// SPDX-License-Identifier: BSD-2-Clause
// The wire format byte by byte, against a frame written out by hand: two cards of different builds
// must agree on it.
#include "abi/wire.h"

#include <gtest/gtest.h>

#include <cstring>

namespace {

TEST(Wire, HeaderIsTheseBytes) {
  peal_wire_header header{};
  const uint8_t destination[PEAL_MAC_BYTES] = {0x02, 0x50, 0x65, 0x61, 0x00, 0x07};
  const uint8_t source[PEAL_MAC_BYTES] = {0x02, 0x50, 0x65, 0x61, 0x01, 0x00};
  std::memcpy(header.destination, destination, sizeof(destination));
  std::memcpy(header.source, source, sizeof(source));
  header.ethertype = __builtin_bswap16(PEAL_ETHERTYPE);
  header.version = PEAL_WIRE_VERSION;
  header.type = PEAL_PACKET_DATA;
  header.header_crc = 0x10111213;
  header.payload_crc = 0x14151617;
  header.group = 0x18191a1b;
  header.member = 0x1c1d1e1f;
  header.identity = 0x20212223;
  header.signature = 0x24252627;
  header.sequence = 0x28292a2b;
  header.piece = 0x2c2d2e2f;
  header.origin = 0x3031;
  header.sender = 0x3233;
  header.hop = 0x34;
  header.operation = PEAL_OPERATION_ALLGATHER;
  header.algorithm = PEAL_ALGORITHM_RECURSIVE_DOUBLING;
  header.flags = PEAL_PACKET_REPAIR;
  header.fragment = 0x39;
  header.edge = 0x38;
  header.length = 0x3a3b;
  header.block_bytes = 0x3c3d3e3f;
  const uint8_t expected[PEAL_HEADER_BYTES] = {
      0x02, 0x50, 0x65, 0x61, 0x00, 0x07, 0x02, 0x50, 0x65, 0x61, 0x01, 0x00, 0x88,
      0xb5, 0x03, 0x01, 0x13, 0x12, 0x11, 0x10, 0x17, 0x16, 0x15, 0x14, 0x1b, 0x1a,
      0x19, 0x18, 0x1f, 0x1e, 0x1d, 0x1c, 0x23, 0x22, 0x21, 0x20, 0x27, 0x26, 0x25,
      0x24, 0x2b, 0x2a, 0x29, 0x28, 0x2f, 0x2e, 0x2d, 0x2c, 0x31, 0x30, 0x33, 0x32,
      0x34, 0x02, 0x03, 0x01, 0x39, 0x38, 0x3b, 0x3a, 0x3f, 0x3e, 0x3d, 0x3c};
  for (size_t i = 0; i < PEAL_HEADER_BYTES; i++) {
    EXPECT_EQ(reinterpret_cast<const uint8_t*>(&header)[i], expected[i]) << "byte " << i;
  }
}

TEST(Wire, ValuesOnTheWireNeverChange) {
  EXPECT_EQ(PEAL_PACKET_DATA, 1);
  EXPECT_EQ(PEAL_PACKET_SIGNAL, 2);
  EXPECT_EQ(PEAL_PACKET_NACK, 3);
  EXPECT_EQ(PEAL_PACKET_NOT_YET, 4);
  EXPECT_EQ(PEAL_PACKET_REFUSE, 5);
  EXPECT_EQ(PEAL_PACKET_DEATH, 6);
  EXPECT_EQ(PEAL_PACKET_PROBE, 7);
  EXPECT_EQ(PEAL_PACKET_ALIVE, 8);
  EXPECT_EQ(PEAL_PACKET_FAREWELL, 9);
  EXPECT_EQ(PEAL_PACKET_OPEN, 10);
  EXPECT_EQ(PEAL_PACKET_ACCEPT, 11);
  EXPECT_EQ(PEAL_PACKET_CLOSE, 12);
  EXPECT_EQ(PEAL_PACKET_CLOSED, 13);
  EXPECT_EQ(PEAL_PACKET_ACK, 14);
  EXPECT_EQ(PEAL_PACKET_REFUSED, 15);
  EXPECT_EQ(PEAL_PACKET_SKIP, 16);
  EXPECT_EQ(PEAL_PACKET_PUT, 17);
  EXPECT_EQ(PEAL_PACKET_STREAM, 18);
  EXPECT_EQ(PEAL_PACKET_ANNOUNCE, 19);
  EXPECT_EQ(PEAL_PACKET_READY, 20);
  EXPECT_EQ(PEAL_PACKET_GET, 21);
  EXPECT_EQ(PEAL_PACKET_DONE, 22);
  EXPECT_EQ(PEAL_PACKET_SEEK, 25);
  EXPECT_EQ(PEAL_OPERATION_BARRIER, 1);
  EXPECT_EQ(PEAL_OPERATION_ALLGATHER, 2);
  EXPECT_EQ(PEAL_OPERATION_DESTROY, 3);
  EXPECT_EQ(PEAL_OPERATION_RECYCLE, 4);
  EXPECT_EQ(PEAL_ALGORITHM_DISSEMINATION, 1);
  EXPECT_EQ(PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, 2);
  EXPECT_EQ(PEAL_ALGORITHM_RECURSIVE_DOUBLING, 3);
}

TEST(Wire, PeersOfTheLargestGroupFitOneConnectCommand) {
  uint32_t rounds = 0;
  while ((1u << rounds) < PEAL_RANKS_MAX) rounds++;
  EXPECT_EQ(2 * rounds, static_cast<uint32_t>(PEAL_PEERS_MAX));
}

}  // namespace
