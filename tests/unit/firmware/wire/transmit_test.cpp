// SPDX-License-Identifier: BSD-2-Clause
// How packets leave: headers byte for byte, what is summed, numbers on edges, and the books of the
// pool. The card is rank 1 of 4; its functions are called as its algorithms call them.
#include "firmware/wire/transmit.h"

#include <cstring>
#include <set>

#include "firmware/group/member.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {
namespace {

// Of a broadcast from rank 3; below, of blocks of 1000 bytes.
constexpr uint32_t kSignature = 0x51617181;
constexpr uint64_t kSequence = 0x1'2233'4455;

class Transmit : public GroupTest {
 protected:
  explicit Transmit(const BenchOptions& options = {}) : GroupTest(4, 1, options) {}

  [[nodiscard]] peal::Membership& self() {
    return find_member(bench.card(), member.handle())->membership;
  }
  [[nodiscard]] peal_wire_header pattern() {
    peal_wire_header header =
        operation_pattern(self(), PEAL_OPERATION_BROADCAST, PEAL_ALGORITHM_BINOMIAL,
                          PEAL_PACKET_DATA, kSignature, kSequence);
    header.block_bytes = 1000;
    header.origin = 3;
    return header;
  }
  // What becomes of a data packet of that, but for the sums.
  [[nodiscard]] peal_wire_header expected(uint32_t to) const {
    peal_wire_header header = {};
    std::memcpy(header.destination, member.everybody[to].mac, PEAL_MAC_BYTES);
    std::memcpy(header.source, member.address.mac, PEAL_MAC_BYTES);
    header.ethertype = __builtin_bswap16(PEAL_ETHERTYPE);
    header.version = PEAL_WIRE_VERSION;
    header.type = PEAL_PACKET_DATA;
    header.group = static_cast<uint32_t>(kGroupId);
    header.member = member.everybody[to].member;
    header.identity = peal_identity(&member.address);
    header.signature = kSignature;
    header.sequence = 0x22334455;
    header.origin = 3;
    header.sender = 1;
    header.operation = PEAL_OPERATION_BROADCAST;
    header.algorithm = PEAL_ALGORITHM_BINOMIAL;
    header.block_bytes = 1000;
    return header;
  }
  [[nodiscard]] static bool same(const peal_wire_header& a, const peal_wire_header& b) {
    return std::memcmp(&a, &b, sizeof(a)) == 0;
  }
  [[nodiscard]] PacketKind kind(uint8_t type = PEAL_PACKET_DATA) {
    made = pattern();
    return {made, type, static_cast<uint32_t>(kSequence)};
  }
  // Such a packet with that payload, launched; as it is on the wire.
  Frame launched(const std::vector<uint8_t>& payload, uint32_t payload_crc, bool summed) {
    Packet* packet = take_packet(bench.card());
    address_packet(member.everybody[2], kind(), packet->header);
    packet->header->length = static_cast<uint16_t>(payload.size());
    packet->header->payload_crc = payload_crc;
    packet->header->header_crc = 0xdead;  // whatever was there
    std::copy(payload.begin(), payload.end(), packet->payload);
    launch_packet(bench.card(), packet, summed);
    return bench.port.take_sent().at(0);
  }

  peal_wire_header made;
};

TEST_F(Transmit, AHeaderIsWrittenWhole) {
  peal_wire_header header;
  std::memset(&header, 0xff, sizeof(header));
  address_packet(member.everybody[2], kind(), &header);
  EXPECT_TRUE(same(header, expected(2)));
}

TEST_F(Transmit, AnotherReceiverChangesNothingElse) {
  peal_wire_header header = expected(2);
  header.piece = 7;
  header.hop = 2;
  peal_wire_header other = expected(3);
  other.piece = 7;
  other.hop = 2;
  readdress_packet(member.everybody[3], &header);
  EXPECT_TRUE(same(header, other));
}

TEST_F(Transmit, SumsAreOfThePayloadAndOfTheWholeHeader) {
  const std::vector<uint8_t> payload = pattern_block(0, 1, 0, 77);
  Frame sealed = {expected(2), payload};
  seal(sealed);
  EXPECT_TRUE(same(launched(payload, 0x1234, false).header, sealed.header));
}

// One payload under many headers is summed once.
TEST_F(Transmit, ASumThatIsThereIsKept) {
  const std::vector<uint8_t> payload = pattern_block(0, 1, 0, 77);
  const Frame sent = launched(payload, 0x1234, true);
  EXPECT_EQ(sent.header.payload_crc, 0x1234u);
  peal_wire_header unsummed = sent.header;
  unsummed.header_crc = 0;
  EXPECT_EQ(sent.header.header_crc, reference_crc32c(&unsummed, sizeof(unsummed)));
}

class TransmitUnsummed : public Transmit {
 protected:
  TransmitUnsummed() : Transmit(BenchOptions{.checksums = Checksums::kHardware}) {}
};

TEST_F(TransmitUnsummed, SumsAreThePortsBusiness) {
  const std::vector<uint8_t> payload = pattern_block(0, 1, 0, 77);
  EXPECT_EQ(payload_sum(bench.card(), payload.data(), 77), 0u);
  const Frame sent = launched(payload, 0, false);
  EXPECT_EQ(sent.header.payload_crc, 0u);
  EXPECT_EQ(sent.header.header_crc, 0xdeadu) << "nobody touches it";
}

TEST_F(Transmit, AnEmptyPoolIsCountedAndTakesNothing) {
  bench.port.fail_allocations = {0, 2};
  EXPECT_EQ(take_packet(bench.card()), nullptr);
  Peer& peer = self().peers[peer_entry(1, 2, 4)];
  const uint8_t numbered = peer.sent;
  EXPECT_FALSE(send_small(bench.card(), self(), member.everybody[2], kind(), {.counted = &peer}));
  EXPECT_EQ(peer.sent, numbered);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_PACKET), 2u);
  EXPECT_EQ(card_holds(bench.card()).packets, 0u);
  EXPECT_EQ(bench.take_log(), "");
}

TEST_F(Transmit, APacketGoesBackWithItsLastUse) {
  Packet* packet = take_packet(bench.card());
  Packet* shared = share_packet(bench.card(), packet);
  EXPECT_EQ(card_holds(bench.card()).packets, 2u);
  drop_packet(bench.card(), packet);
  EXPECT_EQ(card_holds(bench.card()).packets, 1u);
  shared->holds = 2;
  unhold_packet(bench.card(), shared);
  EXPECT_EQ(card_holds(bench.card()).packets, 1u);
  unhold_packet(bench.card(), shared);
  EXPECT_EQ(card_holds(bench.card()).packets, 0u);
  EXPECT_EQ(bench.port.packets_in_use(), 0u);
}

TEST_F(Transmit, ASharedPacketThatIsNotThereIsCounted) {
  Packet* packet = take_packet(bench.card());
  bench.port.fail_allocations = {0, 1};
  EXPECT_EQ(share_packet(bench.card(), packet), nullptr);
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_PACKET), 1u);
  EXPECT_EQ(card_holds(bench.card()).packets, 1u);
  drop_packet(bench.card(), packet);
}

// DATA, SIGNAL and REFUSE of an edge have numbers; other packets to a peer say how many there were;
// to whoever is no peer nothing is counted.
TEST_F(Transmit, PacketsOfAnEdgeAreNumbered) {
  const auto edge_of = [&](uint32_t to, uint8_t type, Peer* counted) {
    EXPECT_TRUE(send_small(bench.card(), self(), member.everybody[to], kind(type),
                           SmallPacket{.counted = counted}));
    const peal_wire_header header = bench.port.take_sent().at(0).header;
    return std::pair<int, int>(header.flags, header.edge);
  };
  Peer& peer = self().peers[peer_entry(1, 2, 4)];
  peer.sent = 254;
  const auto numbered = [](int number) {
    return std::pair<int, int>(PEAL_PACKET_NUMBERED, number);
  };
  EXPECT_EQ(edge_of(2, PEAL_PACKET_DATA, &peer), numbered(255));
  EXPECT_EQ(edge_of(2, PEAL_PACKET_PROBE, nullptr), numbered(255));
  EXPECT_EQ(edge_of(2, PEAL_PACKET_SIGNAL, &peer), numbered(0));
  EXPECT_EQ(edge_of(2, PEAL_PACKET_NACK, nullptr), numbered(0));
  EXPECT_EQ(edge_of(2, PEAL_PACKET_SIGNAL, nullptr), (std::pair<int, int>(0, 0))) << "a repair";
  EXPECT_EQ(edge_of(1, PEAL_PACKET_ALIVE, nullptr), (std::pair<int, int>(0, 0))) << "no peer";
}

TEST_F(Transmit, ASmallPacketHasWhatItIsGiven) {
  const peal_nack body = question(bench.card(), 0x1f);
  EXPECT_EQ(body.asked_us, now_us());
  const SmallPacket what = {.piece = 5,
                            .origin = 2,
                            .hop = 1,
                            .flags = PEAL_PACKET_REPAIR,
                            .payload = &body,
                            .length = sizeof(body)};
  ASSERT_TRUE(send_small(bench.card(), self(), member.everybody[2], kind(), what));
  const Frame sent = bench.port.take_sent().at(0);
  Frame wanted = {expected(2), std::vector<uint8_t>(sizeof(body))};
  std::memcpy(wanted.payload.data(), &body, sizeof(body));
  wanted.header.piece = 5;
  wanted.header.origin = 2;
  wanted.header.hop = 1;
  wanted.header.flags = PEAL_PACKET_REPAIR;
  seal(wanted);
  EXPECT_TRUE(same(sent.header, wanted.header));
  EXPECT_EQ(sent.payload, wanted.payload);
  ASSERT_TRUE(send_small(bench.card(), self(), member.everybody[2], kind(), {}));
  EXPECT_EQ(bench.port.take_sent().at(0).header.origin, 3)
      << "the root, where nothing else is said";
}

TEST_F(Transmit, TheSignatureIsOfEverythingThatRanksMustAgreeOn) {
  EXPECT_EQ(self().seed, signature_seed(kGroupId, kChoiceHash));
  for (const OperationShape& shape :
       {kBarrierShape, broadcast_shape(64), doubling_shape(64), binomial_shape(64, 2)}) {
    EXPECT_EQ(signature_of(self(), static_cast<uint8_t>(shape.operation),
                           static_cast<uint8_t>(shape.algorithm), shape.root,
                           static_cast<uint32_t>(shape.block_bytes)),
              reference_signature(member, shape));
  }
  std::set<uint32_t> seeds = {signature_seed(kGroupId, kChoiceHash),
                              signature_seed(kGroupId + 1, kChoiceHash),
                              signature_seed(kGroupId + (uint64_t{1} << 32), kChoiceHash),
                              signature_seed(kGroupId, kChoiceHash + 1)};
  EXPECT_EQ(seeds.size(), 4u);
  EXPECT_EQ(membership_pattern(bench.card(), self()).signature, self().seed);
}

TEST_F(Transmit, TheOwnAddressIsWhatOthersWereTold) {
  const peal_peer_address own = own_address(bench.card(), self());
  EXPECT_EQ(std::memcmp(&own, &member.address, sizeof(own)), 0);
}

}  // namespace
}  // namespace peal::test
