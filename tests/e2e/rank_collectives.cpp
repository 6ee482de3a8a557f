// SPDX-License-Identifier: BSD-2-Clause
// Broadcast and all-to-all: every root, many lengths, in place and not; kinds mixed and deep;
// ranks that disagree, and one that dies inside.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <random>
#include <thread>

#include "tests/e2e/rank_blocks.h"
#include "tests/e2e/rank_support.h"

namespace peal::e2e {
namespace {

constexpr size_t kLengths[] = {
    0, 1, 7, 64, 511, 1000, 4096, 9000, 65'536, 100'003, size_t{1} << 20};
// Behind every buffer: nobody may write there.
constexpr size_t kGuardBytes = 64;
constexpr uint8_t kGuard = 0xa5;

// Of what one rank has for another.
uint32_t origin_of(const Job& job, uint32_t from, uint32_t to) { return from * job.size + to; }

struct Buffers {
  Buffers(const Job& job, size_t block_bytes_max)
      : bytes(block_bytes_max * job.size),
        send(allocate(job, bytes + kGuardBytes)),
        receive(allocate(job, bytes + kGuardBytes)) {
    memset(send + bytes, kGuard, kGuardBytes);
  }

  // The receive buffer is garbage, and guarded behind the bytes that count.
  void spoil(size_t used) const { memset(receive, kGuard, used + kGuardBytes); }
  [[nodiscard]] bool guarded(size_t used) const {
    for (size_t i = 0; i < kGuardBytes; i++) {
      if (receive[used + i] != kGuard || send[bytes + i] != kGuard) return false;
    }
    return true;
  }

  size_t bytes;
  uint8_t* send;
  uint8_t* receive;
};

void fill_alltoall(const Job& job, uint8_t* send, size_t block, uint64_t iteration) {
  for (uint32_t r = 0; r < job.size; r++) {
    fill(send + r * block, block, origin_of(job, job.rank, r), iteration);
  }
}

bool is_exchanged(const Job& job, const uint8_t* result, size_t block, uint64_t iteration) {
  for (uint32_t r = 0; r < job.size; r++) {
    if (!is_filled(result + r * block, block, origin_of(job, r, job.rank), iteration)) return false;
  }
  return true;
}

void broadcast_once(const Job& job, const Buffers& buffers, size_t bytes, uint32_t root,
                    uint64_t iteration) {
  const bool sends = job.rank == root;
  buffers.spoil(bytes);
  if (sends) fill(buffers.send, bytes, root, iteration);
  EXPECT_OK(job, peal_bcast(job.group, sends ? buffers.send : buffers.receive, bytes, root));
  EXPECT_TRUE(job, is_filled(sends ? buffers.send : buffers.receive, bytes, root, iteration));
  EXPECT_TRUE(job, buffers.guarded(sends ? 0 : bytes));
}

void alltoall_once(const Job& job, const Buffers& buffers, size_t block, bool in_place,
                   uint64_t iteration) {
  buffers.spoil(block * job.size);
  fill_alltoall(job, in_place ? buffers.receive : buffers.send, block, iteration);
  EXPECT_OK(job, peal_alltoall(job.group, in_place ? PEAL_IN_PLACE : buffers.send, buffers.receive,
                               block));
  EXPECT_TRUE(job, is_exchanged(job, buffers.receive, block, iteration));
  EXPECT_TRUE(job, buffers.guarded(block * job.size));
}

// LONGEST ROUNDS: once(buffers, bytes, &iteration) for every length up to that.
template <typename Once>
void run_lengths(Job& job, Once once) {
  const uint64_t longest = job.number(0, 1 << 20);
  const uint64_t rounds = job.number(1, 1);
  open_all(job);
  const Buffers buffers(job, longest);
  uint64_t iteration = 0;
  for (uint64_t round = 0; round < rounds; round++) {
    for (const size_t bytes : kLengths) {
      if (bytes <= longest) once(buffers, bytes, &iteration);
    }
  }
  close_all(job);
}

}  // namespace

// broadcast LONGEST ROUNDS: from every root.
void run_broadcast(Job& job) {
  run_lengths(job, [&job](const Buffers& buffers, size_t bytes, uint64_t* iteration) {
    for (uint32_t root = 0; root < job.size; root++)
      broadcast_once(job, buffers, bytes, root, (*iteration)++);
  });
}

// alltoall LONGEST ROUNDS: by turns in place.
void run_alltoall(Job& job) {
  run_lengths(job, [&job](const Buffers& buffers, size_t block, uint64_t* iteration) {
    for (const bool in_place : {false, true})
      alltoall_once(job, buffers, block, in_place, (*iteration)++);
  });
}

namespace {

enum class Kind : uint8_t { kBarrier, kBroadcast, kAllgather, kAlltoall, kAllgatherv, kAlltoallv };

// One operation of a sequence that all ranks draw alike, and its buffers.
class Slot {
 public:
  Slot(const Job& job, size_t longest)
      : job_(job),
        longest_(longest),
        buffers_(job, longest),
        blocks_bytes_(side_bytes_max(job, longest)),
        blocks_send_(allocate(job, blocks_bytes_)),
        blocks_receive_(allocate(job, blocks_bytes_)) {}

  void post(std::mt19937& random, uint64_t iteration) {
    kind_ = static_cast<Kind>(random() % 6);
    bytes_ = random() % 3 == 0 ? random() % (longest_ + 1) : random() % 300;
    root_ = static_cast<uint32_t>(random() % job_.size);
    iteration_ = iteration;
    buffers_.spoil(kind_ == Kind::kBroadcast ? bytes_ : bytes_ * job_.size);
    switch (kind_) {
      case Kind::kBarrier:
        EXPECT_OK(job_, peal_ibarrier(job_.group, &request_));
        break;
      case Kind::kBroadcast:
        if (sends()) fill(buffers_.send, bytes_, root_, iteration_);
        EXPECT_OK(job_, peal_ibcast(job_.group, sends() ? buffers_.send : buffers_.receive, bytes_,
                                    root_, &request_));
        break;
      case Kind::kAllgather:
      case Kind::kAlltoall:
        post_alike(random() % 2 == 0);
        break;
      default:
        post_blocks(random);
    }
  }

  // Waits for what is pending, if anything is, and looks at it.
  void finish() {
    if (request_ == nullptr) return;
    EXPECT_OK(job_, peal_wait(request_));
    look();
  }
  // The same in one of the ways that there are, which each rank may draw for itself.
  void finish_somehow(std::mt19937& random) {
    if (request_ == nullptr) return;
    const uint64_t timeout_ns = random() % 300'000;
    int done = 0;
    size_t index = 0;
    peal_error error = PEAL_ERR_TIMED_OUT;
    switch (random() % 4) {
      case 0:
        EXPECT_OK(job_, peal_wait(request_));
        break;
      case 1:
        while (done == 0) EXPECT_OK(job_, peal_test(request_, &done));
        break;
      case 2:
        while (error == PEAL_ERR_TIMED_OUT) error = peal_wait_for(request_, timeout_ns);
        EXPECT_OK(job_, error);
        break;
      default:
        while (error == PEAL_ERR_TIMED_OUT) error = peal_wait_any(&request_, 1, timeout_ns, &index);
        EXPECT_OK(job_, error);
        EXPECT_TRUE(job_, index == 0);
    }
    look();
  }

 private:
  void post_alike(bool in_place) {
    const void* const send = in_place ? PEAL_IN_PLACE : buffers_.send;
    if (kind_ == Kind::kAllgather) {
      uint8_t* const own = in_place ? buffers_.receive + job_.rank * bytes_ : buffers_.send;
      fill(own, bytes_, job_.rank, iteration_);
      EXPECT_OK(job_, peal_iallgather(job_.group, send, buffers_.receive, bytes_, &request_));
    } else {
      fill_alltoall(job_, in_place ? buffers_.receive : buffers_.send, bytes_, iteration_);
      EXPECT_OK(job_, peal_ialltoall(job_.group, send, buffers_.receive, bytes_, &request_));
    }
  }

  void post_blocks(std::mt19937& random) {
    const bool in_place = random() % 2 == 0;
    blocks_ =
        draw_call(job_, random, kind_ == Kind::kAlltoallv, in_place, kShapes[random() % 4], bytes_);
    fill_blocks(job_, blocks_, blocks_send_, blocks_receive_, blocks_bytes_, iteration_);
    EXPECT_OK(job_, start_blocks(job_, blocks_, blocks_send_, blocks_receive_, &request_));
  }

  void look() {
    EXPECT_OK(job_, peal_request_free(request_));
    request_ = nullptr;
    EXPECT_TRUE(job_, is_right());
  }

  [[nodiscard]] bool sends() const { return job_.rank == root_; }
  [[nodiscard]] bool is_right() const {
    const size_t all = bytes_ * job_.size;
    switch (kind_) {
      case Kind::kBarrier:
        return true;
      case Kind::kBroadcast:
        return (sends() || is_filled(buffers_.receive, bytes_, root_, iteration_)) &&
               buffers_.guarded(sends() ? 0 : bytes_);
      case Kind::kAllgather:
        return is_gathered(job_, buffers_.receive, bytes_, iteration_) && buffers_.guarded(all);
      case Kind::kAlltoall:
        return is_exchanged(job_, buffers_.receive, bytes_, iteration_) && buffers_.guarded(all);
      default:
        return blocks_are_right(job_, blocks_, blocks_receive_, blocks_bytes_, iteration_);
    }
  }

  const Job& job_;
  size_t longest_;
  Buffers buffers_;
  Kind kind_ = Kind::kBarrier;
  size_t bytes_ = 0;
  uint32_t root_ = 0;
  uint64_t iteration_ = 0;
  peal_request* request_ = nullptr;
  BlockCall blocks_;
  size_t blocks_bytes_;
  uint8_t* blocks_send_;
  uint8_t* blocks_receive_;
};

}  // namespace

// mixed COUNT LONGEST SEED: all six kinds in one sequence, in place and not, as deep as the card
// takes it.
void run_mixed(Job& job) {
  const uint64_t count = job.number(0, 400);
  const size_t longest = job.number(1, 20'000);
  std::mt19937 random(static_cast<uint32_t>(job.number(2, 1)));
  open_all(job);
  peal_card_info info = {};
  info.struct_bytes = sizeof(info);
  EXPECT_OK(job, peal_card_query(job.card, &info));
  std::vector<Slot> slots;
  for (uint32_t i = 0; i < info.parked_max; i++) slots.emplace_back(job, longest);
  for (uint64_t i = 0; i < count; i++) {
    Slot& slot = slots[i % slots.size()];
    slot.finish();
    slot.post(random, i);
  }
  for (Slot& slot : slots) slot.finish();
  peal_statistics counted = {};
  counted.struct_bytes = sizeof(counted);
  EXPECT_OK(job, peal_read_statistics(job.card, &counted));
  EXPECT_TRUE(job, counted.posted == count && counted.completed == count);
  EXPECT_TRUE(job, counted.failed == 0 && counted.requests == 0 && counted.card_ns > 0);
  close_all(job);
}

// late COUNT LONGEST SEED: all six kinds, each posted by one rank, by turns, when all others have
// posted it, and waited for alone.
void run_late(Job& job) {
  const uint64_t count = job.number(0, 60);
  std::mt19937 random(static_cast<uint32_t>(job.number(2, 1)));
  open_all(job);
  Slot slot(job, job.number(1, 20'000));
  for (uint64_t i = 0; i < count; i++) {
    const bool late = i % job.size == job.rank;
    if (late) job.barrier();
    slot.post(random, i);
    if (!late) job.barrier();
    slot.finish();
  }
  close_all(job);
}

// mixed-threads THREADS COUNT LONGEST SEED: the same in several threads of one context, each with a
// group of its own, and waited for in every way.
void run_mixed_threads(Job& job) {
  const uint64_t count = job.number(1, 300);
  const size_t longest = job.number(2, 5000);
  EXPECT_OK(job, peal_open(nullptr, &job.card));
  std::vector<Job> jobs(job.number(0, 4), job);
  for (Job& each : jobs) {
    EXPECT_OK(job, peal_group_create(job.card, job.rank, job.size, peal_oob_exchange, job.oob,
                                     nullptr, &each.group));
  }
  std::vector<std::thread> threads;
  for (size_t t = 0; t < jobs.size(); t++) {
    threads.emplace_back([&job, &each = jobs[t], t, count, longest] {
      std::mt19937 random(static_cast<uint32_t>(job.number(3, 1) * 100 + t));
      std::mt19937 own(static_cast<uint32_t>(job.rank * 100 + t));
      std::vector<Slot> slots;
      for (size_t i = 0; i < 3; i++) slots.emplace_back(each, longest);
      for (uint64_t i = 0; i < count; i++) {
        Slot& slot = slots[i % slots.size()];
        slot.finish_somehow(own);
        slot.post(random, i * 16 + t);
      }
      for (Slot& slot : slots) slot.finish_somehow(own);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Job& each : jobs) EXPECT_OK(each, peal_group_destroy(each.group));
  peal_close(job.card);
}

// disagree-on WHAT RANK: one rank, no root, says something else than the others; it is told, and
// everybody who needs it, and the group goes on.
void run_disagree_on(Job& job) {
  const std::string& what = job.arguments.at(0);
  const bool odd = job.rank == job.number(1, 1);
  constexpr size_t kBytes = 512;
  open_all(job);
  const Buffers buffers(job, kBytes);
  const auto disagree = [&] {
    if (what == "root")
      return peal_bcast(job.group, buffers.receive, kBytes, odd ? 0 : job.size - 1);
    if (what == "broadcast-length") {
      return peal_bcast(job.group, buffers.receive, odd ? kBytes / 2 : kBytes, 0);
    }
    if (what == "alltoall-length") {
      return peal_alltoall(job.group, buffers.send, buffers.receive, odd ? kBytes / 2 : kBytes);
    }
    if (what == "allgatherv-length" || what == "alltoallv-length") {
      std::vector<size_t> bytes(job.size, kBytes);
      if (odd) bytes[0] = kBytes / 2;
      return what == "allgatherv-length"
                 ? peal_allgatherv(job.group, PEAL_IN_PLACE, buffers.receive, bytes.data(), nullptr)
                 : peal_alltoallv(job.group, buffers.send, std::vector(job.size, kBytes).data(),
                                  nullptr, buffers.receive, bytes.data(), nullptr);
    }
    return odd ? peal_allgather(job.group, buffers.send, buffers.receive, kBytes)
               : peal_alltoall(job.group, buffers.send, buffers.receive, kBytes);
  };
  for (uint64_t i = 0; i < 10; i++) {
    broadcast_once(job, buffers, kBytes, i % job.size, i);
    const peal_error told = disagree();
    // Nobody waits in a broadcast for those below: who did not need the odd one may be done. Of a
    // block's length only the two know that exchange it, and who has what it expects may be done.
    const bool between_two = what == "allgatherv-length" || what == "alltoallv-length";
    const bool may_be_done = !odd && (what == "root" || what == "broadcast-length" || between_two);
    EXPECT_TRUE(job, told == PEAL_ERR_MISMATCH || (may_be_done && told == PEAL_OK));
    if (odd && between_two) {
      const std::string text = peal_last_error_text();
      EXPECT_TRUE(job, text.substr(text.find(": ")) == ": ranks disagree: rank 0");
    }
    alltoall_once(job, buffers, kBytes, false, i);
  }
  close_all(job);
}

namespace {

// Blocks of one length, in a sequence where somebody dies.
peal_error begin_operation(const Job& job, const std::string& operation, const Buffers& buffers,
                           uint32_t root, size_t bytes, peal_request** request) {
  const std::vector<size_t> lengths(job.size, bytes);
  uint8_t* const send = buffers.send;
  uint8_t* const receive = buffers.receive;
  if (operation == "barrier") return peal_ibarrier(job.group, request);
  if (operation == "broadcast") return peal_ibcast(job.group, receive, bytes, root, request);
  if (operation == "allgather") return peal_iallgather(job.group, send, receive, bytes, request);
  if (operation == "alltoall") return peal_ialltoall(job.group, send, receive, bytes, request);
  if (operation == "allgatherv") {
    return peal_iallgatherv(job.group, send, receive, lengths.data(), nullptr, request);
  }
  EXPECT_TRUE(job, operation == "alltoallv");
  return peal_ialltoallv(job.group, send, lengths.data(), nullptr, receive, lengths.data(), nullptr,
                         request);
}

}  // namespace

// death-in barrier|broadcast|allgather|alltoall|allgatherv|alltoallv VICTIM BYTES: the others are
// in the operation when that rank, which is its root, is killed.
void run_death_in(Job& job) {
  const std::string& operation = job.arguments.at(0);
  const auto victim = static_cast<uint32_t>(job.number(1, 1));
  const size_t bytes = job.number(2, 1000);
  open_all(job);
  const Buffers buffers(job, bytes);
  for (uint64_t i = 0; i < 10; i++) {
    broadcast_once(job, buffers, bytes, i % job.size, i);
    alltoall_once(job, buffers, bytes, true, i);
  }
  peal_request* request = nullptr;
  if (job.rank != victim) {
    EXPECT_OK(job, begin_operation(job, operation, buffers, victim, bytes, &request));
  }
  job.barrier();
  if (job.rank == victim) raise(SIGKILL);
  EXPECT_ERROR(job, peal_wait(request), PEAL_ERR_PEER_DEAD);
  EXPECT_TRUE(job, peal_request_failed_rank(request) == static_cast<int>(victim));
  EXPECT_OK(job, peal_request_free(request));
  EXPECT_ERROR(job, peal_bcast(job.group, buffers.receive, bytes, 0), PEAL_ERR_PEER_DEAD);
  EXPECT_ERROR(job, peal_alltoall(job.group, PEAL_IN_PLACE, buffers.receive, bytes),
               PEAL_ERR_PEER_DEAD);
  EXPECT_ERROR(job, peal_group_destroy(job.group), PEAL_ERR_PEER_DEAD);
  printf("rank %u was told that rank %u is dead\n", job.rank, victim);
  peal_close(job.card);
}

}  // namespace peal::e2e
