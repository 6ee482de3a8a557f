// SPDX-License-Identifier: BSD-2-Clause
// A rank of four that waits in an all-to-all broadcast, and what it hears meanwhile.
#pragma once

#include <sstream>
#include <string>

#include "firmware/group/inquiry.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {

inline constexpr TimeNs kDead = CONFIG_DEAD_TIMEOUT_US * TimeNs{1000};
inline constexpr TimeNs kWatch = kDead / 8;

// Rank 1 of four: blocks of 0 and 2, 3 come from ranks 0 and 3.
class Inquiries : public GroupTest {
 protected:
  Inquiries() : GroupTest(4, 1) {}

  void post() {
    post_broadcast(0, kBlock);
    bench.finish_all_dma();
    bench.take_log();
  }
  Frame not_yet(uint32_t sender, bool late) {
    return wire.not_yet(sender, broadcast_shape(kBlock), 0, 0, sender, sender == 0 ? 0 : 1,
                        static_cast<uint32_t>(bench.now / 1000),
                        late ? PEAL_NOT_YET_LATE : PEAL_NOT_YET_WAITS);
  }
  // Lets time pass; probes are answered.
  void pass(TimeNs for_ns) {
    const TimeNs until = bench.now + for_ns;
    while (card_next_deadline(bench.card()) <= until && bench.advance_to_deadline()) {
      for (const Frame& frame : bench.port.take_sent()) {
        if (frame.header.type != PEAL_PACKET_PROBE) continue;
        probes_++;
        const uint32_t peer = frame.header.destination[5];
        bench.deliver(alive_ < 0
                          ? wire.alive(peer)
                          : WireMaker::numbered(wire.alive(peer),
                                                peer == 3 ? static_cast<uint8_t>(alive_) : 0));
      }
    }
    bench.now = until;
  }
  // Everybody was asked once, and rank 0 has answered that it has nothing yet.
  void post_and_hear(bool late) {
    post();
    bench.advance(kNack);
    bench.deliver(not_yet(0, late));
    bench.take_log();
  }
  // Without what is asked of an epoch that is recycled: with few channels one is.
  static std::string of_the_operation(const std::string& log) {
    std::istringstream lines(log);
    std::string kept;
    for (std::string line; std::getline(lines, line);) {
      if (line.find(" NACK recycle ") == std::string::npos) kept += line + "\n";
    }
    return kept;
  }
  // Of rank 3 one packet is lost, of which four epochs later no operation knows; then one waits.
  void lose_one_and_recycle() {
    post();
    bench.deliver(WireMaker::numbered(block_of(3, 0, kBlock), 2));
    deliver_others(0, kBlock);
    run_barriers(1, 4 * kEpoch - 1);
    bench.card().members[0].patience.wait_ns = kNack;
    post_broadcast(4 * kEpoch, kBlock);
    bench.finish_all_dma();
  }
  // Rank 3 says that all that it has sent has come.
  void hear_that_nothing_was_sent(uint8_t sent) {
    bench.advance(1000);
    bench.deliver(WireMaker::numbered(wire.alive(3), sent));
    bench.take_log();
  }
  bool asks_3_within(TimeNs time_ns) {
    bench.advance(time_ns);
    return bench.take_wire_log().find("send 1>3 NACK seq=") != std::string::npos;
  }
  uint64_t nacks() { return bench.counter(PEAL_COUNTER_SENT_NACK); }

  uint32_t probes_ = 0;
  int alive_ = -1;  // what rank 3 says that it has sent; -1: nobody says anything
};

}  // namespace peal::test
