// SPDX-License-Identifier: BSD-2-Clause
// What protocol tests of point-to-point start from: rank 1 of 4, and a connection to it that the
// test, as rank 0, has opened.
#pragma once

#include <cstring>

#include "firmware/card_types.h"
#include "firmware/p2p/p2p.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {

class TalkTest : public GroupTest {
 protected:
  static constexpr uint32_t kPlayed = 0x7007'0003;  // the played rank's handle of the connection
  static constexpr uint32_t kSender = 0;

  static BenchOptions keeping_early() {
    BenchOptions options;
    options.keeps_early = true;
    return options;
  }
  TalkTest() : GroupTest(4, 1, keeping_early()), memory(bench.add_memory("memory", 4096)) {
    handle = open(kSender, kPlayed);
    bench.deliver(ack(0));
    bench.take_log();
  }
  void TearDown() override {
    // What waits for its receive may: the books balance when the group is gone.
    EXPECT_EQ(card_abandon_group(bench.card(), bench.context(), member.handle(), bench.now),
              PEAL_STATUS_OK);
    bench.finish_all_dma();
    EXPECT_EQ(bench.card().p2p.connections_used, 0u);
    EXPECT_EQ(bench.card().p2p.requests_used, 0u);
    GroupTest::TearDown();
  }

  // A packet of point-to-point, to the connection of this handle, from a sender that has room.
  [[nodiscard]] Frame talk(peal_packet_type type, uint32_t sender, uint32_t to, uint32_t number,
                           std::vector<uint8_t> payload) const {
    Frame frame = wire.probe(sender);
    frame.header.type = static_cast<uint8_t>(type);
    frame.header.block_bytes = to;
    frame.header.sequence = number;
    frame.header.origin = p2p::kPlaces;
    frame.header.fragment = p2p::kTokens;
    frame.payload = std::move(payload);
    seal(frame);
    return frame;
  }
  // With a body, and bytes behind it.
  template <typename Body>
  [[nodiscard]] Frame talk(peal_packet_type type, uint32_t sender, uint32_t to, uint32_t number,
                           const Body& body, const std::vector<uint8_t>& data = {}) const {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&body);
    std::vector<uint8_t> payload(bytes, bytes + sizeof(body));
    payload.insert(payload.end(), data.begin(), data.end());
    return talk(type, sender, to, number, std::move(payload));
  }
  // Opens a connection as that rank; the card's handle, or 0.
  uint32_t open(uint32_t sender, uint32_t played, uint32_t life = 0) {
    bench.port.take_sent();
    bench.deliver(talk(PEAL_PACKET_OPEN, sender, 0, 0, peal_p2p_open{played, life}));
    for (const Frame& frame : bench.port.take_sent()) {
      if (frame.header.type != PEAL_PACKET_ACCEPT) continue;
      peal_p2p_open body;
      std::memcpy(&body, frame.payload.data(), sizeof(body));
      return body.handle;
    }
    return 0;
  }
  [[nodiscard]] Frame ack(uint32_t landed, uint64_t behind = 0) const {
    return acknowledging(landed, talk(PEAL_PACKET_ACK, kSender, handle, 0, peal_p2p_ack{behind}));
  }
  static Frame acknowledging(uint32_t landed, Frame frame) {
    frame.header.piece = landed;
    seal(frame);
    return frame;
  }
  static Frame asking(Frame frame) {
    frame.header.hop = PEAL_P2P_ASK;
    seal(frame);
    return frame;
  }
  [[nodiscard]] Frame put(uint32_t number, uint64_t offset, size_t bytes,
                          peal_p2p_notice notice = {PEAL_P2P_NO_QUEUE, 0, 0, 0}) const {
    return put_by(memory.key, number, offset, bytes, notice);
  }
  [[nodiscard]] Frame put_by(uint32_t key, uint32_t number, uint64_t offset, size_t bytes,
                             peal_p2p_notice notice = {PEAL_P2P_NO_QUEUE, 0, 0, 0}) const {
    return talk(PEAL_PACKET_PUT, kSender, handle, number, peal_p2p_put{offset, key, 0, 0, notice},
                std::vector<uint8_t>(bytes, static_cast<uint8_t>(number + 1)));
  }
  // Of a host's put, or of the program's that the body names.
  [[nodiscard]] Frame skip(uint32_t number, const peal_p2p_skip& body = {}) const {
    return talk(PEAL_PACKET_SKIP, kSender, handle, number, body);
  }
  // The card's own put, into memory that the played rank calls 77.
  void post_put(uint64_t cookie, uint32_t whom, uint64_t bytes = 0) {
    post(PEAL_OPERATION_PUT, cookie, whom, bytes, send.key, 77);
  }
  // The card's own get, of that memory.
  void post_get(uint64_t cookie, uint32_t whom, uint64_t bytes) {
    post(PEAL_OPERATION_GET, cookie, whom, bytes, 77, memory.key);
  }
  // Without bytes it names no memory.
  void post(peal_operation operation, uint64_t cookie, uint32_t whom, uint64_t bytes, uint32_t from,
            uint32_t to) {
    peal_submission entry{};
    entry.operation = static_cast<uint8_t>(operation);
    entry.member = member.handle();
    entry.cookie = cookie;
    entry.root = whom;
    entry.block_bytes = bytes;
    entry.send_key = bytes > 0 ? from : 0;
    entry.receive_key = bytes > 0 ? to : 0;
    bench.submit(entry);
  }
  uint8_t byte_at(size_t at) { return bench.port.bytes(memory.region)[at]; }

  Memory memory;
  uint32_t handle;
};

}  // namespace peal::test
