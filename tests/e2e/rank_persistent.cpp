// SPDX-License-Identifier: BSD-2-Clause
// Persistent requests: all six kinds, several at once, started in an order that each rank draws for
// itself, with other data each time; ranks that disagree, and one that dies.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <random>
#include <string_view>

#include "tests/e2e/rank_blocks.h"
#include "tests/e2e/rank_support.h"

namespace peal::e2e {
namespace {

enum class Kind : uint8_t { kBarrier, kBroadcast, kAllgather, kAlltoall, kAllgatherv, kAlltoallv };
constexpr uint32_t kKinds = 6;

// The name of the boot of the kernel that a rank runs under.
using Machine = std::array<char, 36>;

Machine this_machine(const Job& job) {
  Machine boot = {};
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  EXPECT_TRUE(job, file.read(boot.data(), boot.size()).good());
  return boot;
}

// How often each rank has prepared each request: what a barrier is about. In memory that all ranks
// of a machine map, so that they need not wait for each other to tell it; those of another machine
// are not seen.
class Preparations {
 public:
  static constexpr size_t kRequestsMax = 16;

  explicit Preparations(const Job& job) : job_(job), machines_(job.size) {
    const Machine here = this_machine(job);
    exchange(here, machines_);
    const auto first = static_cast<uint32_t>(std::find(machines_.begin(), machines_.end(), here) -
                                             machines_.begin());
    const size_t bytes = job.size * kRequestsMax * sizeof(uint64_t);
    struct Place {
      int process, fd;
    } own = {getpid(), -1};
    if (job.rank == first) {
      own.fd = memfd_create("preparations", MFD_CLOEXEC);
      EXPECT_TRUE(job, own.fd >= 0 && ftruncate(own.fd, static_cast<off_t>(bytes)) == 0);
    }
    std::vector<Place> all(job.size);
    exchange(own, all);
    const std::string path =
        "/proc/" + std::to_string(all[first].process) + "/fd/" + std::to_string(all[first].fd);
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_TRUE(job, fd >= 0);
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    EXPECT_TRUE(job, memory != MAP_FAILED);
    close(fd);
    counts_ = static_cast<uint64_t*>(memory);
    job.barrier();
  }

  void add(size_t request) const { count(request, job_.rank)++; }
  // All ranks of this machine have prepared it at least as often as this one.
  [[nodiscard]] bool all_are_there(size_t request) const {
    for (uint32_t rank = 0; rank < job_.size; rank++) {
      const bool here = machines_[rank] == machines_[job_.rank];
      if (here && count(request, rank) < count(request, job_.rank)) return false;
    }
    return true;
  }

 private:
  template <typename Each>
  void exchange(const Each& own, std::vector<Each>& all) const {
    EXPECT_OK(job_,
              static_cast<peal_error>(peal_oob_exchange(job_.oob, &own, all.data(), sizeof(own))));
  }
  [[nodiscard]] std::atomic_ref<uint64_t> count(size_t request, uint32_t rank) const {
    return std::atomic_ref(counts_[rank * kRequestsMax + request]);
  }
  const Job& job_;
  std::vector<Machine> machines_;  // of the ranks
  uint64_t* counts_ = nullptr;
};

// A persistent request and its buffers; all ranks draw it alike.
class Repeated {
 public:
  Repeated(const Job& job, const Preparations& preparations, size_t index, size_t longest)
      : job_(job),
        preparations_(preparations),
        index_(index),
        side_bytes_(side_bytes_max(job, longest)),
        send_(allocate(job, side_bytes_)),
        receive_(allocate(job, side_bytes_)) {}

  void make(std::mt19937& random, size_t longest) {
    kind_ = static_cast<Kind>(random() % kKinds);
    bytes_ = random() % 3 == 0 ? random() % (longest + 1) : random() % 300;
    root_ = static_cast<uint32_t>(random() % job_.size);
    const bool in_place = random() % 2 == 0;
    const Shape shape = kShapes[random() % 4];
    switch (kind_) {
      case Kind::kBarrier:
        EXPECT_OK(job_, peal_barrier_init(job_.group, &request));
        break;
      case Kind::kBroadcast:
        EXPECT_OK(job_, peal_bcast_init(job_.group, receive_, bytes_, root_, &request));
        break;
      case Kind::kAllgather:
        EXPECT_OK(job_, peal_allgather_init(job_.group, send_, receive_, bytes_, &request));
        break;
      case Kind::kAlltoall:
        EXPECT_OK(job_, peal_alltoall_init(job_.group, send_, receive_, bytes_, &request));
        break;
      default:
        blocks_ = draw_call(job_, random, kind_ == Kind::kAlltoallv, in_place, shape, bytes_);
        EXPECT_OK(job_, init_blocks(job_, blocks_, send_, receive_, &request));
    }
  }

  void prepare(uint64_t iteration) {
    iteration_ = iteration;
    preparations_.add(index_);
    switch (kind_) {
      case Kind::kBarrier:
        break;
      case Kind::kBroadcast:
        fill(receive_, bytes_, job_.rank, job_.rank == root_ ? iteration_ : ~iteration_);
        break;
      case Kind::kAllgather:
        fill(send_, bytes_, job_.rank, iteration_);
        break;
      case Kind::kAlltoall:
        for (uint32_t r = 0; r < job_.size; r++) {
          fill(send_ + r * bytes_, bytes_, job_.rank * job_.size + r, iteration_);
        }
        break;
      default:
        fill_blocks(job_, blocks_, send_, receive_, side_bytes_, iteration_);
    }
  }

  [[nodiscard]] bool is_right() const {
    switch (kind_) {
      case Kind::kBarrier:
        return preparations_.all_are_there(index_);
      case Kind::kBroadcast:
        return is_filled(receive_, bytes_, root_, iteration_);
      case Kind::kAllgather:
        return is_gathered(job_, receive_, bytes_, iteration_);
      case Kind::kAlltoall:
        for (uint32_t r = 0; r < job_.size; r++) {
          if (!is_filled(receive_ + r * bytes_, bytes_, r * job_.size + job_.rank, iteration_)) {
            return false;
          }
        }
        return true;
      default:
        return blocks_are_right(job_, blocks_, receive_, side_bytes_, iteration_);
    }
  }

  peal_request* request = nullptr;

 private:
  const Job& job_;
  const Preparations& preparations_;
  size_t index_;
  size_t side_bytes_;
  uint8_t* send_;
  uint8_t* receive_;
  Kind kind_ = Kind::kBarrier;
  size_t bytes_ = 0;
  uint32_t root_ = 0;
  uint64_t iteration_ = 0;
  BlockCall blocks_;
};

peal_statistics statistics(const Job& job) {
  peal_statistics read = {};
  read.struct_bytes = sizeof(read);
  EXPECT_OK(job, peal_read_statistics(job.card, &read));
  return read;
}

uint64_t counter(const Job& job, std::string_view name) {
  std::vector<uint64_t> values(512);
  size_t count = 0;
  EXPECT_OK(job, peal_counters(job.card, values.data(), values.size(), &count));
  for (size_t i = 0; i < std::min(count, values.size()); i++) {
    if (peal_counter_name(i) != nullptr && name == peal_counter_name(i)) return values[i];
  }
  fail(job, __FILE__, __LINE__, "no counter " + std::string(name));
}

// Data and signals of the card's own collectives.
uint64_t collective_packets(const Job& job) {
  return counter(job, "sent_data") + counter(job, "sent_signal");
}

void finish(const Job& job, std::vector<Repeated>& all, std::mt19937& own) {
  std::vector<peal_request*> pending;
  for (const Repeated& each : all) pending.push_back(each.request);
  if (own() % 2 == 0) {
    EXPECT_OK(job, peal_wait_all(pending.data(), pending.size()));
  }
  for (size_t index = 0; index != PEAL_NO_INDEX;) {
    EXPECT_OK(job, peal_wait_any(pending.data(), pending.size(), UINT64_MAX, &index));
    if (index != PEAL_NO_INDEX) EXPECT_TRUE(job, all[index].is_right());
  }
  for (const Repeated& each : all) EXPECT_TRUE(job, each.is_right());
}

}  // namespace

// persistent COUNT LONGEST SEED KIND: that many rounds in which all of eight requests are started,
// and one of them is another afterwards.
void run_persistent(Job& job) {
  constexpr size_t kRequests = 8;
  static_assert(kRequests <= Preparations::kRequestsMax);
  const uint64_t count = job.number(0, 100);
  const size_t longest = job.number(1, 20'000);
  std::mt19937 random(static_cast<uint32_t>(job.number(2, 1)));
  std::mt19937 own(static_cast<uint32_t>(job.number(2, 1) * 1000 + job.rank));
  open_all(job);
  const Preparations preparations(job);
  std::vector<Repeated> all;
  for (size_t i = 0; i < kRequests; i++) {
    all.emplace_back(job, preparations, i, longest);
    all.back().make(random, longest);
  }
  const peal_statistics made = statistics(job);
  const std::string kind = job.arguments.size() > 3 ? job.arguments[3] : "";
  if (kind == "programs") EXPECT_TRUE(job, made.programs == kRequests && made.ordinary == 0);
  if (kind == "ordinary") EXPECT_TRUE(job, made.programs == 0 && made.ordinary == kRequests);
  if (kind == "both") EXPECT_TRUE(job, made.programs > 0 && made.ordinary > 0);
  for (uint64_t round = 0; round < count; round++) {
    std::vector<peal_request*> order;
    for (size_t i = 0; i < kRequests; i++) {
      all[i].prepare(round * kRequests + i);
      order.push_back(all[i].request);
    }
    std::shuffle(order.begin(), order.end(), own);
    EXPECT_OK(job, peal_startall(order.data(), kRequests / 2));
    if (round % 3 == 0) EXPECT_OK(job, peal_barrier(job.group));
    for (size_t i = kRequests / 2; i < kRequests; i++) EXPECT_OK(job, peal_start(order[i]));
    finish(job, all, own);
    Repeated& other = all[random() % kRequests];
    EXPECT_OK(job, peal_request_free(other.request));
    other.make(random, longest);
  }
  // Their own groups are there still when the group is not.
  EXPECT_OK(job, peal_group_destroy(job.group));
  std::vector<peal_request*> order;
  for (size_t i = 0; i < kRequests; i++) {
    all[i].prepare(i);
    order.push_back(all[i].request);
  }
  EXPECT_OK(job, peal_startall(order.data(), kRequests));
  finish(job, all, own);
  for (Repeated& each : all) EXPECT_OK(job, peal_request_free(each.request));
  job.barrier();
  peal_close(job.card);
}

// persistent-descriptors ROUNDS LONGEST: what the cards count of starts, one rank a card: each
// is a start of a program, and of its collectives nothing runs until the last is over.
void run_persistent_descriptors(Job& job) {
  constexpr size_t kRequests = 10;
  static_assert(kRequests <= Preparations::kRequestsMax);
  const uint64_t rounds = job.number(0, 20);
  const size_t longest = job.number(1, 20'000);
  std::mt19937 random(5);
  open_all(job);
  const Preparations preparations(job);
  std::vector<Repeated> all;
  for (size_t i = 0; i < kRequests; i++) {
    all.emplace_back(job, preparations, i, longest);
    all.back().make(random, longest);
  }
  EXPECT_TRUE(job, statistics(job).programs == kRequests);
  // Until what the others needed for their requests has gone as well.
  for (uint64_t before = ~uint64_t{0}; before != collective_packets(job);) {
    before = collective_packets(job);
    job.barrier();
  }
  job.barrier();
  const uint64_t packets = collective_packets(job);
  const uint64_t starts = counter(job, "starts");
  const uint64_t descriptors = counter(job, "descriptors");
  for (uint64_t round = 0; round < rounds; round++) {
    for (Repeated& each : all) {
      each.prepare(round);
      EXPECT_OK(job, peal_start(each.request));
    }
    for (Repeated& each : all) {
      EXPECT_OK(job, peal_wait(each.request));
      EXPECT_TRUE(job, each.is_right());
    }
  }
  EXPECT_TRUE(job, counter(job, "starts") - starts == rounds * kRequests);
  EXPECT_TRUE(job, counter(job, "descriptors") - descriptors > rounds * kRequests * 2);
  EXPECT_TRUE(job, collective_packets(job) == packets);
  job.barrier();
  for (Repeated& each : all) EXPECT_OK(job, peal_request_free(each.request));
  close_all(job);
}

// persistent-disagree: one rank describes something else than the others. All are told when the
// request is made, and the group goes on.
void run_persistent_disagree(Job& job) {
  const bool odd = job.rank == job.size - 1;
  open_all(job);
  uint8_t* memory = allocate(job, 4096);
  for (int i = 0; i < 10; i++) {
    peal_request* request = nullptr;
    EXPECT_ERROR(job, peal_bcast_init(job.group, memory, odd ? 100 : 200, 0, &request),
                 PEAL_ERR_MISMATCH);
    EXPECT_ERROR(job, peal_bcast_init(job.group, memory, 100, odd ? 1 : 0, &request),
                 PEAL_ERR_MISMATCH);
    EXPECT_ERROR(job,
                 odd ? peal_barrier_init(job.group, &request)
                     : peal_bcast_init(job.group, memory, 0, 0, &request),
                 PEAL_ERR_MISMATCH);
    // What one rank alone cannot do, nobody has.
    EXPECT_ERROR(job, peal_bcast_init(job.group, odd ? nullptr : memory, 100, 0, &request),
                 odd ? PEAL_ERR_INVALID_ARGUMENT : PEAL_ERR_PEER_REFUSED);
    EXPECT_TRUE(job, request == nullptr);
    EXPECT_OK(job, peal_bcast_init(job.group, memory, 100, 0, &request));
    fill(memory, 100, job.rank, static_cast<uint64_t>(i));
    EXPECT_OK(job, peal_start(request));
    EXPECT_OK(job, peal_wait(request));
    EXPECT_TRUE(job, is_filled(memory, 100, 0, static_cast<uint64_t>(i)));
    EXPECT_OK(job, peal_request_free(request));
  }
  close_all(job);
}

// persistent-death init|start|wait VICTIM: the others are inside, or have all behind them and go
// on, when that rank is killed.
void run_persistent_death(Job& job) {
  const std::string& where = job.arguments.at(0);
  const auto victim = static_cast<uint32_t>(job.number(1, 1));
  open_all(job);
  uint8_t* send = allocate(job, 20'000);
  uint8_t* receive = allocate(job, 20'000 * job.size);
  peal_request* request = nullptr;
  const auto make = [&] {
    return peal_alltoall_init(job.group, receive, send, 20'000 / job.size, &request);
  };
  if (where == "init") {
    job.barrier();
    if (job.rank == victim) raise(SIGKILL);
    EXPECT_ERROR(job, make(), PEAL_ERR_PEER_DEAD);
  } else {
    EXPECT_OK(job, make());
    for (int i = 0; i < 3; i++) {
      EXPECT_OK(job, peal_start(request));
      EXPECT_OK(job, peal_wait(request));
    }
    if (where == "wait" && job.rank != victim) EXPECT_OK(job, peal_start(request));
    job.barrier();
    if (job.rank == victim) raise(SIGKILL);
    if (where == "start") EXPECT_OK(job, peal_start(request));
    EXPECT_ERROR(job, peal_wait(request), PEAL_ERR_PEER_DEAD);
    EXPECT_TRUE(job, peal_request_failed_rank(request) == static_cast<int>(victim));
    EXPECT_OK(job, peal_start(request));
    EXPECT_ERROR(job, peal_wait(request), PEAL_ERR_PEER_DEAD);
    EXPECT_OK(job, peal_request_free(request));
  }
  printf("rank %u was told that rank %u is dead\n", job.rank, victim);
  peal_close(job.card);
}

}  // namespace peal::e2e
