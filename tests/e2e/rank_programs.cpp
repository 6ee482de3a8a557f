// SPDX-License-Identifier: BSD-2-Clause
// Programs on real processes: the library's chain broadcast and pairwise all-to-all, written by
// calls of the C API; several starts outstanding, other data each time; what is refused, and by
// which words; a rank that dies, cards that go on while all ranks are stopped.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <random>

#include "hostlib/program_collectives.h"
#include "tests/e2e/rank_support.h"

namespace peal::e2e {
namespace {

using host::Program;

constexpr uint32_t kWindow = 3;
constexpr size_t kStarts = 3;  // of one program at once

// The library's description, by the calls that a user has.
peal_program* written_as(const Job& job, const Program& program) {
  const Program::Shape& shape = program.shape();
  peal_program_params params = {};
  params.struct_bytes = sizeof(params);
  params.flags = shape.mode == PEAL_PROGRAM_MODE_SESSION ? PEAL_PROGRAM_IN_SESSION : 0;
  if (shape.posted) params.flags |= PEAL_PROGRAM_POSTED_PUTS;
  params.scheduled = shape.scheduled;
  params.engine = shape.engine;
  peal_program* made = nullptr;
  EXPECT_OK(job, peal_program_create(shape.rank, shape.ranks, &params, &made));
  uint32_t counter = 0;
  for (const uint32_t source : program.sources()) {
    EXPECT_OK(job, peal_program_counter(made, source, &counter));
  }
  for (const Program::Step& step : program.steps()) {
    const peal_descriptor& what = step.descriptor;
    const peal_program_notice notice = {nullptr, what.counter, what.steps};
    switch (what.opcode) {
      case PEAL_PROGRAM_PUT:
        EXPECT_OK(job,
                  peal_program_put(made, what.rank, step.memory, what.bytes, what.remote_key,
                                   what.remote_offset, step.tells ? &notice : nullptr, what.done));
        if (what.threshold != 0) EXPECT_OK(job, peal_program_gate(made, what.gate, what.threshold));
        break;
      case PEAL_PROGRAM_WAIT:
        EXPECT_OK(job, peal_program_wait(made, what.counter, what.threshold));
        break;
      default:
        EXPECT_TRUE(job, what.opcode == PEAL_PROGRAM_SIGNAL);
        EXPECT_OK(job, peal_program_signal(made, what.rank, &notice, what.done));
    }
  }
  return made;
}

std::vector<Program::Remote> everybodys(const Job& job, uint8_t* memory, size_t bytes) {
  Program::Remote own;
  if (bytes != 0) EXPECT_OK(job, peal_memory_name(job.card, memory, bytes, &own.key, &own.offset));
  std::vector<Program::Remote> all(job.size);
  EXPECT_OK(job,
            static_cast<peal_error>(peal_oob_exchange(job.oob, &own, all.data(), sizeof(own))));
  return all;
}

// A program and its buffers; all ranks draw it alike.
class Collective {
 public:
  Collective(const Job& job, size_t longest)
      : job_(job), send_(allocate(job, longest + 1)), receive_(allocate(job, longest + 1)) {}

  void make(std::mt19937& random, size_t longest) {
    broadcasts_ = random() % 2 == 0;
    root_ = static_cast<uint32_t>(random() % job_.size);
    bytes_ = random() % 8 == 0 ? 0 : random() % (longest + 1);
    if (!broadcasts_) bytes_ /= job_.size;
    const size_t segment = 1 + random() % (longest / 4 + 1);
    const auto remotes = everybodys(job_, receive_, longest);
    const Program written =
        broadcasts_
            ? host::chain_broadcast(job_.rank, job_.size, root_, receive_, bytes_, segment, remotes)
            : host::pairwise_alltoall(job_.rank, job_.size, send_, bytes_, kWindow, remotes);
    program = written_as(job_, written);
    EXPECT_OK(job_, peal_program_check(program, nullptr, 0, nullptr));
    EXPECT_OK(job_, peal_program_commit(job_.group, program));
  }
  void prepare(uint64_t round) {
    round_ = round;
    if (broadcasts_) {
      fill(receive_, bytes_, job_.rank, job_.rank == root_ ? round : ~round);
      return;
    }
    memset(receive_, 0xee, bytes_ * job_.size);
    for (uint32_t to = 0; to < job_.size; to++) {
      fill(send_ + to * bytes_, bytes_, job_.rank * job_.size + to, round);
    }
  }
  [[nodiscard]] bool is_right() const {
    if (broadcasts_) return is_filled(receive_, bytes_, root_, round_);
    for (uint32_t from = 0; from < job_.size; from++) {
      if (!is_filled(receive_ + from * bytes_, bytes_, from * job_.size + job_.rank, round_)) {
        return false;
      }
    }
    return true;
  }

  peal_program* program = nullptr;

 private:
  const Job& job_;
  uint8_t* send_;
  uint8_t* receive_;
  bool broadcasts_ = false;
  uint32_t root_ = 0;
  size_t bytes_ = 0;
  uint64_t round_ = 0;
};

// A number that each iteration hands on to the next rank, and nobody else: after so many iterations
// each rank has that of the rank so many places before it, if each ran once.
class Relay {
 public:
  explicit Relay(const Job& job) : job_(job), memory_(allocate(job, 2 * sizeof(uint64_t))) {
    const auto inboxes = everybodys(job, memory_ + sizeof(uint64_t), sizeof(uint64_t));
    const uint32_t next = (job.rank + 1) % job.size;
    const uint32_t before = (job.rank + job.size - 1) % job.size;
    Program written({.rank = job.rank, .ranks = job.size});
    const uint16_t arrived = written.add_counter(before);
    const uint16_t ready = written.add_counter(next);
    const uint16_t moved = written.add_counter(job.rank);
    const Program::Notice is_ready = {.counter = ready};
    const Program::Notice has_arrived = {.counter = arrived};
    written.signal(before, is_ready);
    written.wait(ready, 1);
    written.put(next, memory_, sizeof(uint64_t), inboxes[next], &has_arrived, moved);
    written.wait(arrived, 1);
    // Out of the inbox only when the own number has left.
    written.wait(moved, 1);
    const auto own = everybodys(job, memory_, sizeof(uint64_t));
    written.put(job.rank, memory_ + sizeof(uint64_t), sizeof(uint64_t), own[job.rank], nullptr);
    program = written_as(job, written);
    set(job.rank);
    EXPECT_OK(job, peal_program_commit(job.group, program));
  }
  [[nodiscard]] uint64_t number() const {
    uint64_t value = 0;
    memcpy(&value, memory_, sizeof(value));
    return value;
  }
  [[nodiscard]] uint64_t after(uint64_t iterations) const {
    return (job_.rank + job_.size - iterations % job_.size) % job_.size;
  }

  peal_program* program = nullptr;

 private:
  void set(uint64_t value) { memcpy(memory_, &value, sizeof(value)); }

  const Job& job_;
  uint8_t* memory_;
};

std::vector<peal_request*> start(const Job& job, peal_program* program, uint32_t iterations,
                                 size_t count) {
  std::vector<peal_request*> requests(count);
  for (peal_request*& request : requests) {
    EXPECT_OK(job, peal_program_start(program, iterations, &request));
  }
  return requests;
}

// As many as the card takes. Where one may end meanwhile nobody knows how many these are.
std::vector<peal_request*> start_deep(const Job& job, peal_program* program, uint32_t iterations) {
  std::vector<peal_request*> requests;
  for (;;) {
    peal_request* request = nullptr;
    const peal_error error = peal_program_start(program, iterations, &request);
    if (error == PEAL_ERR_TOO_MANY) return requests;
    EXPECT_TRUE(job, error == PEAL_OK && request != nullptr);
    requests.push_back(request);
    EXPECT_TRUE(job, requests.size() <= 64);
  }
}

void finish(const Job& job, const std::vector<peal_request*>& requests) {
  EXPECT_OK(job, peal_wait_all(requests.data(), requests.size()));
  for (peal_request* request : requests) EXPECT_OK(job, peal_request_free(request));
}

// The error's text says it.
void expect_words(const Job& job, const char* words) {
  EXPECT_TRUE(job, strstr(peal_last_error_text(), words) != nullptr ||
                       (fprintf(stderr, "\"%s\"\n", peal_last_error_text()), false));
}

// A program of this rank's own: a put to itself, behind `idle` signals.
peal_program* own_put(const Job& job, uint32_t idle, const void* from, size_t bytes, uint32_t key,
                      uint64_t offset) {
  Program written({.rank = job.rank, .ranks = job.size});
  const uint16_t counter = written.add_counter(job.rank);
  for (uint32_t i = 0; i < idle; i++) written.signal(job.rank, {.counter = counter});
  written.put(job.rank, from, bytes, {.key = key, .offset = offset}, nullptr);
  peal_program* program = written_as(job, written);
  EXPECT_OK(job, peal_program_commit(job.group, program));
  return program;
}

peal_error run_once(const Job& job, peal_program* program, int* failed_rank) {
  peal_request* request = nullptr;
  EXPECT_OK(job, peal_program_start(program, 1, &request));
  const peal_error error = peal_wait(request);
  *failed_rank = peal_request_failed_rank(request);
  const std::string text = peal_last_error_text();
  EXPECT_OK(job, peal_request_free(request));
  return error;
}

// What a card finds wrong when it gets there is named: memory that went after the commit.
void memory_that_goes(const Job& job, uint8_t* target) {
  std::vector<uint8_t> own(100, 7);
  peal_memory* registration = nullptr;
  EXPECT_OK(job, peal_register(job.card, own.data(), own.size(), PEAL_READ, &registration));
  uint32_t key = 0;
  uint64_t offset = 0;
  EXPECT_OK(job, peal_memory_name(job.card, target, 100, &key, &offset));
  peal_program* program = own_put(job, 2, own.data(), own.size(), key, offset);
  int failed_rank = 0;
  EXPECT_OK(job, run_once(job, program, &failed_rank));
  EXPECT_TRUE(job, target[99] == 7);
  EXPECT_OK(job, peal_unregister(registration));
  EXPECT_ERROR(job, run_once(job, program, &failed_rank), PEAL_ERR_BAD_PROGRAM);
  expect_words(job, "descriptor 2");
  expect_words(job, "no such memory key");
  EXPECT_OK(job, peal_program_free(program));
}

// Rank 0's memory goes after the commit; each other rank waits for the one before it. All hear
// whose start it was, in each that follows as well.
void a_start_that_fails_elsewhere(const Job& job) {
  std::vector<uint8_t> own(100, 7);
  peal_memory* registration = nullptr;
  EXPECT_OK(job,
            peal_register(job.card, own.data(), own.size(), PEAL_READ | PEAL_WRITE, &registration));
  uint32_t key = 0;
  uint64_t offset = 0;
  EXPECT_OK(job, peal_memory_name(job.card, own.data(), 100, &key, &offset));
  Program written({.rank = job.rank, .ranks = job.size});
  const uint16_t heard = written.add_counter(job.rank > 0 ? job.rank - 1 : 0);
  if (job.rank == 0)
    written.put(0, own.data(), own.size(), {.key = key, .offset = offset}, nullptr);
  if (job.rank > 0) written.wait(heard, 1);
  if (job.rank + 1 < job.size) written.signal(job.rank + 1, {.counter = heard});
  written.signal(job.rank, {.counter = written.add_counter(job.rank)});
  peal_program* program = written_as(job, written);
  EXPECT_OK(job, peal_program_commit(job.group, program));
  int failed_rank = 0;
  EXPECT_OK(job, run_once(job, program, &failed_rank));
  job.barrier();
  if (job.rank == 0) EXPECT_OK(job, peal_unregister(registration));
  job.barrier();
  for (int i = 0; i < 3; i++) {
    EXPECT_ERROR(job, run_once(job, program, &failed_rank), PEAL_ERR_BAD_PROGRAM);
    EXPECT_TRUE(job, failed_rank == (job.rank == 0 ? -1 : 0));
    expect_words(job, "descriptor 0: no such memory key");
    if (job.rank > 0) expect_words(job, "rank 0's start failed");
  }
  EXPECT_OK(job, peal_program_free(program));
  if (job.rank != 0) EXPECT_OK(job, peal_unregister(registration));
}

// What the owner of memory refuses comes back with its rank, and the program goes on.
void remote_memory_that_is_not_there(const Job& job, uint8_t* from) {
  const uint32_t next = (job.rank + 1) % job.size;
  uint32_t key = 0;
  uint64_t offset = 0;
  EXPECT_OK(job, peal_memory_name(job.card, from, 100, &key, &offset));
  Program written({.rank = job.rank, .ranks = job.size});
  written.put(next, from, 100, {.key = key ^ 0x5a5a, .offset = offset}, nullptr);
  peal_program* program = written_as(job, written);
  EXPECT_OK(job, peal_program_commit(job.group, program));
  for (int i = 0; i < 2; i++) {
    int failed_rank = 0;
    EXPECT_ERROR(job, run_once(job, program, &failed_rank), PEAL_ERR_BAD_KEY);
    // Or that whose start, which failed before, ended this one.
    const bool elsewhere = strstr(peal_last_error_text(), "'s start failed") != nullptr;
    EXPECT_TRUE(job, elsewhere || failed_rank == static_cast<int>(next));
    expect_words(job, "descriptor 0");
  }
  EXPECT_OK(job, peal_program_free(program));
}

// Rank 0 tells rank 1 more iterations ahead than a card remembers.
void too_far_ahead(const Job& job) {
  Program written({.rank = job.rank, .ranks = job.size});
  const uint16_t counter = written.add_counter(job.rank == 1 ? 0 : job.rank);
  if (job.rank == 0) written.signal(1, {.counter = counter});
  if (job.rank == 1) written.wait(counter, 1);
  peal_program* program = written_as(job, written);
  EXPECT_OK(job, peal_program_commit(job.group, program));
  peal_request* request = nullptr;
  if (job.rank == 0) {
    EXPECT_OK(job, peal_program_start(program, 100, &request));
    // Rank 1's card says of each that it cannot be carried out: rank 0 may still be in it.
    if (peal_wait(request) != PEAL_OK) expect_words(job, "rank 1's start failed");
    EXPECT_OK(job, peal_request_free(request));
  }
  job.barrier();
  if (job.rank == 1) {
    int failed_rank = -1;
    EXPECT_ERROR(job, run_once(job, program, &failed_rank), PEAL_ERR_BAD_PROGRAM);
    EXPECT_TRUE(job, failed_rank == 0);
    expect_words(job, "too far ahead");
  }
  EXPECT_OK(job, peal_program_free(program));
}

// What a card without that engine says, and that it harms nobody: rank 0 alone names it.
void engine_that_is_not_there(const Job& job) {
  peal_program_params params = {};
  params.struct_bytes = sizeof(params);
  params.engine = job.rank == 0 ? 200 : 0;
  peal_program* program = nullptr;
  EXPECT_OK(job, peal_program_create(job.rank, job.size, &params, &program));
  EXPECT_ERROR(job, peal_program_commit(job.group, program),
               job.rank == 0 ? PEAL_ERR_INVALID_ARGUMENT : PEAL_ERR_PEER_REFUSED);
  expect_words(job, job.rank == 0 ? "no transmit engine 200" : "rank 0");
  EXPECT_OK(job, peal_program_free(program));
}

}  // namespace

// programs-trinary ROUNDS X Y Z: Trinaryx3 broadcasts over a torus of so many ranks, from several
// roots, of several lengths; two starts of each.
void run_programs_trinary(Job& job) {
  constexpr size_t kLongest = 300'000;
  const uint64_t rounds = job.number(0, 6);
  open_all(job);
  uint8_t* memory = allocate(job, kLongest);
  std::vector<peal_named_memory> buffers;
  for (const Program::Remote& each : everybodys(job, memory, kLongest)) {
    buffers.push_back({each.key, 0, each.offset});
  }
  engine_that_is_not_there(job);
  for (uint64_t round = 0; round < rounds; round++) {
    peal_trinary_params params = {};
    params.struct_bytes = sizeof(params);
    for (size_t i = 0; i < 3; i++) params.torus[i] = static_cast<uint32_t>(job.number(1 + i, 1));
    params.root = static_cast<uint32_t>(round * 5 % job.size);
    params.buffer = memory;
    params.bytes = round == 0 ? 0 : kLongest >> (2 * (round % 4));
    params.segment_bytes = 10'000;
    params.buffers = buffers.data();
    peal_program* programs[PEAL_TRINARY_ENGINES] = {};
    EXPECT_OK(job, peal_program_trinary(job.rank, job.size, &params, programs));
    EXPECT_OK(job, peal_program_commit_all(job.group, programs, PEAL_TRINARY_ENGINES));
    for (uint64_t start = 0; start < 2; start++) {
      const uint64_t salt = 2 * round + start;
      fill(memory, params.bytes, params.root, job.rank == params.root ? salt : ~salt);
      std::vector<peal_request*> requests;
      for (peal_program* program : programs) {
        EXPECT_OK(job, peal_program_start(program, 1, &requests.emplace_back()));
      }
      finish(job, requests);
      EXPECT_TRUE(job, is_filled(memory, params.bytes, params.root, salt));
    }
    for (peal_program* program : programs) EXPECT_OK(job, peal_program_free(program));
  }
  close_all(job);
}

// programs-one-engine: where cards have one, three programs for three are refused, and leave
// nothing.
void run_programs_one_engine(Job& job) {
  open_all(job);
  engine_that_is_not_there(job);
  uint8_t* memory = allocate(job, 1000);
  std::vector<peal_named_memory> buffers;
  for (const Program::Remote& each : everybodys(job, memory, 1000)) {
    buffers.push_back({each.key, 0, each.offset});
  }
  peal_trinary_params params = {};
  params.struct_bytes = sizeof(params);
  params.torus[0] = params.torus[1] = params.torus[2] = 2;
  params.buffer = memory;
  params.bytes = 1000;
  params.segment_bytes = 100;
  params.buffers = buffers.data();
  peal_program* programs[PEAL_TRINARY_ENGINES] = {};
  EXPECT_OK(job, peal_program_trinary(job.rank, job.size, &params, programs));
  for (int i = 0; i < 2; i++) {
    EXPECT_ERROR(job, peal_program_commit_all(job.group, programs, PEAL_TRINARY_ENGINES),
                 PEAL_ERR_INVALID_ARGUMENT);
    expect_words(job, "program 1 of 3: the card has no transmit engine 1");
  }
  for (peal_program* program : programs) EXPECT_OK(job, peal_program_free(program));
  const Relay relay(job);
  finish(job, start_deep(job, relay.program, 3));
  EXPECT_OK(job, peal_program_free(relay.program));
  close_all(job);
}

// programs ROUNDS LONGEST SEED: that many rounds of several starts of each of four collectives, and
// one of these is another afterwards.
void run_programs(Job& job) {
  constexpr size_t kCollectives = 4;
  const uint64_t rounds = job.number(0, 30);
  const size_t longest = job.number(1, 20'000);
  std::mt19937 random(static_cast<uint32_t>(job.number(2, 1)));
  std::mt19937 own(static_cast<uint32_t>(job.number(2, 1) * 1000 + job.rank));
  open_all(job);
  const Relay relay(job);
  uint64_t relayed = 0;
  std::vector<Collective> all;
  for (size_t i = 0; i < kCollectives; i++) {
    all.emplace_back(job, longest);
    all.back().make(random, longest);
  }
  for (uint64_t round = 0; round < rounds; round++) {
    // What has nobody to wait for may not begin again by itself.
    const auto iterations = static_cast<uint32_t>(job.size == 1 ? 1 : 1 + round % 3);
    for (Collective& each : all) each.prepare(round);
    std::vector<size_t> order = {0, 0, 1, 1, 2, 2, 3, 3, 4};
    std::shuffle(order.begin(), order.end(), own);
    std::vector<peal_request*> requests;
    for (const size_t index : order) {
      peal_program* program = index == kCollectives ? relay.program : all[index].program;
      EXPECT_OK(job, peal_program_start(program, iterations, &requests.emplace_back()));
    }
    relayed += iterations;
    finish(job, requests);
    for (const Collective& each : all) EXPECT_TRUE(job, each.is_right());
    EXPECT_TRUE(job, relay.number() == relay.after(relayed));
    Collective& other = all[random() % kCollectives];
    EXPECT_OK(job, peal_program_free(other.program));
    other.make(random, longest);
  }
  for (const Collective& each : all) EXPECT_OK(job, peal_program_free(each.program));
  EXPECT_OK(job, peal_program_free(relay.program));
  close_all(job);
}

// programs-bad: each kind of what is wrong has its words, and harms nobody else.
void run_programs_bad(Job& job) {
  open_all(job);
  uint8_t* memory = allocate(job, 4096);
  peal_program* program = nullptr;
  // The library finds it before any card does; the others are told whose it is.
  EXPECT_OK(job, peal_program_create(job.rank, job.size, nullptr, &program));
  EXPECT_OK(job, peal_program_put(program, job.rank, memory, 8, 1, 0, nullptr, PEAL_NO_COUNT));
  if (job.rank == 1) EXPECT_OK(job, peal_program_wait(program, 5, 1));
  EXPECT_ERROR(job, peal_program_commit(job.group, program),
               job.rank == 1 ? PEAL_ERR_BAD_PROGRAM : PEAL_ERR_PEER_REFUSED);
  expect_words(job, job.rank == 1 ? "descriptor 1 of 4: no such counter" : "rank 1");
  EXPECT_OK(job, peal_program_free(program));
  // Of memory that is not registered there is nothing to commit.
  std::vector<uint8_t> unknown(8);
  EXPECT_OK(job, peal_program_create(job.rank, job.size, nullptr, &program));
  EXPECT_OK(job, peal_program_put(program, job.rank, job.rank == 0 ? unknown.data() : memory, 8, 1,
                                  0, nullptr, PEAL_NO_COUNT));
  EXPECT_ERROR(job, peal_program_commit(job.group, program),
               job.rank == 0 ? PEAL_ERR_NOT_REGISTERED : PEAL_ERR_PEER_REFUSED);
  EXPECT_OK(job, peal_program_free(program));
  memory_that_goes(job, memory);
  a_start_that_fails_elsewhere(job);
  remote_memory_that_is_not_there(job, memory);
  too_far_ahead(job);
  const Relay relay(job);
  finish(job, start(job, relay.program, 3, kStarts));
  EXPECT_OK(job, peal_program_free(relay.program));
  close_all(job);
}

// programs-free: what may be given back when, and what that leaves.
void run_programs_free(Job& job) {
  open_all(job);
  const Relay relay(job);
  const std::vector<peal_request*> requests =
      job.rank == 0 ? start_deep(job, relay.program, 2) : std::vector<peal_request*>();
  const uint64_t mine = requests.size();
  if (job.rank == 0) {
    EXPECT_ERROR(job, peal_program_free(relay.program), PEAL_ERR_BUSY);
    EXPECT_ERROR(job, peal_program_wait(relay.program, 0, 1), PEAL_ERR_BUSY);
    EXPECT_ERROR(job, peal_program_commit(job.group, relay.program), PEAL_ERR_BUSY);
  } else {
    peal_program* another = nullptr;
    EXPECT_OK(job, peal_program_create(job.rank, job.size, nullptr, &another));
    EXPECT_ERROR(job, peal_program_commit(job.group, another), PEAL_ERR_PEER_REFUSED);
    expect_words(job, "rank 0");
    EXPECT_OK(job, peal_program_free(another));
  }
  std::vector<uint64_t> of_all(job.size);
  EXPECT_OK(
      job, static_cast<peal_error>(peal_oob_exchange(job.oob, &mine, of_all.data(), sizeof(mine))));
  const uint64_t deep = of_all[0];
  if (job.rank != 0) finish(job, start(job, relay.program, 2, deep));
  if (job.rank == 0) {
    EXPECT_OK(job, peal_wait_all(requests.data(), requests.size()));
    EXPECT_TRUE(job, relay.number() == relay.after(2 * deep));
  }
  job.barrier();
  EXPECT_OK(job, peal_program_free(relay.program));
  // A request that its program has outlived still says how it ended.
  for (peal_request* request : requests) {
    EXPECT_OK(job, peal_wait(request));
    EXPECT_OK(job, peal_request_free(request));
  }
  // A group takes its programs with it: they may only be freed then.
  const Relay other(job);
  const Relay third(job);
  finish(job, start(job, other.program, 1, kStarts));
  EXPECT_OK(job, peal_group_destroy(job.group));
  peal_request* request = nullptr;
  EXPECT_ERROR(job, peal_program_start(other.program, 1, &request), PEAL_ERR_CLOSED);
  EXPECT_OK(job, peal_program_free(other.program));
  job.barrier();
  peal_close(job.card);
  // And so does a context that is closed.
  EXPECT_OK(job, peal_program_free(third.program));
}

// programs-many COUNT: more than a card has places for, one after the other; and as many as it has.
void run_programs_many(Job& job) {
  const uint64_t count = job.number(0, 400);
  open_all(job);
  uint8_t* memory = allocate(job, 4096);
  uint32_t key = 0;
  uint64_t offset = 0;
  EXPECT_OK(job, peal_memory_name(job.card, memory, 4096, &key, &offset));
  for (uint64_t i = 0; i < count; i++) {
    memory[0] = static_cast<uint8_t>(i + 1);
    peal_program* program = own_put(job, 0, memory, 1, key, offset + 1);
    int failed_rank = 0;
    EXPECT_OK(job, run_once(job, program, &failed_rank));
    EXPECT_TRUE(job, memory[1] == static_cast<uint8_t>(i + 1));
    EXPECT_OK(job, peal_program_free(program));
  }
  for (int again = 0; again < 3; again++) {
    std::vector<peal_program*> programs;
    peal_error error = PEAL_OK;
    while (error == PEAL_OK) {
      EXPECT_OK(job, peal_program_create(job.rank, job.size, nullptr, &programs.emplace_back()));
      EXPECT_OK(job, peal_program_put(programs.back(), job.rank, memory, 1, key, offset + 1,
                                      nullptr, PEAL_NO_COUNT));
      error = peal_program_commit(job.group, programs.back());
      EXPECT_TRUE(job, programs.size() <= 5000);
    }
    EXPECT_TRUE(job, error == PEAL_ERR_NO_RESOURCES || error == PEAL_ERR_PEER_REFUSED);
    EXPECT_TRUE(job, programs.size() > 2);
    for (peal_program* program : programs) EXPECT_OK(job, peal_program_free(program));
    job.barrier();
  }
  close_all(job);
}

// programs-death commit|start|wait VICTIM
void run_programs_death(Job& job) {
  const std::string& where = job.arguments.at(0);
  const auto victim = static_cast<uint32_t>(job.number(1, 1));
  open_all(job);
  Collective broadcast(job, 200'000);
  Collective other(job, 200'000);
  std::mt19937 random(3);
  if (where == "commit") {
    const auto remotes = everybodys(job, allocate(job, 100), 100);
    if (job.rank == victim) raise(SIGKILL);
    const Program written =
        host::pairwise_alltoall(job.rank, job.size, nullptr, 0, kWindow, remotes);
    peal_program* program = written_as(job, written);
    EXPECT_ERROR(job, peal_program_commit(job.group, program), PEAL_ERR_PEER_DEAD);
    EXPECT_OK(job, peal_program_free(program));
  } else {
    broadcast.make(random, 200'000);
    other.make(random, 200'000);
    const Relay relay(job);
    finish(job, start(job, relay.program, 3, kStarts));
    std::vector<peal_request*> requests;
    if (where == "wait" && job.rank != victim) requests = start_deep(job, relay.program, 1000);
    job.barrier();
    if (job.rank == victim) raise(SIGKILL);
    // Where the death is known already each ends at once, and makes room for the next.
    for (int i = 0; i < 3 && where == "start"; i++) {
      EXPECT_OK(job, peal_program_start(relay.program, 1000, &requests.emplace_back()));
    }
    for (peal_request* request : requests) {
      EXPECT_ERROR(job, peal_wait(request), PEAL_ERR_PEER_DEAD);
      EXPECT_TRUE(job, peal_request_failed_rank(request) == static_cast<int>(victim));
      EXPECT_OK(job, peal_request_free(request));
    }
    int failed_rank = -1;
    EXPECT_ERROR(job, run_once(job, relay.program, &failed_rank), PEAL_ERR_PEER_DEAD);
    EXPECT_TRUE(job, failed_rank == static_cast<int>(victim));
    for (peal_program* each : {broadcast.program, other.program, relay.program}) {
      EXPECT_OK(job, peal_program_free(each));
    }
  }
  printf("rank %u was told that rank %u is dead\n", job.rank, victim);
  peal_close(job.card);
}

// programs-stopped ITERATIONS: as many starts as there may be, and then no host.
void run_programs_stopped(Job& job) {
  const auto iterations = static_cast<uint32_t>(job.number(0, 50));
  open_all(job);
  const Relay relay(job);
  Collective collective(job, 30'000);
  std::mt19937 random(7);
  collective.make(random, 30'000);
  collective.prepare(1);
  job.wait_for_script();  // it holds the cards from here on
  const auto relays = start_deep(job, relay.program, iterations);
  const auto others = start_deep(job, collective.program, iterations);
  EXPECT_TRUE(job, relay.number() == job.rank);  // no card, no iteration
  raise(SIGSTOP);
  for (peal_request* request : others) {
    int done = 0;
    EXPECT_OK(job, peal_test(request, &done));
    EXPECT_TRUE(job, done == 1);  // completed while we were stopped
  }
  finish(job, others);
  finish(job, relays);
  EXPECT_TRUE(job, relay.number() == relay.after(uint64_t{iterations} * relays.size()));
  EXPECT_TRUE(job, collective.is_right());
  EXPECT_OK(job, peal_program_free(relay.program));
  EXPECT_OK(job, peal_program_free(collective.program));
  close_all(job);
}

}  // namespace peal::e2e
