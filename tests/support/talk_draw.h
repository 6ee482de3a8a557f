// SPDX-License-Identifier: BSD-2-Clause
// Point-to-point as somebody hostile draws it, for fuzzers and seeded tests alike: packets that are
// good but for what is drawn, and submissions. Source: anything with below(limit).
#pragma once

#include <cstring>

#include "firmware/p2p_types.h"
#include "tests/support/wire_maker.h"

namespace peal::test {

template <typename Source>
class TalkDraw {
 public:
  TalkDraw(Source& source, const Membership& member, const Memory& memory)
      : source_(source), wire_(member), member_(member), memory_(memory) {}

  // A packet to the member, of a connection whose handle may have been learned (learn()).
  Frame packet() {
    const uint32_t drawn =
        PEAL_PACKET_OPEN + source_.below(PEAL_PACKET_DONE - PEAL_PACKET_OPEN + 2);
    const auto type =
        drawn > PEAL_PACKET_DONE ? PEAL_PACKET_SEEK : static_cast<peal_packet_type>(drawn);
    const uint32_t sender = source_.below(member_.ranks);
    Frame frame = wire_.probe(sender == member_.rank ? (sender + 1) % member_.ranks : sender);
    peal_wire_header& header = frame.header;
    header.type = static_cast<uint8_t>(type);
    const uint32_t from = header.sender % kRanks;
    header.block_bytes = type == PEAL_PACKET_OPEN || source_.below(16) == 0 ? 0 : handles_[from];
    header.sequence = type >= PEAL_PACKET_SKIP && type <= PEAL_PACKET_DONE ? number(from) : 0;
    header.piece = source_.below(4);
    header.origin = static_cast<uint16_t>(source_.below(12));
    header.fragment = static_cast<uint8_t>(source_.below(6));
    header.hop = static_cast<uint8_t>(source_.below(2));
    frame.payload = body(type);
    if (source_.below(8) == 0) spoil(&header, sizeof(header));
    if (source_.below(8) == 0 && !frame.payload.empty()) {
      spoil(frame.payload.data(), frame.payload.size());
    }
    if (source_.below(24) == 0) frame.payload.resize(source_.below(64));
    seal(frame);
    return frame;
  }

  // What the card sent says how its connections are called.
  void learn(const std::vector<Frame>& sent) {
    for (const Frame& frame : sent) {
      if (frame.header.type != PEAL_PACKET_ACCEPT && frame.header.type != PEAL_PACKET_OPEN) {
        continue;
      }
      const uint32_t rank = frame.header.destination[PEAL_MAC_BYTES - 1] % kRanks;
      std::memcpy(&handles_[rank], frame.payload.data(), sizeof(handles_[rank]));
      numbers_[rank] = 0;
    }
  }

  peal_submission submission(uint64_t cookie) {
    peal_submission entry{};
    entry.operation = static_cast<uint8_t>(PEAL_OPERATION_SEND + source_.below(5));
    entry.member = member_.handle();
    entry.cookie = cookie;
    entry.root = source_.below(member_.ranks);
    const bool fence = entry.operation == PEAL_OPERATION_FENCE;
    const bool message =
        entry.operation == PEAL_OPERATION_SEND || entry.operation == PEAL_OPERATION_RECEIVE;
    if (!fence)
      entry.block_bytes = source_.below(3) == 0 ? source_.below(20000) : source_.below(64);
    if (message) entry.sequence = source_.below(3);
    if (!fence && entry.operation != PEAL_OPERATION_RECEIVE) entry.send_key = memory_.key;
    if (!fence && entry.operation != PEAL_OPERATION_SEND) entry.receive_key = memory_.key;
    if (source_.below(10) == 0) spoil(&entry, sizeof(entry));
    return entry;
  }

 private:
  static constexpr uint32_t kRanks = 64;

  uint32_t number(uint32_t from) {
    switch (source_.below(8)) {
      case 0:
        return numbers_[from] + source_.below(p2p::kWindow + 2);
      case 1:
        return numbers_[from] - source_.below(4);
      default:
        return numbers_[from]++;
    }
  }
  uint32_t request() {
    return source_.below(2) == 0 ? source_.below(8)
                                 : (source_.below(0xffff) << 16 | source_.below(8));
  }
  // Name of the program that it is of, plus one; mostly of none.
  uint16_t program() { return static_cast<uint16_t>(source_.below(4) == 0 ? source_.below(6) : 0); }
  template <typename Body>
  std::vector<uint8_t> bytes_of(const Body& body, size_t more = 0) {
    std::vector<uint8_t> bytes(sizeof(body) + more, uint8_t{0x77});
    std::memcpy(bytes.data(), &body, sizeof(body));
    return bytes;
  }
  std::vector<uint8_t> body(peal_packet_type type) {
    const size_t data =
        source_.below(4) == 0 ? source_.below(p2p::kChunkBytes + 1) : source_.below(64);
    switch (type) {
      case PEAL_PACKET_OPEN:
      case PEAL_PACKET_ACCEPT:
      case PEAL_PACKET_CLOSE:
        return bytes_of(peal_p2p_open{source_.below(4), source_.below(4)});
      case PEAL_PACKET_ACK:
        return bytes_of(peal_p2p_ack{source_.below(16)});
      case PEAL_PACKET_REFUSED:
        return bytes_of(peal_p2p_refused{source_.below(8), source_.below(PEAL_STATUS_COUNT + 1)});
      case PEAL_PACKET_SKIP:
        return bytes_of(program() == 0
                            ? peal_p2p_skip{}
                            : peal_p2p_skip{source_.below(4),
                                            source_.below(8),
                                            program(),
                                            static_cast<uint16_t>(source_.below(PEAL_STATUS_COUNT)),
                                            static_cast<uint16_t>(source_.below(4)),
                                            {program()},
                                            {}});
      case PEAL_PACKET_PUT: {
        const auto queue =
            static_cast<uint16_t>(source_.below(2) == 0 ? PEAL_P2P_NO_QUEUE : source_.below(4));
        return bytes_of(
            peal_p2p_put{source_.below(70000), memory_.key, program(), 0, {queue, 0, 1, 2}}, data);
      }
      case PEAL_PACKET_STREAM:
        return bytes_of(peal_p2p_stream{source_.below(20000), request(), {}}, data);
      case PEAL_PACKET_ANNOUNCE:
        return source_.below(2) == 0
                   ? bytes_of(peal_p2p_announce{source_.below(3), data, request(), program(), 0, 2},
                              data)
                   : bytes_of(peal_p2p_announce{source_.below(3), source_.below(30000), request(),
                                                program(), 0, 2});
      case PEAL_PACKET_READY:
        return bytes_of(peal_p2p_ready{request(), request()});
      case PEAL_PACKET_GET:
        return bytes_of(
            peal_p2p_get{source_.below(30000), source_.below(40000), memory_.key, request()});
      case PEAL_PACKET_DONE:
        return bytes_of(peal_p2p_done{request(), source_.below(PEAL_STATUS_COUNT + 1)});
      case PEAL_PACKET_SEEK:
        return bytes_of(peal_p2p_seek{{source_.below(3), source_.below(3), 0},
                                      2 + source_.below(PEAL_P2P_SOUGHT),
                                      source_.below(8) == 0 ? 1u : 0u});
      default:
        return {};
    }
  }
  void spoil(void* object, size_t bytes) {
    const size_t at = source_.below(static_cast<uint32_t>(bytes));
    const size_t count = 1 + source_.below(8);
    for (size_t i = at; i < bytes && i < at + count; i++) {
      static_cast<uint8_t*>(object)[i] = static_cast<uint8_t>(source_.below(256));
    }
  }

  Source& source_;
  WireMaker wire_;
  const Membership& member_;
  Memory memory_;
  uint32_t handles_[kRanks] = {};
  uint32_t numbers_[kRanks] = {};
};

}  // namespace peal::test
