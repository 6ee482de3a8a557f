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

TEST(PacketText, EveryNameIsKnown) {
  for (uint8_t type = 1; type < PEAL_PACKET_TYPE_COUNT; type++)
    EXPECT_EQ(packet_type_text(type).find("type-"), std::string::npos);
  for (uint8_t operation = 0; operation < PEAL_OPERATION_COUNT; operation++)
    EXPECT_EQ(operation_text(operation).find("operation-"), std::string::npos);
  for (uint8_t algorithm = 0; algorithm < PEAL_ALGORITHM_COUNT; algorithm++)
    EXPECT_EQ(algorithm_text(algorithm).find("algorithm-"), std::string::npos);
  EXPECT_EQ(packet_type_text(200), "type-200");
  EXPECT_EQ(operation_text(200), "operation-200");
  EXPECT_EQ(algorithm_text(200), "algorithm-200");
}

}  // namespace
}  // namespace peal::emulator
