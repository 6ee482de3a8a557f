// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/common/faulty_wire.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace peal::emulator {
namespace {

constexpr uint32_t kHeader = sizeof(peal_wire_header);
constexpr uint32_t kPayload = 100;

FaultPlan plan_of(const std::string& text) {
  FaultPlan plan;
  EXPECT_EQ(parse_fault_plan(text, &plan), "");
  return plan;
}

// A good wire that keeps what it carries, and its packets, which are few.
class KeepingWire final : public Wire {
 public:
  struct Kept : Packet {
    peal_wire_header header_bytes{};
    std::shared_ptr<std::array<uint8_t, kPayload>> bytes;
  };

  ~KeepingWire() {
    for (const Frame& frame : carried) release(frame.packet);
    EXPECT_EQ(in_use, 0u);
  }
  // With a mark in its header and bytes that nobody else writes.
  Packet* make(uint8_t mark) {
    Packet* const packet = take(std::make_shared<std::array<uint8_t, kPayload>>());
    packet->header->sender = mark;
    std::memset(packet->payload, mark, kPayload);
    return packet;
  }
  void carry(const Frame& frame) override { carried.push_back(frame); }
  Packet* share(Packet* packet) override {
    return in_use < most ? take(static_cast<Kept*>(packet)->bytes) : nullptr;
  }
  Packet* copy(Packet* packet) override {
    if (in_use >= most) return nullptr;
    Packet* const result =
        take(std::make_shared<std::array<uint8_t, kPayload>>(*static_cast<Kept*>(packet)->bytes));
    *result->header = *packet->header;
    return result;
  }
  void release(Packet* packet) override {
    in_use--;
    delete static_cast<Kept*>(packet);
  }

  uint32_t most = 8;
  uint32_t in_use = 0;
  std::vector<Frame> carried;

 private:
  Packet* take(std::shared_ptr<std::array<uint8_t, kPayload>> bytes) {
    in_use++;
    auto* const packet = new Kept;
    packet->bytes = std::move(bytes);
    packet->header = &packet->header_bytes;
    packet->payload = packet->bytes->data();
    packet->payload_bytes = kPayload;
    return packet;
  }
};

class FaultyWireTest : public ::testing::Test {
 protected:
  FaultyWire& wire(const std::string& plan, uint64_t seed = 1) {
    wire_ = std::make_unique<FaultyWire>(good_, plan_of(plan), seed);
    return *wire_;
  }
  // What the good wire carries: from, to, arrival, and which bytes are not as they were sent.
  [[nodiscard]] std::string carried() const {
    std::string text;
    for (const Frame& frame : good_.carried) {
      text += std::to_string(frame.from_card) + ">" + std::to_string(frame.to_card) + " at " +
              std::to_string(frame.arrival_ns);
      for (uint32_t bit = 0; bit < (kHeader + kPayload) * 8; bit++)
        if (differs(frame.packet, bit)) text += " bit " + std::to_string(bit);
      text += "\n";
    }
    return text;
  }
  static bool differs(const Packet* packet, uint32_t bit) {
    peal_wire_header header = {};
    header.sender = 7;
    const uint32_t byte = bit / 8;
    const uint8_t is = byte < kHeader ? reinterpret_cast<const uint8_t*>(packet->header)[byte]
                                      : packet->payload[byte - kHeader];
    const uint8_t was = byte < kHeader ? reinterpret_cast<const uint8_t*>(&header)[byte] : 7;
    return ((is ^ was) >> (bit % 8) & 1) != 0;
  }
  void send(uint32_t from, uint32_t to, TimeNs sent_ns = 1000, TimeNs arrival_ns = 1500) {
    wire_->carry({good_.make(7), from, to, sent_ns, arrival_ns});
  }

  KeepingWire good_;
  std::unique_ptr<FaultyWire> wire_;
};

TEST_F(FaultyWireTest, WithoutFaultsThePacketItselfGoesOn) {
  wire("");
  Packet* const packet = good_.make(7);
  wire_->carry({packet, 2, 3, 1000, 1500});
  ASSERT_EQ(carried(), "2>3 at 1500\n");
  EXPECT_EQ(good_.carried[0].packet, packet);
  EXPECT_EQ(wire_->injector().counts().judged, 0u);
}

TEST_F(FaultyWireTest, WhatIsLostIsGivenBack) {
  wire("loss=1");
  send(0, 1);
  EXPECT_EQ(carried(), "");
  EXPECT_EQ(good_.in_use, 0u);
  EXPECT_EQ(wire_->injector().counts().lost, 1u);
}

TEST_F(FaultyWireTest, APartitionLooksAtTheTimeOfSending) {
  wire("partition=0-1:1-2");
  send(0, 2, 999, 1500);
  send(0, 2, 1000, 2500);
  send(0, 1, 1000, 2500);
  send(0, 2, 2000, 2500);
  EXPECT_EQ(carried(), "0>2 at 1500\n0>1 at 2500\n0>2 at 2500\n");
}

TEST_F(FaultyWireTest, ARepeatedFrameHasAHeaderOfItsOwnAndTheSamePayload) {
  wire("duplicate=1");
  send(0, 1);
  ASSERT_EQ(carried(), "0>1 at 1500\n0>1 at 1500\n");
  EXPECT_NE(good_.carried[0].packet->header, good_.carried[1].packet->header);
  EXPECT_EQ(good_.carried[0].packet->payload, good_.carried[1].packet->payload);
}

// A card that forwards has the same payload in another packet.
TEST_F(FaultyWireTest, DamageIsDoneToACopy) {
  wire("corrupt=1");
  uint32_t in_header = 0;
  for (int i = 0; i < 100; i++) {
    Packet* const packet = good_.make(7);
    Packet* const forwarded = good_.share(packet);
    *forwarded->header = *packet->header;
    wire_->carry({packet, 0, 1, 1000, 1500});
    ASSERT_EQ(good_.carried.size(), 1u);
    uint32_t damaged = 0;
    for (uint32_t bit = 0; bit < (kHeader + kPayload) * 8; bit++) {
      ASSERT_FALSE(differs(forwarded, bit));
      if (!differs(good_.carried[0].packet, bit)) continue;
      damaged++;
      if (bit < kHeader * 8) in_header++;
    }
    ASSERT_EQ(damaged, 1u);
    good_.release(forwarded);
    good_.release(good_.carried[0].packet);
    good_.carried.clear();
    ASSERT_EQ(good_.in_use, 0u);
  }
  EXPECT_GT(in_header, 0u);
  EXPECT_LT(in_header, 100u);
}

TEST_F(FaultyWireTest, WhatIsDelayedArrivesLater) {
  wire("delay=1,delay_us=5");
  for (int i = 0; i < 8; i++) send(0, 1);
  ASSERT_EQ(good_.carried.size(), 8u);
  for (const Frame& frame : good_.carried) {
    EXPECT_GT(frame.arrival_ns, 1500u);
    EXPECT_LE(frame.arrival_ns, 6500u);
    EXPECT_EQ(frame.sent_ns, 1000u);
  }
}

TEST_F(FaultyWireTest, WithoutAPacketForItNothingIsRepeatedOrDamaged) {
  good_.most = 1;
  wire("duplicate=1");
  send(0, 1);
  EXPECT_EQ(carried(), "0>1 at 1500\n");
  EXPECT_EQ(wire_->no_copy(), 1u);
  good_.most = 2;
  wire("corrupt=1");
  send(0, 1);
  EXPECT_EQ(carried(), "0>1 at 1500\n0>1 at 1500\n");
  EXPECT_EQ(wire_->no_copy(), 1u);
}

// What the injector judges is what happens, frame by frame, in the order of the copies.
TEST_F(FaultyWireTest, TheInjectorDecides) {
  const std::string plan = "loss=0.2,duplicate=0.4,reorder=0.3,delay=0.3,corrupt=0.4";
  FaultInjector injector(plan_of(plan), 42);
  wire(plan, 42);
  good_.most = 1000;
  std::string expected;
  for (uint32_t i = 0; i < 200; i++) {
    send(i % 3, i % 5, i, i + 10);
    const Verdict verdict = injector.judge(i % 3, i % 5, kHeader + kPayload, i);
    for (uint32_t copy = 0; copy < verdict.copies; copy++) {
      const FrameCopy& judged = verdict.copy[copy];
      expected +=
          std::to_string(i % 3) + ">" + std::to_string(i % 5) + " at " +
          std::to_string(i + 10 + judged.delay_ns) +
          (judged.corrupt_bit == kNoBit ? "" : " bit " + std::to_string(judged.corrupt_bit)) + "\n";
    }
  }
  EXPECT_EQ(carried(), expected);
}

TEST_F(FaultyWireTest, AHealedWireLosesNothing) {
  wire("loss=1");
  wire_->heal();
  send(0, 1);
  EXPECT_EQ(carried(), "0>1 at 1500\n");
}

}  // namespace
}  // namespace peal::emulator
