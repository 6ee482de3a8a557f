// SPDX-License-Identifier: BSD-2-Clause
// A checked workload that goes on until it is told to stop (SIGUSR1), or until a member or the card
// is killed under it. Each rank says in one line how it ended;
// kills.py compares that with what it did.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "tests/e2e/rank_support.h"

namespace peal::e2e {
namespace {

volatile sig_atomic_t told_to_stop = 0;

constexpr size_t kSizes[] = {1, 8, 64, 500, 1500, 4096, 9000, 20'000};
constexpr size_t kLargest = 20'000;
constexpr size_t kDepthMax = 4;

struct Slot {
  uint8_t* send = nullptr;
  uint8_t* receive = nullptr;
  peal_request* request = nullptr;
  size_t bytes = 0;  // 0: a barrier
  uint64_t iteration = 0;
};

class Workload {
 public:
  Workload(Job& job, uint32_t groups, size_t depth) : job_(job), depth_(depth) {
    for (uint32_t rank = job.rank % groups; rank < job.size; rank += groups) {
      members_.push_back(rank);
    }
  }

  void open() {
    EXPECT_OK(job_, peal_open(nullptr, &job_.card));
    uint32_t place = 0;
    while (members_[place] != job_.rank) place++;
    EXPECT_OK(job_,
              peal_group_create(job_.card, place, size(), exchange, this, nullptr, &job_.group));
    for (Slot& slot : slots_) {
      slot.send = allocate(job_, kLargest);
      slot.receive = allocate(job_, kLargest * size());
    }
  }

  // Until somebody wants to stop or something has died.
  void run() {
    uint64_t iteration = 0;
    bool stop = false;
    while (!stop && error_ == PEAL_OK) {
      for (size_t i = 0; i < depth_ && error_ == PEAL_OK; i++) post(slots_[i], iteration++);
      for (size_t i = 0; i < depth_; i++) finish(slots_[i]);
      if (error_ == PEAL_OK) stop = agree_to_stop();
    }
  }

  // Says how it ended.
  void close() {
    const peal_error wanted = error_;
    if (wanted != PEAL_OK) {
      peal_request* request = nullptr;
      peal_error later = peal_ibarrier(job_.group, &request);
      if (later == PEAL_OK) later = peal_wait(request);
      EXPECT_TRUE(job_, later == wanted);
      EXPECT_OK(job_, peal_request_free(request));
    }
    EXPECT_ERROR(job_, peal_group_destroy(job_.group), wanted);
    peal_close(job_.card);
    if (wanted == PEAL_ERR_PEER_DEAD) {
      say("dead %u after", members_.at(static_cast<size_t>(failed_rank_)));
    } else {
      say(wanted == PEAL_OK ? "done %u after" : "card-gone %u after", 0);
    }
  }

 private:
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(members_.size()); }

  // All groups are made at once: the exchange of all ranks carries that of each group.
  static int exchange(void* argument, const void* send, void* receive, size_t bytes) {
    const auto* self = static_cast<const Workload*>(argument);
    std::vector<uint8_t> all(bytes * self->job_.size);
    const int failed = peal_oob_exchange(self->job_.oob, send, all.data(), bytes);
    for (size_t i = 0; failed == 0 && i < self->members_.size(); i++) {
      memcpy(static_cast<uint8_t*>(receive) + i * bytes,
             all.data() + size_t{self->members_[i]} * bytes, bytes);
    }
    return failed;
  }

  void post(Slot& slot, uint64_t iteration) {
    slot.iteration = iteration;
    slot.bytes = iteration % 7 == 6 ? 0 : kSizes[iteration * 5 % std::size(kSizes)];
    if (slot.bytes == 0) {
      note(peal_ibarrier(job_.group, &slot.request), slot);
      return;
    }
    fill(slot.send, slot.bytes, job_.rank, iteration);
    memset(slot.receive, 0xee, slot.bytes * size());
    note(peal_iallgather(job_.group, slot.send, slot.receive, slot.bytes, &slot.request), slot);
  }

  void finish(Slot& slot) {
    if (slot.request == nullptr) return;
    const peal_error error = peal_wait(slot.request);
    note(error, slot);
    EXPECT_OK(job_, peal_request_free(slot.request));
    slot.request = nullptr;
    if (error != PEAL_OK || slot.bytes == 0) return;
    for (size_t i = 0; i < members_.size(); i++) {
      EXPECT_TRUE(
          job_, is_filled(slot.receive + i * slot.bytes, slot.bytes, members_[i], slot.iteration));
    }
    checked_++;
  }

  bool agree_to_stop() {
    Slot& slot = slots_[0];
    slot.bytes = 0;  // not a pattern
    slot.send[0] = told_to_stop != 0 ? 1 : 0;
    note(peal_iallgather(job_.group, slot.send, slot.receive, 1, &slot.request), slot);
    finish(slot);
    bool stop = false;
    for (uint32_t i = 0; error_ == PEAL_OK && i < size(); i++) stop = stop || slot.receive[i] != 0;
    return stop;
  }

  // The first error decides how this rank ends; others must agree with it.
  void note(peal_error error, const Slot& slot) {
    if (error == PEAL_OK) return;
    EXPECT_TRUE(job_, error == PEAL_ERR_PEER_DEAD || error == PEAL_ERR_CARD_GONE);
    EXPECT_TRUE(job_, error_ == PEAL_OK || error_ == error);
    error_ = error;
    if (error != PEAL_ERR_PEER_DEAD) return;
    const int rank = slot.request != nullptr ? peal_request_failed_rank(slot.request)
                                             : peal_group_failed_rank(job_.group);
    EXPECT_TRUE(job_, rank >= 0 && static_cast<size_t>(rank) < members_.size());
    if (failed_rank_ < 0) failed_rank_ = rank;
  }

  void say(const char* how, uint32_t rank) const {
    char text[64];
    char line[128];
    snprintf(text, sizeof(text), how, rank);
    const int bytes = snprintf(line, sizeof(line), "rank %u %s %llu\n", job_.rank, text,
                               static_cast<unsigned long long>(checked_));
    EXPECT_TRUE(job_, write(STDOUT_FILENO, line, static_cast<size_t>(bytes)) == bytes);
  }

  Job& job_;
  size_t depth_;
  std::vector<uint32_t> members_;  // ranks of the job
  Slot slots_[kDepthMax];
  uint64_t checked_ = 0;
  peal_error error_ = PEAL_OK;
  int failed_rank_ = -1;  // of the group
};

}  // namespace

// soak GROUPS DEPTH: rank r is in group r modulo GROUPS.
void run_soak(Job& job) {
  signal(SIGUSR1, [](int) { told_to_stop = 1; });
  const auto groups = static_cast<uint32_t>(job.number(0, 1));
  const size_t depth = job.number(1, 1);
  EXPECT_TRUE(job, groups >= 1 && groups <= job.size && depth >= 1 && depth <= kDepthMax);
  Workload workload(job, groups, depth);
  workload.open();
  job.barrier();
  if (job.rank == 0) EXPECT_TRUE(job, write(STDOUT_FILENO, "ready\n", 6) == 6);
  workload.run();
  workload.close();
}

}  // namespace peal::e2e
