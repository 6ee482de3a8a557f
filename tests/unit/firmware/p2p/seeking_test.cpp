// SPDX-License-Identifier: BSD-2-Clause
// Messages that are wanted before more others than there are places.
#include "firmware/p2p/seeking.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tests/unit/firmware/p2p/p2p_fixture.h"
#include "tests/unit/firmware/p2p/talk_fixture.h"

namespace peal::test {
namespace {

// As many messages that nobody wants as there are places, and more behind them.
class Seeking : public PointToPoint {
 protected:
  void send_unwanted(uint32_t more = 0) {
    for (uint32_t i = 0; i < p2p::kPlaces + more; i++) {
      unwanted.push_back(send(0, 1, 1, 16, 16 * unwanted.size()));
    }
  }
  // Now they are wanted, and come in their order.
  void take_unwanted() {
    std::vector<uint64_t> receives;
    for (size_t i = 0; i < unwanted.size(); i++) {
      receives.push_back(receive(1, 0, 1, 16, 16 * i));
      ASSERT_TRUE(run_until_ended(1, receives.back()));
    }
    ASSERT_TRUE(run_until_ended(0, unwanted.back()));
    EXPECT_TRUE(same(0, 0, 1, 0, 16 * unwanted.size()));
    expect_quiet();
  }
  // Until all of them are known, and more are not.
  void await_places() {
    const auto full = [&] { return sent_of(PEAL_PACKET_ANNOUNCE) == p2p::kPlaces; };
    ASSERT_TRUE(cluster.run_until(full, 10'000'000'000));
    cluster.settle();
  }
  ptrdiff_t sent_of(peal_packet_type type) {
    const auto& trace = cluster.trace();
    return std::count_if(trace.begin(), trace.end(),
                         [type](const Frame& frame) { return frame.header.type == type; });
  }
  std::vector<uint64_t> unwanted;
};

TEST_F(Seeking, AMessageIsFoundBehindThoseThatNobodyWants) {
  send_unwanted(3);
  const uint64_t sent = send(0, 1, 2, 3 * kChunk, 4 * kChunk);
  await_places();
  const uint64_t received = receive(1, 0, 2, 3 * kChunk, 4 * kChunk);
  ASSERT_TRUE(run_until_ended(1, received));
  ASSERT_TRUE(run_until_ended(0, sent));
  EXPECT_EQ(sent_of(PEAL_PACKET_SEEK), 1);
  EXPECT_TRUE(same(0, 4 * kChunk, 1, 4 * kChunk, 3 * kChunk));
  take_unwanted();
}

TEST_F(Seeking, AMessageIsFoundThatIsSentLater) {
  send_unwanted();
  const uint64_t received = receive(1, 0, 2, 16, kChunk);
  cluster.settle();
  send_unwanted(2);
  const uint64_t sent = send(0, 1, 2, 16, kChunk);
  ASSERT_TRUE(run_until_ended(1, received));
  ASSERT_TRUE(run_until_ended(0, sent));
  EXPECT_TRUE(same(0, kChunk, 1, kChunk, 16));
  take_unwanted();
}

// Only a few tags are said at once: all have their turn.
TEST_F(Seeking, OneOfManyReceivesIsFound) {
  send_unwanted();
  constexpr uint64_t kReceives = 3 * PEAL_P2P_SOUGHT + 1;
  std::vector<uint64_t> receives;
  for (uint64_t tag = 0; tag < kReceives; tag++) {
    receives.push_back(receive(1, 0, 10 + tag, 16, kChunk + 16 * tag));
  }
  cluster.settle();
  for (const uint64_t tag : {kReceives / 2, uint64_t{0}, kReceives - 1}) {
    (void)send(0, 1, 10 + tag, 16, kChunk);
    ASSERT_TRUE(run_until_ended(1, receives[tag])) << tag;
    EXPECT_EQ(ended(1, receives[tag]), "OK");
  }
  for (uint64_t tag = 0; tag < kReceives; tag++) {
    if (ended(1, receives[tag]).empty()) (void)send(0, 1, 10 + tag, 16, kChunk);
  }
  for (const uint64_t each : receives) ASSERT_TRUE(run_until_ended(1, each));
  take_unwanted();
}

TEST_F(Seeking, OfOneTagTheFirstIsTheFirst) {
  send_unwanted(1);
  for (uint32_t i = 0; i < 4; i++) (void)send(0, 1, 2, 16, kChunk + 16 * i);
  await_places();
  uint64_t last = 0;
  for (uint32_t i = 0; i < 4; i++) last = receive(1, 0, 2, 16, kChunk + 16 * i);
  ASSERT_TRUE(run_until_ended(1, last));
  EXPECT_TRUE(same(0, kChunk, 1, kChunk, 4 * 16));
  take_unwanted();
}

// What was asked may be asked again, and may come late: what is sent then was sought by nobody, and
// one place is kept for it. More than one never is.
TEST_F(Seeking, AQuestionOfEarlierFindsNothing) {
  send_unwanted(1);
  for (uint32_t i = 0; i < 3; i++) (void)send(0, 1, 2, 16, kChunk + 16 * i);
  cluster.fate = [&](const Frame& frame) {
    return frame.header.type == PEAL_PACKET_SEEK ? 3u : 1u;
  };
  const uint64_t received = receive(1, 0, 2, 16, kChunk);
  ASSERT_TRUE(run_until_ended(1, received));
  cluster.settle();
  EXPECT_EQ(sent_of(PEAL_PACKET_ANNOUNCE), p2p::kPlaces + 1);
  for (uint32_t i = 1; i < 3; i++) (void)receive(1, 0, 2, 16, kChunk + 16 * i);
  take_unwanted();
  EXPECT_TRUE(same(0, kChunk, 1, kChunk, 3 * 16));
}

// Receives in any order, each when the one before has its message, on a wire that loses a tenth and
// brings a tenth twice.
class InAnyOrder : public PointToPoint, public testing::WithParamInterface<uint32_t> {};

TEST_P(InAnyOrder, EveryReceiveGetsTheFirstOfItsTag) {
  Random random(GetParam());
  cluster.fate = bad_wire(random);
  constexpr uint32_t kMessages =
      p2p::kPlaces + 12 < p2p::kRequests / 2 ? p2p::kPlaces + 12 : p2p::kRequests / 2;
  struct Message {
    uint64_t tag;
    size_t at;
    size_t bytes;
  };
  std::vector<Message> messages;
  for (uint32_t i = 0; i < kMessages; i++) {
    const size_t bytes = random.below(8) == 0 ? kChunk + 5 : random.below(60);
    messages.push_back({random.below(5),
                        messages.empty() ? 0 : messages.back().at + messages.back().bytes, bytes});
    (void)send(0, 1, messages.back().tag, bytes, messages.back().at);
  }
  while (!messages.empty()) {
    const uint64_t tag = messages[random.below(static_cast<uint32_t>(messages.size()))].tag;
    const auto first = std::find_if(messages.begin(), messages.end(),
                                    [tag](const Message& each) { return each.tag == tag; });
    const bool any = first == messages.begin() && random.below(4) == 0;
    const uint64_t received = receive(1, 0, any ? 0 : tag, first->bytes, first->at, any);
    ASSERT_TRUE(run_until_ended(1, received)) << messages.size() << " left";
    ASSERT_EQ(ended(1, received), "OK");
    ASSERT_TRUE(same(0, first->at, 1, first->at, first->bytes)) << messages.size() << " left";
    messages.erase(first);
  }
  ASSERT_TRUE(run_until_all_ended(2 * kMessages));
  expect_quiet();
}

INSTANTIATE_TEST_SUITE_P(Seeds, InAnyOrder, testing::Range(1u, 41u));

TEST_F(TalkTest, AQuestionIsLookedAtBeforeItIsAnswered) {
  for (const peal_p2p_seek& bad :
       {peal_p2p_seek{{}, PEAL_P2P_SOUGHT + 1, 0}, {{}, 1, 1}, {{7, 8}, 1, 0}}) {
    EXPECT_EQ(change(talk(PEAL_PACKET_SEEK, kSender, handle, 0, bad)), "+1 drop_p2p_field");
  }
  EXPECT_EQ(change(talk(PEAL_PACKET_SEEK, kSender, handle, 0, peal_p2p_seek{{7}, 1, 0})),
            "+1 received");
}

}  // namespace
}  // namespace peal::test
