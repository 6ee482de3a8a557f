// SPDX-License-Identifier: BSD-2-Clause
// Arbitrary programs on three real cards that talk to each other: sources, descriptors and starts
// are drawn, good ones with a stretch gone wrong here and there, and so are the notices that they
// tell each other. A start ends once and with a status, or is outstanding; DMA stays in registered
// memory (the port watches); and when all hosts have gone, so has everything on the cards.
#include <map>

#include "abi/program.h"
#include "firmware/card_types.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/cluster.h"

namespace peal::test {
namespace {

constexpr uint32_t kRanks = 3;
constexpr uint32_t kCounters = 5;
constexpr uint32_t kNames = 4;
constexpr size_t kMemoryBytes = 3 * CONFIG_MTU_BYTES;
constexpr size_t kProgramBytes = 64 + 16 * sizeof(peal_descriptor);
constexpr TimeNs kWhile = 300'000;
constexpr TimeNs kLong = 60'000'000'000;
constexpr int kEventsMax = 60;

BenchOptions with_tables() {
  BenchOptions options;
  options.tables = true;
  return options;
}

// A program that a card has, as its host knows it.
struct Known {
  uint32_t handle = 0;
  Memory memory;
  uint32_t count = 0;
  uint64_t next = 0;  // iteration
};

class ProgramFuzz {
 public:
  explicit ProgramFuzz(FuzzInput& input) : input_(input), cluster_(kRanks, with_tables()) {
    cluster_.scribble_at_completion = false;
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      cluster_.bench(rank).port.log_dma = false;
      memory_[rank] = cluster_.bench(rank).add_memory("memory", kMemoryBytes);
      read_only_[rank] = cluster_.bench(rank).add_memory("const", 2000, PEAL_ACCESS_READ);
    }
    cluster_.fate = [this](const Frame&) {
      if (!lossy_) return 1u;
      fate_ = fate_ * 1664525 + 1013904223;
      return fate_ >> 28 == 0 ? 0u : fate_ >> 28 == 1 ? 2u : 1u;
    };
  }

  void run() {
    lossy_ = input_.byte() % 4 == 0;
    fate_ = input_.byte();
    for (int i = 0; i < kEventsMax && !input_.empty(); i++) {
      event(input_.byte() % kRanks);
      look();
    }
    leave();
  }

 private:
  void event(uint32_t rank) {
    switch (input_.byte() % 8) {
      case 0:
        cluster_.run_until([] { return false; }, kWhile * (1 + input_.byte() % 8));
        break;
      case 1:
        commit(rank);
        break;
      case 2:
        commit_everywhere();
        break;
      case 3:
        free_one(rank);
        break;
      case 4:
        change(rank);
        break;
      case 5:
        memory_goes(rank);
        break;
      default:
        start(rank, input_.byte() % 4 == 0);
    }
  }

  uint32_t any_counter() {
    const uint32_t drawn = input_.byte() % 32;
    return drawn == 31   ? PEAL_NO_COUNTER
           : drawn == 30 ? input_.take<uint16_t>()
                         : drawn % kCounters;
  }
  uint32_t any_rank() { return input_.byte() % 16 == 0 ? input_.byte() : input_.byte() % kRanks; }

  void own_memory(uint32_t rank, peal_descriptor* made) {
    made->bytes = input_.byte() % 4 == 0 ? input_.below(2 * CONFIG_MTU_BYTES) : input_.byte() % 65;
    if (made->bytes == 0) return;
    made->key = input_.byte() % 8 == 0 ? read_only_[rank].key : memory_[rank].key;
    made->offset = input_.below(input_.byte() % 16 == 0 ? 2 * kMemoryBytes : 500);
  }

  peal_descriptor descriptor(uint32_t rank) {
    peal_descriptor made = {};
    made.opcode = static_cast<uint8_t>(1 + input_.byte() % 5);
    made.done = PEAL_NO_COUNTER;
    switch (made.opcode) {
      case PEAL_PROGRAM_PUT:
        own_memory(rank, &made);
        made.rank = any_rank();
        made.queue = static_cast<uint16_t>(input_.byte() % 3 == 0 ? PEAL_NO_QUEUE : any_name());
        if (made.queue != PEAL_NO_QUEUE) tell(&made);
        if (made.bytes != 0) {
          made.remote_key = memory_[made.rank % kRanks].key;
          made.remote_offset = input_.below(input_.byte() % 16 == 0 ? 2 * kMemoryBytes : 500);
        }
        made.done = static_cast<uint16_t>(any_counter());
        if (input_.byte() % 3 == 0) {
          made.gate = static_cast<uint16_t>(any_counter());
          made.threshold = input_.byte() % 3;
        }
        break;
      case PEAL_PROGRAM_SIGNAL:
        made.rank = any_rank();
        made.queue = any_name();
        tell(&made);
        if (made.rank != rank) made.done = static_cast<uint16_t>(any_counter());
        break;
      case PEAL_PROGRAM_WAIT:
        made.done = 0;
        made.counter = static_cast<uint16_t>(any_counter());
        made.threshold = input_.byte() % 16 == 0 ? input_.take<uint64_t>() : input_.byte() % 3;
        break;
      default:  // messages
        own_memory(rank, &made);
        made.rank = any_rank();
        made.tag = input_.byte() % 2;
        made.done = static_cast<uint16_t>(any_counter());
    }
    if (input_.byte() % 32 == 0) input_.spoil(&made, sizeof(made));
    return made;
  }
  void tell(peal_descriptor* made) {
    made->counter = static_cast<uint16_t>(any_counter());
    made->steps = input_.byte() % 16 == 0 ? input_.take<uint32_t>() : 1 + input_.byte() % 2;
  }
  uint16_t any_name() { return static_cast<uint16_t>(input_.byte() % kNames); }

  // Sources and descriptors, into the program's memory.
  void write(uint32_t rank, const peal_commit_program& request, uint8_t* to) {
    for (uint32_t counter = 0; counter < request.counters && counter < 16; counter++) {
      const uint8_t drawn = input_.byte() % 16;
      const uint32_t source = drawn == 15   ? input_.take<uint32_t>()
                              : drawn >= 12 ? PEAL_ANY_RANK
                                            : drawn % kRanks;
      std::memcpy(to + counter * sizeof(source), &source, sizeof(source));
    }
    to += peal_program_sources_bytes(request.counters);
    for (uint32_t i = 0; i < request.count && i < 16; i++) {
      peal_descriptor made = {};
      if (i + 2 < request.count) {
        made = descriptor(rank);
      } else {
        made.opcode = i + 2 == request.count ? PEAL_PROGRAM_COMPLETE : PEAL_PROGRAM_JUMP;
      }
      std::memcpy(to + i * sizeof(made), &made, sizeof(made));
    }
  }

  void commit(uint32_t rank) {
    if (gone_[rank] || programs_[rank].size() > 6) return;
    CardBench& bench = cluster_.bench(rank);
    peal_commit_program request = {};
    request.member = cluster_.member(rank).handle();
    request.counters = input_.byte() % (kCounters + 1);
    request.count = 2 + input_.byte() % 12;
    request.name = any_name();
    const uint8_t mode = input_.byte();
    request.mode = mode % 2 ? PEAL_PROGRAM_MODE_TASKS : PEAL_PROGRAM_MODE_SESSION;
    if (request.mode == PEAL_PROGRAM_MODE_SESSION)
      request.scheduled = input_.byte() % request.count;
    if (mode / 2 % 4 == 3) request.mode |= PEAL_PROGRAM_TOGETHER;
    if (mode / 8 % 2) request.mode |= PEAL_PROGRAM_POSTED;
    Known made;
    made.memory = bench.add_memory("program", kProgramBytes, PEAL_ACCESS_READ);
    made.count = request.count;
    request.key = made.memory.key;
    write(rank, request, bench.port.bytes(made.memory.region).data());
    if (input_.byte() % 16 == 0) input_.spoil(&request, sizeof(request));
    peal_commit_program_reply reply = {};
    const peal_status status = card_commit_program(bench.card(), bench.context(), request, &reply);
    fuzz_require(status < PEAL_STATUS_COUNT, "a status that is none");
    if (status != PEAL_STATUS_OK) return forget_memory(rank, made.memory);
    made.handle = reply.program;
    programs_[rank].push_back(made);
  }
  void commit_everywhere() {
    for (uint32_t rank = 0; rank < kRanks; rank++) commit(rank);
  }
  void forget_memory(uint32_t rank, const Memory& memory) {
    CardBench& bench = cluster_.bench(rank);
    RegionId region = 0;
    const peal_status status =
        card_unregister_memory(bench.card(), bench.context(), memory.key, &region);
    fuzz_require(status == PEAL_STATUS_OK, "memory of no program is held");
    bench.port.remove_region(region);
  }

  // A bad host writes into a program that is committed.
  void change(uint32_t rank) {
    if (programs_[rank].empty()) return;
    const Known& known = programs_[rank][input_.below(32) % programs_[rank].size()];
    auto& bytes = cluster_.bench(rank).port.bytes(known.memory.region);
    input_.spoil(bytes.data() + input_.below(kProgramBytes - 64), 64);
  }

  void free_one(uint32_t rank) {
    if (gone_[rank]) return;
    CardBench& bench = cluster_.bench(rank);
    if (programs_[rank].empty() || input_.byte() % 8 == 0) {
      (void)card_free_program(bench.card(), bench.context(), input_.take<uint32_t>());
      return;
    }
    const size_t index = input_.below(32) % programs_[rank].size();
    const Known known = programs_[rank][index];
    const peal_status status = card_free_program(bench.card(), bench.context(), known.handle);
    if (status == PEAL_STATUS_BUSY) return;
    programs_[rank].erase(programs_[rank].begin() + static_cast<ptrdiff_t>(index));
    if (status == PEAL_STATUS_OK) forget_memory(rank, known.memory);
  }

  void memory_goes(uint32_t rank) {
    if (gone_[rank] || input_.byte() % 4 != 0) return;
    CardBench& bench = cluster_.bench(rank);
    RegionId region = 0;
    if (card_unregister_memory(bench.card(), bench.context(), memory_[rank].key, &region) !=
        PEAL_STATUS_OK) {
      return;
    }
    bench.port.remove_region(region);
    memory_[rank] = bench.add_memory("memory", kMemoryBytes);
  }

  void start(uint32_t rank, bool everywhere) {
    const uint32_t index = input_.below(32);
    const uint32_t passes = input_.byte() % 8 == 0 ? 0 : 1 + input_.byte() % 4;
    for (uint32_t each = 0; each < kRanks; each++) {
      if ((!everywhere && each != rank) || gone_[each] || programs_[each].empty()) continue;
      Known& known = programs_[each][index % programs_[each].size()];
      peal_submission entry = {};
      entry.operation = PEAL_OPERATION_START;
      entry.member = cluster_.member(each).handle();
      entry.sequence = known.next;
      entry.send_key = known.handle;
      entry.block_bytes = passes;
      if (input_.byte() % 32 == 0) input_.spoil(&entry, sizeof(entry));
      // Thousands of millions of iterations are carried out, if they are asked for.
      if (entry.block_bytes <= 0xffffffffu) entry.block_bytes %= 8;
      entry.cookie = ++last_cookie_;
      pending_[each][entry.cookie] = true;
      const uint64_t before = cluster_.bench(each).counter(PEAL_COUNTER_STARTS);
      cluster_.bench(each).submit(entry);
      if (cluster_.bench(each).counter(PEAL_COUNTER_STARTS) > before) {
        // A start that was spoilt may be another's.
        for (Known& one : programs_[each]) {
          if (one.handle == entry.send_key) one.next += entry.block_bytes;
        }
      }
    }
  }

  void look() {
    cluster_.settle();
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      const auto& completions = cluster_.completions(rank);
      for (size_t& i = seen_[rank]; i < completions.size(); i++) {
        fuzz_require(completions[i].status < PEAL_STATUS_COUNT, "a status that is none");
        fuzz_require(pending_[rank].erase(completions[i].cookie) == 1,
                     "a completion for nothing, or a second one");
      }
      if (gone_[rank]) continue;
      fuzz_require(card_outstanding(cluster_.bench(rank).card(), cluster_.bench(rank).context()) ==
                       pending_[rank].size(),
                   "the card's count of outstanding starts is not ours");
    }
  }

  // The hosts go, one after the other; the cards are empty then.
  void leave() {
    const auto quiet = [this] {
      for (uint32_t rank = 0; rank < kRanks; rank++) {
        CardBench& bench = cluster_.bench(rank);
        if (gone_[rank] && !card_context_quiet(bench.card(), bench.context())) return false;
      }
      return true;
    };
    const uint32_t first = input_.byte() % kRanks;
    for (uint32_t i = 0; i < kRanks; i++) {
      const uint32_t rank = (first + i) % kRanks;
      CardBench& bench = cluster_.bench(rank);
      card_close_context(bench.card(), bench.context(), bench.now);
      gone_[rank] = true;
      // Whoever stays has his starts ended for him.
      if (i == 0) cluster_.run_until([] { return false; }, kWhile);
    }
    fuzz_require(cluster_.run_until(quiet, kLong), "a context of nobody's is never quiet");
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      const Card& card = cluster_.bench(rank).card();
      fuzz_require(card.queues.in_use == 0, "a queue is left");
      fuzz_require(card.p2p.requests_used == 0, "a request is left");
      fuzz_require(card.p2p.connections_used == 0, "a connection is left");
      fuzz_require(card.p2p.services_used == 0, "a service is left");
    }
    const std::string problems = cluster_.problems();
    fuzz_require(problems.empty(), problems);
  }

  FuzzInput& input_;
  Cluster cluster_;
  bool lossy_ = false;
  uint32_t fate_ = 0;
  Memory memory_[kRanks];
  Memory read_only_[kRanks];
  std::vector<Known> programs_[kRanks];
  bool gone_[kRanks] = {};
  uint64_t last_cookie_ = 0;
  std::map<uint64_t, bool> pending_[kRanks];
  size_t seen_[kRanks] = {};
};

}  // namespace
}  // namespace peal::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  peal::test::FuzzInput input(data, bytes);
  peal::test::ProgramFuzz(input).run();
  return 0;
}
