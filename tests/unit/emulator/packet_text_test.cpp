// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/common/packet_text.h"

#include <gtest/gtest.h>

namespace peal::emulator {
namespace {

peal_wire_header data_header() {
  peal_wire_header header = {};
  card_mac(3, header.destination);
  header.type = PEAL_PACKET_DATA;
  header.operation = PEAL_OPERATION_ALLGATHER;
  header.algorithm = PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST;
  header.sequence = 4;
  header.piece = 5;
  header.origin = 6;
  header.sender = 2;
  header.hop = 7;
  header.fragment = 8;
  header.length = 64;
  return header;
}

TEST(CardMac, GoesBothWays) {
  for (const uint32_t index : {0u, 1u, 255u, 256u, 65535u}) {
    uint8_t mac[PEAL_MAC_BYTES];
    card_mac(index, mac);
    EXPECT_EQ(mac[0] & 3, 2);  // locally administered, to one station
    EXPECT_EQ(card_of_mac(mac), index);
  }
  const uint8_t foreign[] = {2, 0x50, 0x65, 0x62, 0, 1};
  EXPECT_EQ(card_of_mac(foreign), kNoCard);
}

TEST(PacketText, Line) {
  peal_wire_header header = data_header();
  EXPECT_EQ(packet_text(header),
            "2>3 DATA allgather all-to-all-broadcast seq=4 piece=5 origin=6 hop=7 frag=8 len=64");
  EXPECT_EQ(packet_text(header, 9).substr(0, 4), "2>9 ");
  header.flags = PEAL_PACKET_REPAIR;
  EXPECT_EQ(packet_text(header, kNoCard),
            "2>? DATA allgather all-to-all-broadcast seq=4 piece=5 origin=6 hop=7 frag=8 len=64 "
            "repair");
}

// Runs differ in these; traces may not.
TEST(PacketText, DependsOnNothingOfTheRun) {
  peal_wire_header header = data_header();
  const std::string before = packet_text(header);
  header.identity = 1;
  header.member = 2;
  header.group = 3;
  header.header_crc = 4;
  header.payload_crc = 5;
  header.signature = 6;
  EXPECT_EQ(packet_text(header), before);
}

// What is in no list is printed by its number.
TEST(PacketText, NumbersThatNobodyKnows) {
  peal_wire_header header = data_header();
  header.type = 200;
  header.operation = 201;
  header.algorithm = 202;
  EXPECT_EQ(packet_text(header),
            "2>3 type-200 operation-201 algorithm-202 seq=4 piece=5 origin=6 hop=7 frag=8 len=64");
}

}  // namespace
}  // namespace peal::emulator
