// SPDX-License-Identifier: BSD-2-Clause
// Programs whose starts fail. Rank 1 of 4: 2, 0 and 3 are its peers.
#pragma once

#include <string>

#include "firmware/queue/failed.h"
#include "tests/unit/firmware/queue/queue_fixture.h"

namespace peal::test {

class Failed : public QueueTest {
 protected:
  static constexpr uint16_t kName = 7;
  static constexpr uint16_t kFirstHops = 2;  // of four ranks

  // A program that waits for rank 3, and then is over.
  WrittenProgram& listener() {
    program.sources = {3};
    program.wait(0, 1);
    return commit(program.end());
  }
  // Its start 0 is over, and 1 runs.
  void run_second() {
    listener();
    start(program, 0);
    notice(3, 0, 1, 0);
    start(program, 1);
    EXPECT_EQ(log(), "completes 100 OK\n");
  }
  // Start 0 of a program 8 runs; of program 7 the first iterations have failed on rank 3.
  void run_beside_failed(uint64_t failed = 2) {
    program.name = 8;
    listener();
    start(program, 0);
    hear(0, news(0, failed));
  }
  // One whose memory is gone: it tells rank 2, and then fails.
  WrittenProgram& failing() {
    program.signal(2, 0);
    program.put(2, 8, data.key);
    commit(program.end());
    EXPECT_EQ(card_unregister_memory(bench.card(), bench.context(), data.key, &data.region),
              PEAL_STATUS_OK);
    return program;
  }
  static peal_failed news(uint64_t from, uint64_t to, uint32_t rank = 3) {
    return {.from = from,
            .to = to,
            .rank = rank,
            .index = 5,
            .program = kName,
            .status = PEAL_STATUS_BAD_PROGRAM,
            .reason = PEAL_PROGRAM_REASON_KEY,
            .hops = kFirstHops,
            .begun = 0};
  }
  // So many places are taken, by what rank 0 does not know yet of other programs of that member.
  void take_places(uint32_t count, const Membership& whose) {
    queue::QueuePool& pool = bench.card().queues;
    for (uint32_t i = 0; i < count; i++) {
      queue::FailedIterations& place = pool.failed[pool.failed_top++];
      place = {};
      place.in_use = true;
      place.name = static_cast<uint16_t>(100 + i);
      place.member = whose.handle();
      place.untold = 2;
      place.to = 1;
      place.next_ns = bench.now + default_timeouts().dead_ns;
    }
  }
  void give_places() {
    for (queue::FailedIterations& each : bench.card().queues.failed) {
      if (each.name >= 100) each.untold = 0;
    }
  }
  // Start 0 runs, and something of the member's is being written.
  void begin_with_a_write() {
    listener();
    start(program, 0);
    ++bench.card().members[0].dma;
  }
  // Nothing completes before it is done; what does then.
  std::string end_of_write() {
    for (int i = 0; i < 5; i++) bench.advance(100'000);
    EXPECT_EQ(log(), "");
    --bench.card().members[0].dma;
    bench.advance(100'000);
    return log();
  }
  // A put of program 7's, to or from rank 3.
  static p2p::MissingPut missing(uint64_t iteration, bool together = false) {
    return {.status = PEAL_STATUS_BAD_KEY,
            .together = together,
            .late = false,
            .member = 0,
            .program = kName + 1,
            .rank = 3,
            .connection = 0,
            .number = 0,
            .index = 6,
            .iteration = iteration,
            .told = {}};
  }
  // What a peer says, and what the card does about it.
  std::string hear(uint32_t peer, const peal_failed& body) {
    bench.take_log();
    bench.deliver(wire().failed(peer, body));
    const std::string sent = bench.take_wire_log();
    settle();
    return sent;
  }
  void answer(uint32_t peer, const peal_failed& body) {
    bench.deliver(wire().failed(peer, body, PEAL_PACKET_KNOWN));
  }
  // What the card sends of its own accord in that time.
  std::string sent_within(TimeNs time_ns) {
    bench.take_log();
    bench.advance(time_ns);
    return bench.take_wire_log();
  }
  [[nodiscard]] WireMaker wire() const { return WireMaker(member); }
  [[nodiscard]] TimeNs wait() const { return default_timeouts().nack_ns; }

  WrittenProgram program;
};

}  // namespace peal::test
