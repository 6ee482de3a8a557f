// SPDX-License-Identifier: BSD-2-Clause
// What host-cost counts: calls of libpeal, again and again, on the unit tests' card in this
// process, which answers each at once. Nobody waits and nothing runs beside it, so that the same
// instructions are executed on any machine. callgrind looks only while counted() runs.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "hostlib/handles.h"
#include "tests/unit/hostlib/fake_card.h"

namespace {

using peal::host::FakeCard;

constexpr uint32_t kRanks = 8;
constexpr size_t kBlock = 1024;
constexpr int kFirst = 100;  // brings what is made once

[[noreturn]] void stop(const char* what) {
  fprintf(stderr, "host-cost: %s: %s\n", what, peal_last_error_text());
  exit(1);
}

void check(peal_error error, const char* what) {
  if (error != PEAL_OK) stop(what);
}

// Rank 0 of a group whose other ranks only lend their records.
class Job {
 public:
  Job() {
    std::array<peal_group_builder*, kRanks> builders = {};
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      contexts_[rank] = peal::host::open_fake(&cards_[rank]);
      check(peal_group_begin(contexts_[rank], rank, kRanks, nullptr, &builders[rank]), "group");
    }
    for (int exchange = 0; exchange < 2; exchange++) {
      const std::vector<uint8_t> records = peal::host::records_of(builders);
      for (uint32_t rank = 0; rank < kRanks; rank++) {
        peal_group* made = nullptr;
        check(peal_group_advance(builders[rank], records.data(), &made), "group");
        if (rank == 0) group_ = made;
      }
    }
    for (uint8_t*& side : memory_) {
      void* allocated = nullptr;
      check(peal_alloc(contexts_[0], kSideBytes, &allocated), "memory");
      side = static_cast<uint8_t*>(allocated);
    }
    bytes_.fill(kBlock);
    for (uint32_t rank = 0; rank < kRanks; rank++) offsets_[rank] = (kRanks - 1 - rank) * kBlock;
    // The exchange of a persistent request's own group is nothing where that has one rank, and a
    // start does not look at how many there are.
    peal_group* alone = peal::host::make_fake_group(contexts_[0]);
    check(peal_allgather_init(alone, send(0), receive(0), kBlock, &persistent_),
          "peal_allgather_init");
    // As if the card had taken a program for it.
    check(peal_allgather_init(alone, send(0), receive(0), kBlock, &program_),
          "peal_allgather_init");
    peal::host::Persistent& persistent = *program_->persistent;
    check(peal_program_create(0, 1, nullptr, &persistent.programs[0]), "peal_program_create");
    persistent.posting = {};
    persistent.posting.operation = PEAL_OPERATION_START;
    persistent.posting.block_bytes = 1;
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() {
    for (peal_context* context : contexts_) peal_close(context);
  }

  peal_group* group() { return group_; }
  peal_request* persistent() { return persistent_; }
  peal_request* program() { return program_; }
  // Two places in either side's memory, for calls that go from one to the other and back.
  const uint8_t* send(int i) { return memory_[0] + place(i); }
  uint8_t* receive(int i) { return memory_[1] + place(i); }
  const size_t* bytes() { return bytes_.data(); }
  // Of another shape each time.
  const size_t* bytes(int i) {
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      changing_[rank] = kBlock - 8 * ((rank + static_cast<uint32_t>(i)) % 16);
    }
    return changing_.data();
  }
  const size_t* offsets() { return offsets_.data(); }

  // The card carries out what it finds.
  void answer() {
    peal_submission entry = {};
    if (!cards_[0].take(&entry)) stop("nothing was posted");
    cards_[0].complete(entry);
  }

 private:
  static constexpr size_t kPlaceBytes = 2 * kRanks * kBlock;
  static constexpr size_t kSideBytes = 2 * kPlaceBytes;
  static size_t place(int i) { return static_cast<size_t>(i & 1) * kPlaceBytes; }

  std::array<FakeCard, kRanks> cards_;
  std::array<peal_context*, kRanks> contexts_ = {};
  std::array<uint8_t*, 2> memory_ = {};
  std::array<size_t, kRanks> bytes_ = {};
  std::array<size_t, kRanks> changing_ = {};
  std::array<size_t, kRanks> offsets_ = {};
  peal_group* group_ = nullptr;
  peal_request* persistent_ = nullptr;
  peal_request* program_ = nullptr;
};

struct Scenario {
  const char* name;
  peal_error (*begin)(Job& job, int i, peal_request** request);
};

constexpr Scenario kScenarios[] = {
    {"barrier",
     [](Job& job, int, peal_request** request) { return peal_ibarrier(job.group(), request); }},
    {"broadcast",
     [](Job& job, int, peal_request** request) {
       return peal_ibcast(job.group(), job.receive(0), kBlock, 0, request);
     }},
    {"allgather",
     [](Job& job, int, peal_request** request) {
       return peal_iallgather(job.group(), job.send(0), job.receive(0), kBlock, request);
     }},
    {"allgather-changing",
     [](Job& job, int i, peal_request** request) {
       const size_t bytes = kBlock << (i & 1);
       return peal_iallgather(job.group(), job.send(i), job.receive(i), bytes, request);
     }},
    {"alltoall",
     [](Job& job, int, peal_request** request) {
       return peal_ialltoall(job.group(), job.send(0), job.receive(0), kBlock, request);
     }},
    {"allgatherv",
     [](Job& job, int, peal_request** request) {
       return peal_iallgatherv(job.group(), job.send(0), job.receive(0), job.bytes(), nullptr,
                               request);
     }},
    {"alltoallv",
     [](Job& job, int, peal_request** request) {
       return peal_ialltoallv(job.group(), job.send(0), job.bytes(), nullptr, job.receive(0),
                              job.bytes(), nullptr, request);
     }},
    {"allgatherv-offsets",
     [](Job& job, int, peal_request** request) {
       return peal_iallgatherv(job.group(), job.send(0), job.receive(0), job.bytes(), job.offsets(),
                               request);
     }},
    {"alltoallv-offsets",
     [](Job& job, int, peal_request** request) {
       return peal_ialltoallv(job.group(), job.send(0), job.bytes(), job.offsets(), job.receive(0),
                              job.bytes(), job.offsets(), request);
     }},
    {"allgatherv-changing",
     [](Job& job, int i, peal_request** request) {
       return peal_iallgatherv(job.group(), job.send(0), job.receive(0), job.bytes(i), nullptr,
                               request);
     }},
    {"alltoallv-changing",
     [](Job& job, int i, peal_request** request) {
       const size_t* const bytes = job.bytes(i);
       return peal_ialltoallv(job.group(), job.send(0), bytes, nullptr, job.receive(0), bytes,
                              nullptr, request);
     }},
    {"allgatherv-changing-offsets",
     [](Job& job, int i, peal_request** request) {
       return peal_iallgatherv(job.group(), job.send(0), job.receive(0), job.bytes(i),
                               job.offsets(), request);
     }},
    {"alltoallv-changing-offsets",
     [](Job& job, int i, peal_request** request) {
       const size_t* const bytes = job.bytes(i);
       return peal_ialltoallv(job.group(), job.send(0), bytes, job.offsets(), job.receive(0), bytes,
                              job.offsets(), request);
     }},
    {"persistent",
     [](Job& job, int, peal_request** request) {
       *request = job.persistent();
       return peal_start(*request);
     }},
    {"program",
     [](Job& job, int, peal_request** request) {
       *request = job.program();
       return peal_start(*request);
     }},
};

// One operation, and what a program does with it. A test each time: nothing yet.
void operation(Job& job, const Scenario& scenario, int i) {
  peal_request* request = nullptr;
  check(scenario.begin(job, i, &request), scenario.name);
  int done = 0;
  check(peal_test(request, &done), "peal_test");
  if (done != 0) stop("complete before the card had seen it");
  job.answer();
  check(peal_wait(request), "peal_wait");
  const bool stays = request == job.persistent() || request == job.program();
  if (!stays) check(peal_request_free(request), "peal_request_free");
}

[[gnu::noinline]] void counted(Job& job, const Scenario& scenario, int operations) {
  for (int i = 0; i < operations; i++) operation(job, scenario, i);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: host-cost-calls SCENARIO OPERATIONS\n");
    return 2;
  }
  for (const Scenario& scenario : kScenarios) {
    if (strcmp(scenario.name, argv[1]) != 0) continue;
    Job job;
    for (int i = 0; i < kFirst; i++) operation(job, scenario, i);
    counted(job, scenario, atoi(argv[2]));
    return 0;
  }
  fprintf(stderr, "host-cost: no scenario '%s'\n", argv[1]);
  return 2;
}
