// SPDX-License-Identifier: BSD-2-Clause
// A card whose programs' messages a test carries: it writes down what queues ask for, and says when
// that is over. Rank 1 of 4.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/names.h"
#include "firmware/card_types.h"
#include "firmware/group/member.h"
#include "firmware/queue/failed.h"
#include "firmware/queue/gates.h"
#include "firmware/queue/network.h"
#include "firmware/queue/tasks.h"
#include "firmware/queue/turn.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {

// What queues ask for, as text; a task is over when the test says so.
// (One at a time: a network's functions know no instance.)
class PlayedNetwork {
 public:
  PlayedNetwork() { playing = this; }
  PlayedNetwork(const PlayedNetwork&) = delete;
  PlayedNetwork& operator=(const PlayedNetwork&) = delete;
  ~PlayedNetwork() { playing = nullptr; }

  std::string log;
  std::vector<queue::Ticket> tickets;  // in the order in which they were started
  Knob refuse;
  uint32_t unreachable = PEAL_NO_RANK;

  uint32_t given_up = 0;  // so often
  bool lands = false;     // bytes that others have put
  bool signals_at_once = false;

  static inline PlayedNetwork* playing = nullptr;

  template <typename Asked>
  bool start(const Asked& asked, queue::Ticket ticket) {
    if (refuse.hit()) return false;
    log += text_of(asked) + "\n";
    tickets.push_back(ticket);
    return true;
  }
  bool start_at_once(const queue::Signal& signal) {
    if (!signals_at_once) return false;
    log += text_of({.what = signal.what, .origin = signal.origin, .region = {}, .index = 0}) +
           " at once\n";
    return true;
  }
  static std::string text_of(const queue::Send& send) {
    return "send " + range(send.from, send.bytes) + " to " + rank_and_tag(send.to, send.tag);
  }
  static std::string text_of(const queue::Receive& receive) {
    return "receive " + range(receive.to, receive.bytes) + " from " +
           rank_and_tag(receive.from, receive.tag);
  }

 private:
  static std::string text_of(const queue::Put& put) {
    const peal_descriptor& what = put.what;
    std::string text =
        what.bytes == 0 ? "signal" : "put " + range({put.region, what.offset}, what.bytes);
    text += " to " + std::to_string(what.rank);
    if (what.bytes != 0) {
      text += ":" + std::to_string(what.remote_key) + "+" + std::to_string(what.remote_offset);
    }
    if (what.queue != PEAL_NO_QUEUE) {
      text += " tells " + told({what.queue, what.counter, what.steps, put.origin.iteration});
    }
    return text;
  }
  static std::string range(const HostAddress& memory, uint64_t bytes) {
    return std::to_string(memory.offset) + ".." + std::to_string(memory.offset + bytes);
  }
  static std::string rank_and_tag(uint32_t rank, uint64_t tag) {
    return std::to_string(rank) + " tag " + std::to_string(tag);
  }
  static std::string told(const queue::Notice& notice) {
    return std::to_string(notice.queue) + "." + std::to_string(notice.counter) + " +" +
           std::to_string(notice.steps) + " of " + std::to_string(notice.iteration);
  }
};

inline constexpr queue::Network kPlayed = {
    .reaches = [](const Member&, Rank rank) { return rank != PlayedNetwork::playing->unreachable; },
    .put = [](Card&, Member&, const queue::Put& put,
              queue::Ticket ticket) { return PlayedNetwork::playing->start(put, ticket); },
    .signal =
        [](Card&, const Member&, const queue::Signal& signal) {
          return PlayedNetwork::playing->start_at_once(signal);
        },
    .send = [](Card&, Member&, const queue::Send& send,
               queue::Ticket ticket) { return PlayedNetwork::playing->start(send, ticket); },
    .receive = [](Card&, Member&, const queue::Receive& receive,
                  queue::Ticket ticket) { return PlayedNetwork::playing->start(receive, ticket); },
    .give_up = [](Card&, uint16_t) { ++PlayedNetwork::playing->given_up; },
    .throw_away = [](Card&, Member&) {},
    .is_landing = [](const Card&, const Member&, uint16_t, uint64_t,
                     uint64_t) { return PlayedNetwork::playing->lands; }};

// A program as a host writes it.
struct WrittenProgram {
  std::vector<peal_descriptor> descriptors;
  std::vector<uint32_t> sources;
  uint16_t name = 7;
  uint8_t mode = PEAL_PROGRAM_MODE_TASKS;
  uint32_t scheduled = 0;
  Memory memory = {};
  uint32_t handle = 0;

  peal_descriptor& add(uint8_t opcode) {
    peal_descriptor descriptor{};
    descriptor.opcode = opcode;
    descriptors.push_back(descriptor);
    return descriptors.back();
  }
  peal_descriptor& wait(uint16_t counter, uint64_t threshold) {
    peal_descriptor& made = add(PEAL_PROGRAM_WAIT);
    made.counter = counter;
    made.threshold = threshold;
    return made;
  }
  peal_descriptor& signal(uint32_t rank, uint16_t counter, uint32_t steps = 1, uint16_t queue = 7) {
    peal_descriptor& made = add(PEAL_PROGRAM_SIGNAL);
    made.rank = rank;
    made.queue = queue;
    made.counter = counter;
    made.steps = steps;
    made.done = PEAL_NO_COUNTER;
    return made;
  }
  peal_descriptor& put(uint32_t rank, uint64_t bytes, uint32_t key,
                       uint16_t done = PEAL_NO_COUNTER) {
    peal_descriptor& made = add(PEAL_PROGRAM_PUT);
    made.rank = rank;
    made.queue = PEAL_NO_QUEUE;
    made.bytes = bytes;
    made.key = key;
    made.remote_key = 99;
    made.done = done;
    return made;
  }
  peal_descriptor& message(uint8_t opcode, uint32_t rank, uint64_t tag, uint64_t bytes,
                           uint32_t key, uint16_t done = PEAL_NO_COUNTER) {
    peal_descriptor& made = add(opcode);
    made.rank = rank;
    made.tag = tag;
    made.bytes = bytes;
    made.key = key;
    made.done = done;
    return made;
  }
  WrittenProgram& end() {
    add(PEAL_PROGRAM_COMPLETE);
    add(PEAL_PROGRAM_JUMP);
    return *this;
  }
};

class QueueTest : public CardTest {
 protected:
  static constexpr uint32_t kOwn = 1;

  QueueTest()
      : CardTest(on_card()), data(bench.add_memory("data", 4096)), member(bench.join(4, kOwn)) {
    queue::use_network(bench.card(), kPlayed);
    bench.port.log_dma = false;
  }

  static BenchOptions on_card() {
    BenchOptions options;
    options.index = kOwn;
    return options;
  }

  // Into host memory, without telling the card.
  void write(WrittenProgram& program) {
    const size_t table = peal_program_sources_bytes(static_cast<uint32_t>(program.sources.size()));
    const size_t list = program.descriptors.size() * sizeof(peal_descriptor);
    if (program.memory.key == 0) {
      program.memory = bench.add_memory("program", table + list, PEAL_ACCESS_READ);
    }
    auto& bytes = bench.port.bytes(program.memory.region);
    const auto* sources = reinterpret_cast<const uint8_t*>(program.sources.data());
    const auto* descriptors = reinterpret_cast<const uint8_t*>(program.descriptors.data());
    std::copy_n(sources, program.sources.size() * sizeof(uint32_t), bytes.begin());
    std::copy_n(descriptors, list, bytes.begin() + static_cast<ptrdiff_t>(table));
  }
  peal_commit_program request_of(const WrittenProgram& program) const {
    peal_commit_program request{};
    request.member = member.handle();
    request.key = program.memory.key;
    request.count = static_cast<uint32_t>(program.descriptors.size());
    request.counters = static_cast<uint32_t>(program.sources.size());
    request.scheduled = program.scheduled;
    request.name = program.name;
    request.mode = program.mode;
    return request;
  }
  peal_status try_commit(WrittenProgram& program) {
    write(program);
    return commit_as(bench.context(), request_of(program), &program.handle);
  }
  peal_status commit_as(ContextId context, const peal_commit_program& request, uint32_t* handle) {
    peal_commit_program_reply reply{};
    const peal_status status = card_commit_program(bench.card(), context, request, &reply);
    if (status == PEAL_STATUS_OK) *handle = reply.program;
    return status;
  }
  WrittenProgram& commit(WrittenProgram& program) {
    EXPECT_EQ(try_commit(program), PEAL_STATUS_OK);
    return program;
  }
  peal_status free_program(const WrittenProgram& program) {
    return card_free_program(bench.card(), bench.context(), program.handle);
  }
  peal_submission start_entry(const WrittenProgram& program, uint64_t iteration,
                              uint64_t passes) const {
    peal_submission entry{};
    entry.operation = PEAL_OPERATION_START;
    entry.member = member.handle();
    entry.sequence = iteration;
    entry.cookie = 100 + iteration;
    entry.send_key = program.handle;
    entry.block_bytes = passes;
    return entry;
  }
  // Without waiting for what it brings.
  void post(const WrittenProgram& program, uint64_t iteration, uint64_t passes = 1) {
    bench.submit(start_entry(program, iteration, passes));
  }
  void start(const WrittenProgram& program, uint64_t iteration, uint64_t passes = 1) {
    post(program, iteration, passes);
    settle();
  }
  // Until the card has nothing to do but to wait for others.
  void settle() {
    do {
      bench.finish_all_dma();
      bench.advance(1);
    } while (bench.port.dma_count() > 0 || card_next_deadline(bench.card()) <= bench.now + 1);
  }
  // `teller`: the program's name plus one, or 0: of none.
  void notice(uint32_t from, uint16_t counter, uint32_t steps, uint64_t iteration,
              uint16_t name = 7, uint16_t teller = 0) {
    Member* own = find_member(bench.card(), member.handle());
    ASSERT_NE(own, nullptr);
    const p2p::Notice told = {name, counter, steps, iteration};
    const p2p::Noticed noticed = {own->index, static_cast<uint16_t>(from), teller, told};
    if (!queue::is_told_in_vain(bench.card(), *own, noticed)) {
      queue::tell(bench.card(), *own, from, told);
    }
    turn();
  }
  void turn() {
    queue::take_turns(bench.card());
    queue::expect_turn(bench.card());
    settle();
  }
  // What a notice is counted as.
  std::string notice_changes(uint32_t from, uint16_t counter, uint32_t steps, uint64_t iteration,
                             uint16_t name = 7) {
    const auto before = bench.counters();
    notice(from, counter, steps, iteration, name);
    return bench.counter_changes(before);
  }
  // The task that was started as the `task`th of all is over.
  void over(size_t task, peal_status status = PEAL_STATUS_OK, uint32_t rank = PEAL_NO_RANK) {
    queue::task_over(bench.card(), network.tickets.at(task), status, rank);
    turn();
  }
  // What queues have asked for and completed since the last call.
  std::string log() {
    std::string text = std::exchange(network.log, "");
    for (const auto& [context, entry] : bench.port.take_completions()) {
      text += "completes " + std::to_string(entry.cookie) + " " + status_of(entry) + "\n";
    }
    return text;
  }
  static std::string status_of(const peal_completion& entry) {
    static constexpr const char* kReasons[] = {
#define PEAL_REASON_NAME(value, symbol, name, text) name,
        PEAL_PROGRAM_REASONS(PEAL_REASON_NAME)
#undef PEAL_REASON_NAME
    };
    std::string text = names::status(entry.status);
    if (entry.status == PEAL_STATUS_OK) return text;
    text += " at " + std::to_string(entry.bytes);
    const uint64_t reason = entry.tag & ~uint64_t{PEAL_PROGRAM_ELSEWHERE};
    if (reason != 0) text += std::string(" ") + kReasons[reason];
    if (reason != entry.tag) text += " elsewhere,";
    if (entry.failed_rank != PEAL_NO_RANK) text += " rank " + std::to_string(entry.failed_rank);
    return text;
  }

  Memory data;
  Membership member;
  PlayedNetwork network;
};

}  // namespace peal::test
