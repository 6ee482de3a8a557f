// SPDX-License-Identifier: BSD-2-Clause
// A broadcast as one rank sees it: as root, as relay and as leaf; what it refuses, what it answers
// when others ask late, and what lies in the user's memory at the end.
#include "firmware/collective/broadcast/binomial.h"

#include "tests/unit/bad_fields.h"
#include "tests/unit/firmware/collective/broadcast/binomial_fixture.h"

namespace peal::test {
namespace {

class Binomial : public BinomialTest {
 protected:
  // The log when a fragment goes to the children: of rank 1 as root, or as relay below root 0.
  static std::string sent(uint64_t sequence, uint32_t root, uint32_t fragment, size_t bytes) {
    std::string text;
    for (uint32_t hop = root == 1 ? 0 : 1; hop < 3; hop++) {
      text += "send 1>" + std::to_string(1 + (1 << hop)) + " DATA seq=" + std::to_string(sequence) +
              " piece=0 origin=" + std::to_string(root) + " hop=" + std::to_string(hop) +
              " frag=" + std::to_string(fragment) + " len=" + std::to_string(bytes) + "\n";
    }
    return text;
  }
  // The log when it is complete; with the last of an epoch recycling begins, where nobody below is
  // to say something first.
  static std::string completed(uint64_t sequence, uint32_t root = 0) {
    return "complete ctx0 cookie=" + std::to_string(100 + sequence) + " OK\n" +
           (sequence + 1 == kEpoch && root == 0
                ? "send 1>3 SIGNAL recycle epoch=0 below root=0 hop=1\n"
                : "");
  }
};

// --- in order ---

TEST_F(Binomial, TheRootSendsToItsChildrenAndIsDone) {
  post(0, 1, kBlock);
  EXPECT_EQ(bench.take_log(), "dma_read source+0 64\n");
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(),
            "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 frag=0 len=64\n"
            "send 1>3 DATA seq=0 piece=0 origin=1 hop=1 frag=0 len=64\n"
            "send 1>5 DATA seq=0 piece=0 origin=1 hop=2 frag=0 len=64\n"
            "dma_write channel.short+0 64\n");
  // Not before its own copy is in the channel: the buffer is the user's then.
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(card_next_deadline(bench.card()), kNever);
}

TEST_F(Binomial, ARelayForwardsAtOnceAndKeepsACopy) {
  post(0, 0, kBlock);
  EXPECT_EQ(bench.take_log(), "");
  bench.deliver(packet(0, 0, kBlock));
  EXPECT_EQ(bench.take_log(),
            "dma_write target+0 64\n"
            "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 frag=0 len=64\n"
            "send 1>5 DATA seq=0 piece=0 origin=0 hop=2 frag=0 len=64\n");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_FORWARDED), 2u);
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), "dma_write channel.short+0 64\n");
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte_of(0, 0, kBlock), -1);
  EXPECT_EQ(card_next_deadline(bench.card()), kNever);
}

TEST_F(Binomial, ALeafWritesToTheUserAndNowhereElse) {
  post(0, 5, kBlock);
  bench.deliver(packet(0, 5, kBlock));
  EXPECT_EQ(bench.take_log(), "dma_write target+0 64\n");
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte_of(0, 5, kBlock), -1);
}

TEST_F(Binomial, FragmentsInAnyOrderAndTheLastOneShort) {
  const size_t block = 3 * CONFIG_MTU_BYTES + 17;
  post(0, 0, block);
  for (const uint32_t fragment : {3u, 1u, 0u, 2u}) {
    bench.deliver(packet(0, 0, block, 0, fragment));
    bench.finish_all_dma();
    EXPECT_EQ(bench.take_wire_log(), sent(0, 0, fragment, fragment == 3 ? 17 : CONFIG_MTU_BYTES) +
                                         (fragment == 2 ? "complete ctx0 cookie=100 OK\n" : ""));
  }
  EXPECT_EQ(wrong_byte_of(0, 0, block), -1);
}

TEST_F(Binomial, NoBytesAreAPacketToo) {
  post(0, 1, 0);
  EXPECT_EQ(bench.take_log(),
            "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 frag=0 len=0\n"
            "send 1>3 DATA seq=0 piece=0 origin=1 hop=1 frag=0 len=0\n"
            "send 1>5 DATA seq=0 piece=0 origin=1 hop=2 frag=0 len=0\n"
            "complete ctx0 cookie=100 OK\n");
  bench.deliver(packet(1, 0, 0));
  EXPECT_EQ(bench.take_log(),
            "send 1>3 DATA seq=1 piece=0 origin=0 hop=1 frag=0 len=0\n"
            "send 1>5 DATA seq=1 piece=0 origin=0 hop=2 frag=0 len=0\n");
  post(1, 0, 0);
  EXPECT_EQ(bench.take_log().substr(0, 28), "complete ctx0 cookie=101 OK\n");
}

class BinomialAlone : public BinomialTest {
 protected:
  BinomialAlone() : BinomialTest(1, 0) {}
};

TEST_F(BinomialAlone, IsCompleteAtOnce) {
  post(0, 0, kLongMax);
  EXPECT_EQ(bench.take_log(), "complete ctx0 cookie=100 OK\n");
}

TEST_F(Binomial, RootsChangeFromOneToTheNext) {
  post(0, 0, kBlock);
  post(1, 1, 2 * kBlock);
  bench.finish_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>2 DATA seq=1 piece=0 origin=1 hop=0 frag=0 len=128\n"
            "send 1>3 DATA seq=1 piece=0 origin=1 hop=1 frag=0 len=128\n"
            "send 1>5 DATA seq=1 piece=0 origin=1 hop=2 frag=0 len=128\n");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "complete ctx0 cookie=101 OK\n");
  bench.deliver(packet(0, 0, kBlock));
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 frag=0 len=64\n"
            "send 1>5 DATA seq=0 piece=0 origin=0 hop=2 frag=0 len=64\n");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log().substr(0, 28), "complete ctx0 cookie=100 OK\n");
}

// --- before the host ---

TEST_F(Binomial, EarlyDataGoesOnAndWaitsInTheChannel) {
  const size_t block = 2 * CONFIG_MTU_BYTES;
  bench.deliver(packet(0, 0, block, 0, 1));
  EXPECT_EQ(bench.take_log(), "dma_write channel+" + kMtuText + " " + kMtuText +
                                  "\n"
                                  "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 frag=1 len=" +
                                  kMtuText +
                                  "\n"
                                  "send 1>5 DATA seq=0 piece=0 origin=0 hop=2 frag=1 len=" +
                                  kMtuText + "\n");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_EARLY_DATA), 1u);
  // Its children may ask for it already.
  bench.finish_all_dma();
  bench.deliver(question(3, 0, block, 1, 0, 2));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 frag=1 len=" + kMtuText + " repair\n");
  post(0, 0, block);
  EXPECT_EQ(bench.take_log(), "dma_read channel+" + kMtuText + " " + kMtuText + "\n");
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), "dma_write target+" + kMtuText + " " + kMtuText + "\n");
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), "");
  bench.deliver(packet(0, 0, block, 0, 0));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            sent(0, 0, 0, CONFIG_MTU_BYTES) + "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte_of(0, 0, block), -1);
}

TEST_F(Binomial, EarlyDataStillOnItsWayIntoTheChannelWhenTheHostPosts) {
  const size_t block = 5 * CONFIG_MTU_BYTES - 3;
  for (const uint32_t root : {0u, 2u}) {
    const uint64_t sequence = root / 2;
    for (const uint32_t fragment : {4u, 1u, 2u})
      bench.deliver(packet(sequence, root, block, 0, fragment));
    post(sequence, root, block);
    bench.deliver(packet(sequence, root, block, 0, 0));
    bench.deliver(packet(sequence, root, block, 0, 3));
    // Last started first finished.
    while (bench.port.dma_count() > 0) bench.finish_dma(bench.port.dma_count() - 1);
    std::string expected;
    for (const uint32_t fragment : {4u, 1u, 2u, 0u, 3u}) {
      if (root == 0)
        expected += sent(sequence, root, fragment, CONFIG_MTU_BYTES - (fragment == 4 ? 3 : 0));
    }
    expected += completed(sequence, root);
    EXPECT_EQ(bench.take_wire_log(), expected);
    EXPECT_EQ(wrong_byte_of(sequence, root, block), -1);
  }
}

TEST_F(Binomial, EarlyDataThatCannotBeFetchedYet) {
  const size_t block = 2 * CONFIG_MTU_BYTES;
  bench.deliver(packet(0, 2, block, 0, 0));
  bench.deliver(packet(0, 2, block, 0, 1));
  bench.finish_all_dma();
  bench.take_log();
  bench.port.fail_allocations = {0, 1};
  post(0, 2, block);
  EXPECT_EQ(bench.port.dma_count(), 0u);
  EXPECT_EQ(bench.take_log(), "");
  bench.advance(default_timeouts().nack_ns / 4 + 1);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), "complete ctx0 cookie=100 OK\n");
  EXPECT_EQ(wrong_byte_of(0, 2, block), -1);
}

// --- what is refused ---

TEST_F(Binomial, DuplicateIsNeitherWrittenNorForwarded) {
  const size_t block = 2 * CONFIG_MTU_BYTES;
  post(0, 0, block);
  bench.deliver(packet(0, 0, block));
  bench.finish_all_dma();
  bench.take_log();
  // The copy differs, as only a broken card's could: were it taken, the result would show it.
  const Frame again = wire.binomial(binomial_shape(block, 0), 0, 0, 0,
                                    std::vector<uint8_t>(CONFIG_MTU_BYTES, 0x99));
  EXPECT_EQ(change(again), "+1 duplicate");
  EXPECT_EQ(bench.take_log(), "");
  bench.deliver(packet(0, 0, block, 0, 1));
  bench.finish_all_dma();
  bench.take_log();
  EXPECT_EQ(change(again), "+1 duplicate");  // after completion, too
  EXPECT_EQ(bench.take_log(), "");
  EXPECT_EQ(wrong_byte_of(0, 0, block), -1);
}

TEST_F(Binomial, FieldsThatCannotBe) {
  const size_t block = 2 * CONFIG_MTU_BYTES;
  post(0, 0, block);
  using H = peal_wire_header;
  expect_dropped(bench, packet(0, 0, block), fields_that_cannot_be());
  const std::vector<BadField> kBad = {
      {"sender no parent", from_rank(5), "+1 drop_sender"},
      {"sender no peer", from_rank(4), "+1 drop_sender"},
      {"another root", [](H& h) { h.origin = 2; }, "+1 drop_signature"},
      {"root beyond", [](H& h) { h.origin = 6; }, "+1 drop_signature"},
      {"root far beyond", [](H& h) { h.origin = 0xffff; }, "+1 drop_signature"},
      {"hop", [](H& h) { h.hop = 1; }, "+1 drop_hop"},
      {"fragment", [](H& h) { h.fragment = 2; }, "+1 drop_fragment"},
      {"fragment 64", [](H& h) { h.fragment = 64; }, "+1 drop_fragment"},
  };
  expect_dropped(bench, packet(0, 0, block), kBad);
  for (const size_t bytes : {size_t{0}, size_t{CONFIG_MTU_BYTES - 1}})
    EXPECT_EQ(change(wire.binomial(binomial_shape(block, 0), 0, 0, 1, std::vector<uint8_t>(bytes))),
              "+1 drop_length");
  EXPECT_EQ(bench.take_log(), "");
  bench.deliver(packet(0, 0, block, 0, 0));
  bench.deliver(packet(0, 0, block, 0, 1));
  bench.finish_all_dma();
  EXPECT_EQ(wrong_byte_of(0, 0, block), -1);
}

TEST_F(Binomial, NobodySendsTheRootItsOwn) {
  post(0, 1, kBlock);
  bench.take_log();
  Frame frame = wire.signal(0, binomial_shape(kBlock, 1), 0, 0);
  frame.header.type = PEAL_PACKET_DATA;
  frame.payload.resize(kBlock);
  seal(frame);
  EXPECT_EQ(change(frame), "+1 drop_origin");
  EXPECT_EQ(bench.take_log(), "");
  bench.finish_all_dma();
}

TEST_F(Binomial, QuestionsThatCannotBe) {
  const size_t block = 2 * CONFIG_MTU_BYTES;
  post(0, 0, block);
  deliver_piece(0, 0, block, 0);
  bench.take_log();
  EXPECT_EQ(change(question(3, 0, block, 1, 1, 1)), "+1 drop_piece");
  EXPECT_EQ(change(question(3, 0, block, 2, 0, 1)), "+1 drop_hop");  // 3 is by hop 1
  EXPECT_EQ(change(question(2, 0, block, 0, 0, 1)), "+1 drop_hop");  // 2 is the root's child
  // 0 is the root, and asks for credits only.
  EXPECT_EQ(change(question(0, 0, block, 0, 0, 1)), "+1 drop_fragment");
  EXPECT_EQ(change(question(5, 0, block, 3, 0, 1)), "+1 drop_hop");
  EXPECT_EQ(change(question(5, 0, block, 255, 0, 1)), "+1 drop_hop");
  EXPECT_EQ(change(question(5, 0, block, 2, 0, 0)), "+1 drop_fragment");
  EXPECT_EQ(change(question(5, 0, block, 2, 0, 4)), "+1 drop_fragment");
  EXPECT_EQ(change(question(5, 0, block, 2, 0, uint64_t{1} << 63)), "+1 drop_fragment");
  EXPECT_EQ(change(question(5, 0, block, 2, 0, 1, 2)), "+1 drop_piece");  // a credit of two
  EXPECT_EQ(bench.take_log(), "");
}

// --- questions and repairs ---

TEST_F(Binomial, OneQuestionNamesAllThatIsMissing) {
  const size_t block = 4 * CONFIG_MTU_BYTES;
  post(0, 0, block);
  bench.deliver(packet(0, 0, block, 0, 2));
  bench.finish_all_dma();
  bench.take_log();
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_log(), "send 1>0 NACK seq=0 piece=0 origin=0 missing=0xb credit=0\n");
  EXPECT_EQ(bench.counter(PEAL_COUNTER_SENT_NACK), 1u);
}

TEST_F(Binomial, NothingHasComeIsAskedForToo) {
  post(0, 3, 2 * CONFIG_MTU_BYTES);
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_log(), "send 1>3 NACK seq=0 piece=0 origin=3 missing=0x3 credit=0\n");
}

// A relay whose host is late asks for those below it.
TEST_F(Binomial, AQuestionMakesTheRecordThatAsksOn) {
  const size_t block = 2 * CONFIG_MTU_BYTES;
  bench.deliver(question(5, 0, block, 2, 0, 3));
  EXPECT_EQ(bench.take_log(), "send 1>5 NOT_YET seq=0 piece=0 origin=0\n");
  bench.advance(default_timeouts().nack_ns);
  EXPECT_EQ(bench.take_log(), "send 1>0 NACK seq=0 piece=0 origin=0 missing=0x3 credit=0\n");
}

TEST_F(Binomial, TheRootAsksNobody) {
  bench.deliver(question(5, 1, kBlock, 2, 0, 1));
  EXPECT_EQ(bench.take_log(), "send 1>5 NOT_YET seq=0 piece=0 origin=1 late\n");
  bench.advance(50 * default_timeouts().nack_max_ns);
  EXPECT_EQ(bench.take_log(), "");
  post(0, 1, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(),
            "dma_read source+0 64\n"
            "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 frag=0 len=64\n"
            "send 1>3 DATA seq=0 piece=0 origin=1 hop=1 frag=0 len=64\n"
            "send 1>5 DATA seq=0 piece=0 origin=1 hop=2 frag=0 len=64\n"
            "dma_write channel.short+0 64\n"
            "complete ctx0 cookie=100 OK\n");
}

TEST_F(Binomial, RepairsAreWhatWasAskedForAndHasCome) {
  const size_t block = 5 * CONFIG_MTU_BYTES;
  post(0, 0, block);
  for (const uint32_t fragment : {0u, 1u, 3u}) bench.deliver(packet(0, 0, block, 0, fragment));
  bench.finish_all_dma();
  bench.port.take_sent();
  bench.take_log();
  bench.deliver(question(5, 0, block, 2, 0, 0b11110));
  EXPECT_EQ(bench.take_log(), "dma_read channel+" + kMtuText + " " + kMtuText +
                                  "\ndma_read channel+" + std::to_string(3 * CONFIG_MTU_BYTES) +
                                  " " + kMtuText + "\n");
  const auto before = bench.counter(PEAL_COUNTER_SENT_REPAIR);
  bench.finish_all_dma();
  EXPECT_EQ(before, 2u);
  const std::vector<Frame> sent = bench.port.take_sent();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(frame_text(sent[0]),
            "1>5 DATA seq=0 piece=0 origin=0 hop=2 frag=1 len=" + kMtuText + " repair");
  EXPECT_EQ(frame_text(sent[1]),
            "1>5 DATA seq=0 piece=0 origin=0 hop=2 frag=3 len=" + kMtuText + " repair");
  EXPECT_TRUE(sent[0].payload == pattern_block(0, 0, CONFIG_MTU_BYTES, CONFIG_MTU_BYTES));
  EXPECT_TRUE(sent[1].payload == pattern_block(0, 0, 3 * CONFIG_MTU_BYTES, CONFIG_MTU_BYTES));
  bench.take_log();
  bench.deliver(question(5, 0, block, 2, 0, 0b10100));
  EXPECT_EQ(bench.take_log(), "send 1>5 NOT_YET seq=0 piece=0 origin=0\n");
  bench.spend_repairs();
  bench.deliver(question(5, 0, block, 2, 0, 0b10010));
  EXPECT_EQ(bench.take_log(), "send 1>5 NOT_YET seq=0 piece=0 origin=0 sent\n");
}

// Arrived, but on its way into the channel: there is nothing to read yet. It is not forgotten.
TEST_F(Binomial, NothingIsRepairedBeforeItLiesInTheChannel) {
  post(0, 0, kBlock);
  bench.deliver(packet(0, 0, kBlock));
  bench.take_log();
  bench.deliver(question(5, 0, kBlock, 2, 0, 1));
  EXPECT_EQ(bench.take_log(), "send 1>5 NOT_YET seq=0 piece=0 origin=0\n");
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), "dma_write channel.short+0 64\n");
  bench.finish_dma();
  EXPECT_EQ(bench.take_log(), "dma_read channel.short+0 64\ncomplete ctx0 cookie=100 OK\n");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>5 DATA seq=0 piece=0 origin=0 hop=2 frag=0 len=64 repair\n");
}

TEST_F(Binomial, LateQuestionsAreAnsweredRightWhenTheUserHasOverwrittenAll) {
  const size_t block = 2 * CONFIG_MTU_BYTES + 9;
  for (const uint32_t root : {0u, 1u}) {
    post(root, root, block);
    if (root != rank) deliver_piece(root, root, block, 0);
    bench.finish_all_dma();
    std::string expected;
    for (uint32_t fragment = 0; fragment < 3; fragment++)
      expected += sent(root, root, fragment, fragment == 2 ? 9 : CONFIG_MTU_BYTES);
    expected += completed(root, root);
    EXPECT_EQ(bench.take_wire_log(), expected);
    overwrite();
    bench.port.take_sent();
    Frame asked = wire.nack(3, binomial_shape(block, root), root, 0, root, 1, 7);
    bench.deliver(asked);
    bench.finish_all_dma();
    size_t offset = 0;
    for (const Frame& frame : bench.port.take_sent()) {
      if (frame.header.type != PEAL_PACKET_DATA) continue;
      EXPECT_TRUE(frame.payload == pattern_block(root, root, offset, frame.payload.size()));
      offset += frame.payload.size();
    }
    EXPECT_EQ(offset, block) << root;
    bench.take_log();
  }
}

TEST_F(Binomial, ARepairDoesForThePacket) {
  post(0, 0, kBlock);
  Frame repair = packet(0, 0, kBlock);
  WireMaker::make_repair(repair);
  bench.deliver(repair);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 frag=0 len=64\n"
            "send 1>5 DATA seq=0 piece=0 origin=0 hop=2 frag=0 len=64\n"
            "complete ctx0 cookie=100 OK\n");
}

// --- out of resources ---

TEST_F(Binomial, NoPacketForForwardingLosesOnlyTheForward) {
  post(0, 0, kBlock);
  bench.port.fail_allocations = {1, kAlways};  // the arrival has one
  bench.deliver(packet(0, 0, kBlock));
  bench.port.fail_allocations = {};
  EXPECT_EQ(bench.counter(PEAL_COUNTER_NO_PACKET), 1u);
  bench.finish_all_dma();
  EXPECT_EQ(
      bench.take_wire_log(),
      "send 1>3 DATA seq=0 piece=0 origin=0 hop=1 frag=0 len=64\ncomplete ctx0 cookie=100 OK\n");
  bench.deliver(question(5, 0, kBlock, 2, 0, 1));
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>5 DATA seq=0 piece=0 origin=0 hop=2 frag=0 len=64 repair\n");
}

TEST_F(Binomial, NoPacketForTheOwnDataIsTriedAgain) {
  bench.port.fail_allocations = {0, 1};
  post(0, 1, kBlock);
  EXPECT_EQ(bench.take_log(), "");
  bench.advance(default_timeouts().nack_ns / 4 + 1);
  EXPECT_EQ(bench.take_log(), "dma_read source+0 64\n");
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_log(),
            "send 1>2 DATA seq=0 piece=0 origin=1 hop=0 frag=0 len=64\n"
            "send 1>3 DATA seq=0 piece=0 origin=1 hop=1 frag=0 len=64\n"
            "send 1>5 DATA seq=0 piece=0 origin=1 hop=2 frag=0 len=64\n"
            "dma_write channel.short+0 64\n"
            "complete ctx0 cookie=100 OK\n");
}

TEST_F(Binomial, RefusedDmaIsOfferedAgain) {
  bench.port.refuse_dmas = {0, 3};
  post(0, 1, 2 * CONFIG_MTU_BYTES);
  EXPECT_EQ(bench.port.dma_count(), 0u);
  std::string log;
  for (int i = 0; i < 16 && log.find("complete") == std::string::npos; i++) {
    bench.advance_to_deadline();
    bench.finish_all_dma();
    log += bench.take_wire_log();
  }
  EXPECT_EQ(log, sent(0, 1, 0, CONFIG_MTU_BYTES) + sent(0, 1, 1, CONFIG_MTU_BYTES) +
                     "complete ctx0 cookie=100 OK\n");
}

// --- failures ---

TEST_F(Binomial, TheRootsMemoryCannotBeReadAndAllAreTold) {
  bench.port.fault_dmas = {0, 1};
  post(0, 1, 2 * CONFIG_MTU_BYTES);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>2 REFUSE seq=0 rank=1\n"
            "send 1>0 REFUSE seq=0 rank=1\n"
            "send 1>3 REFUSE seq=0 rank=1\n"
            "send 1>5 REFUSE seq=0 rank=1\n"
            "complete ctx0 cookie=100 DMA_FAULT rank=1\n");
  // Whoever asks later hears it, too; the group goes on.
  bench.deliver(question(5, 1, 2 * CONFIG_MTU_BYTES, 2, 0, 1));
  EXPECT_EQ(bench.take_wire_log(), "send 1>5 REFUSE seq=0 rank=1\n");
  post(1, 1, kBlock);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>2 DATA seq=1 piece=0 origin=1 hop=0 frag=0 len=64\n"
            "send 1>3 DATA seq=1 piece=0 origin=1 hop=1 frag=0 len=64\n"
            "send 1>5 DATA seq=1 piece=0 origin=1 hop=2 frag=0 len=64\n"
            "complete ctx0 cookie=101 OK\n");
}

TEST_F(Binomial, AFaultOfTheChannelWhereEarlyDataLies) {
  const size_t block = 2 * CONFIG_MTU_BYTES;
  bench.deliver(packet(0, 0, block, 0, 0));
  bench.finish_all_dma();
  bench.port.fault_dmas = {0, 1};
  post(0, 0, block);
  bench.finish_all_dma();
  EXPECT_EQ(bench.take_wire_log(), sent(0, 0, 0, CONFIG_MTU_BYTES) +
                                       "send 1>2 REFUSE seq=0 rank=1\n"
                                       "send 1>0 REFUSE seq=0 rank=1\n"
                                       "send 1>3 REFUSE seq=0 rank=1\n"
                                       "send 1>5 REFUSE seq=0 rank=1\n"
                                       "complete ctx0 cookie=100 DMA_FAULT rank=1\n");
}

TEST_F(Binomial, RanksDisagreeAboutTheRoot) {
  post(0, 0, kBlock);
  EXPECT_EQ(
      change(wire.binomial(binomial_shape(kBlock, 3), 0, 0, 0, pattern_block(0, 3, 0, kBlock))),
      "+4 sent_verdict, +1 operations_failed, +1 drop_signature");
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>2 REFUSE seq=0 rank=3\n"
            "send 1>0 REFUSE seq=0 rank=3\n"
            "send 1>3 REFUSE seq=0 rank=3\n"
            "send 1>5 REFUSE seq=0 rank=3\n"
            "complete ctx0 cookie=100 MISMATCH rank=3\n");
}

TEST_F(Binomial, RanksDisagreeAboutTheLengthBeforeTheHostHasPosted) {
  bench.deliver(packet(0, 0, kBlock));
  bench.finish_all_dma();
  bench.take_log();
  post(0, 0, kBlock + 1);
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>2 REFUSE seq=0 rank=0\n"
            "send 1>0 REFUSE seq=0 rank=0\n"
            "send 1>3 REFUSE seq=0 rank=0\n"
            "send 1>5 REFUSE seq=0 rank=0\n"
            "complete ctx0 cookie=100 MISMATCH rank=0\n");
}

TEST_F(Binomial, APoisonedGroupAnswersNothingElse) {
  post(0, 0, kBlock);
  bench.deliver(wire.death(0, 4));
  EXPECT_EQ(bench.take_wire_log(),
            "send 1>2 DEATH rank=4\n"
            "send 1>0 DEATH rank=4\n"
            "send 1>3 DEATH rank=4\n"
            "send 1>5 DEATH rank=4\n"
            "complete ctx0 cookie=100 PEER_DEAD rank=4\n");
  EXPECT_EQ(change(packet(0, 0, kBlock)), "+1 sent_verdict, +1 drop_closed");
  EXPECT_EQ(bench.take_wire_log(), "send 1>0 DEATH rank=4\n");
}

// --- submissions ---

TEST_F(Binomial, SubmissionsThatCannotBe) {
  uint64_t cookie = 0;
  const auto status = [&](peal_submission entry) {
    entry.cookie = ++cookie;
    bench.submit(entry);
    const auto completions = bench.port.take_completions();
    EXPECT_EQ(bench.port.dma_count(), 0u);
    bench.take_log();
    return completions.size() == 1 ? status_text(completions[0].second.status)
                                   : std::string("none");
  };
  const Memory hidden = bench.add_memory("hidden", 8, PEAL_ACCESS_WRITE);
  bench.take_log();
  const auto root = [&](uint64_t bytes) {
    return broadcast_entry(member, 0, 0, 1, bytes, source.key, 0);
  };
  const auto leaf = [&](uint64_t bytes) {
    return broadcast_entry(member, 0, 0, 2, bytes, 0, target.key);
  };
  const auto with = [](peal_submission entry, void (*set)(peal_submission & entry)) {
    set(entry);
    return entry;
  };
  EXPECT_EQ(status(broadcast_entry(member, 0, 0, 6, 8, source.key, target.key)), "BAD_ROOT");
  EXPECT_EQ(status(broadcast_entry(member, 0, 0, ~0u, 8, source.key, target.key)), "BAD_ROOT");
  EXPECT_EQ(status(root(uint64_t{1} << 32)), "BAD_LENGTH");
  EXPECT_EQ(status(leaf(uint64_t{1} << 32)), "BAD_LENGTH");
  EXPECT_EQ(status(root(kLongMax + 1)), "BAD_BOUNDS");
  EXPECT_EQ(status(leaf(kLongMax + 1)), "BAD_BOUNDS");
  EXPECT_EQ(status(with(root(kLongMax), [](peal_submission& e) { e.send_offset = 1; })),
            "BAD_BOUNDS");
  EXPECT_EQ(status(with(leaf(kLongMax), [](peal_submission& e) { e.receive_offset = 1; })),
            "BAD_BOUNDS");
  EXPECT_EQ(status(broadcast_entry(member, 0, 0, 1, 8, 0, source.key)), "BAD_KEY");
  EXPECT_EQ(status(broadcast_entry(member, 0, 0, 2, 8, target.key, 0)), "BAD_KEY");
  EXPECT_EQ(status(broadcast_entry(member, 0, 0, 1, 8, hidden.key, 0)), "BAD_ACCESS");
  EXPECT_EQ(status(broadcast_entry(member, 0, 0, 2, 8, 0, source.key)), "BAD_ACCESS");
  EXPECT_EQ(status(with(root(8), [](peal_submission& e) { e.flags = PEAL_SUBMIT_IN_PLACE; })),
            "BAD_FLAGS");
  EXPECT_EQ(
      status(with(root(8),
                  [](peal_submission& e) { e.algorithm = PEAL_ALGORITHM_RECURSIVE_DOUBLING; })),
      "BAD_ALGORITHM");
}

// Keys that are not the rank's part in it are not looked at, and offsets count.
TEST_F(Binomial, OneKeyCountsAndItsOffset) {
  peal_submission entry = broadcast_entry(member, 0, 100, 1, 40, source.key, 0xdeadbeef);
  entry.send_offset = 7;
  bench.submit(entry);
  EXPECT_EQ(bench.take_log(), "dma_read source+7 40\n");
  bench.finish_all_dma();
  bench.take_log();
  entry = broadcast_entry(member, 1, 101, 2, 40, 0xdeadbeef, target.key);
  entry.receive_offset = 9;
  bench.submit(entry);
  bench.deliver(packet(1, 2, 40));
  EXPECT_EQ(bench.take_log(), "dma_write target+9 40\n");
  bench.finish_all_dma();
}

}  // namespace
}  // namespace peal::test
