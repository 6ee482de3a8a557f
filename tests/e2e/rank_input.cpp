// SPDX-License-Identifier: BSD-2-Clause
// input: what a caller may get wrong. Each mistake is refused by its name, with a text, and leaves
// everything as it was.
#include <cstdlib>
#include <cstring>

#include "tests/e2e/rank_support.h"

namespace peal::e2e {
namespace {

void wrong_cards(const Job& job) {
  peal_context* card = nullptr;
  EXPECT_ERROR(job, peal_open(nullptr, nullptr), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_open("verbs:mlx5_0", &card), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_open("emu:", &card), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_open("emu:/nowhere,card=x", &card), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_open("emu:/nowhere", &card), PEAL_ERR_NO_CARD);
  EXPECT_ERROR(job, peal_open("char:/nowhere", &card), PEAL_ERR_NO_CARD);
  EXPECT_ERROR(job, peal_open("char:/dev/null", &card), PEAL_ERR_BAD_VERSION);
  EXPECT_ERROR(job, peal_open(("emu:/" + std::string(200, 'x')).c_str(), &card),
               PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_TRUE(job, card == nullptr);
  std::string other = getenv("PEAL_CARD");
  other = other.substr(0, other.rfind(",card=")) + ",card=4000";
  EXPECT_TRUE(job, peal_open(other.c_str(), &card) != PEAL_OK && card == nullptr);
  setenv("PEAL_SPIN_US", "soon", 1);
  EXPECT_ERROR(job, peal_open(nullptr, &card), PEAL_ERR_INVALID_ARGUMENT);
  unsetenv("PEAL_SPIN_US");
}

void wrong_memory(const Job& job) {
  void* memory = nullptr;
  uint8_t own[64] = {};
  peal_memory* handle = nullptr;
  EXPECT_ERROR(job, peal_alloc(job.card, 0, &memory), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_alloc(job.card, SIZE_MAX, &memory), PEAL_ERR_NO_MEMORY);
  EXPECT_TRUE(job, peal_alloc(job.card, SIZE_MAX / 4, &memory) != PEAL_OK && memory == nullptr);
  EXPECT_ERROR(job, peal_free(job.card, own), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_register(job.card, nullptr, 64, PEAL_READ, &handle),
               PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_register(job.card, own, 0, PEAL_READ, &handle), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_register(job.card, own, 64, 0, &handle), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_register(job.card, own, 64, 8, &handle), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_register(job.card, own, SIZE_MAX, PEAL_READ, &handle),
               PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_register(job.card, own, 64, PEAL_READ, nullptr),
               PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_TRUE(job, handle == nullptr);
  EXPECT_OK(job, peal_unregister(nullptr));
  EXPECT_OK(job, peal_free(job.card, nullptr));
}

int broken_exchange(void*, const void*, void*, size_t) { return 5; }

void wrong_groups(const Job& job) {
  peal_group* group = nullptr;
  EXPECT_ERROR(job, peal_group_create(job.card, 3, 3, broken_exchange, nullptr, nullptr, &group),
               PEAL_ERR_BAD_RANK);
  EXPECT_ERROR(job, peal_group_create(job.card, 0, 0, broken_exchange, nullptr, nullptr, &group),
               PEAL_ERR_BAD_RANK);
  EXPECT_ERROR(job,
               peal_group_create(job.card, 0, 65537, broken_exchange, nullptr, nullptr, &group),
               PEAL_ERR_BAD_RANK);
  EXPECT_ERROR(job, peal_group_create(job.card, 0, 2, nullptr, nullptr, nullptr, &group),
               PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_group_create(job.card, 0, 2, broken_exchange, nullptr, nullptr, &group),
               PEAL_ERR_OUT_OF_BAND);
  // The member slot was given back each time: a card has few.
  for (int i = 0; i < 100; i++) {
    EXPECT_ERROR(job, peal_group_create(job.card, 0, 2, broken_exchange, nullptr, nullptr, &group),
                 PEAL_ERR_OUT_OF_BAND);
  }
  EXPECT_TRUE(job, group == nullptr);
  EXPECT_TRUE(job, peal_group_failed_rank(nullptr) == -1);
  EXPECT_OK(job, peal_group_destroy(nullptr));
}

// One rank's parameters are senseless: all ranks hear of it.
void wrong_params(Job& job) {
  peal_group_params params = {};
  params.struct_bytes = job.rank == 0 ? 4 : sizeof(params);
  EXPECT_ERROR(job,
               peal_group_create(job.card, job.rank, job.size, peal_oob_exchange, job.oob, &params,
                                 &job.group),
               job.rank == 0 ? PEAL_ERR_INVALID_ARGUMENT : PEAL_ERR_PEER_REFUSED);
  params.struct_bytes = sizeof(params);
  params.flags = job.rank == 1 ? 0x80 : 0;
  EXPECT_ERROR(job,
               peal_group_create(job.card, job.rank, job.size, peal_oob_exchange, job.oob, &params,
                                 &job.group),
               job.rank == 1 ? PEAL_ERR_INVALID_ARGUMENT : PEAL_ERR_PEER_REFUSED);
}

void wrong_buffers(const Job& job) {
  constexpr size_t kBlock = 100;
  uint8_t* good = allocate(job, kBlock * job.size + kBlock);
  auto* loose = static_cast<uint8_t*>(malloc(kBlock * job.size));
  peal_group* group = job.group;
  EXPECT_ERROR(job, peal_allgather(nullptr, good, good, 1), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_barrier(nullptr), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_allgather(group, nullptr, good, kBlock), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_allgather(group, good, nullptr, kBlock), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_allgather(group, good, good + 10, kBlock), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_allgather(group, good, loose, kBlock), PEAL_ERR_NOT_REGISTERED);
  EXPECT_ERROR(job, peal_allgather(group, loose, good, kBlock), PEAL_ERR_NOT_REGISTERED);
  EXPECT_ERROR(job, peal_allgather(group, PEAL_IN_PLACE, good, 1u << 20), PEAL_ERR_BAD_BOUNDS);
  EXPECT_ERROR(job, peal_allgather(group, good, good, size_t{1} << 32), PEAL_ERR_BAD_LENGTH);
  EXPECT_ERROR(job, peal_allgather(group, good, good, SIZE_MAX), PEAL_ERR_BAD_LENGTH);
  EXPECT_ERROR(job, peal_bcast(group, good, kBlock, job.size), PEAL_ERR_BAD_ROOT);
  EXPECT_ERROR(job, peal_bcast(group, loose, kBlock, 0), PEAL_ERR_NOT_REGISTERED);
  EXPECT_ERROR(job, peal_bcast(group, good, SIZE_MAX, 0), PEAL_ERR_BAD_LENGTH);
  EXPECT_ERROR(job, peal_alltoall(group, good, good, kBlock), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_alltoall(group, PEAL_IN_PLACE, loose, kBlock), PEAL_ERR_NOT_REGISTERED);
  EXPECT_ERROR(job, peal_alltoall(group, PEAL_IN_PLACE, good, 1u << 20), PEAL_ERR_BAD_BOUNDS);
  peal_memory* memory = nullptr;
  EXPECT_OK(job, peal_register(job.card, loose, kBlock * job.size, PEAL_READ, &memory));
  EXPECT_ERROR(job, peal_allgather(group, good, loose, kBlock), PEAL_ERR_BAD_ACCESS);
  EXPECT_OK(job, peal_unregister(memory));
  EXPECT_ERROR(job, peal_allgather(group, loose, good, kBlock), PEAL_ERR_NOT_REGISTERED);
  free(loose);
  // None of it used up a sequence number: the group still works.
  uint8_t* send = good + kBlock * job.size;
  fill(send, kBlock, job.rank, 1);
  EXPECT_OK(job, peal_allgather(group, send, good, kBlock));
  EXPECT_TRUE(job, is_gathered(job, good, kBlock, 1));
  EXPECT_OK(job, peal_free(job.card, good));
}

void wrong_blocks(const Job& job) {
  constexpr size_t kBlock = 100;
  uint8_t* good = allocate(job, 2 * kBlock * job.size);
  uint8_t* other = good + kBlock * job.size;
  auto* loose = static_cast<uint8_t*>(malloc(kBlock * job.size));
  peal_group* group = job.group;
  const std::vector<size_t> all(job.size, kBlock);
  const std::vector<size_t> none(job.size, 0);
  std::vector<size_t> bad = all;
  const auto gather = [&](const void* send, void* receive, const std::vector<size_t>& bytes,
                          const size_t* offsets) {
    return peal_allgatherv(group, send, receive, bytes.data(), offsets);
  };
  const auto exchange = [&](const void* send, void* receive, const std::vector<size_t>& bytes) {
    return peal_alltoallv(group, send, all.data(), nullptr, receive, bytes.data(), nullptr);
  };
  EXPECT_ERROR(job, peal_allgatherv(nullptr, good, good, all.data(), nullptr),
               PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_allgatherv(group, good, other, nullptr, nullptr),
               PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_alltoallv(group, good, nullptr, nullptr, other, all.data(), nullptr),
               PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_alltoallv(group, good, all.data(), nullptr, other, nullptr, nullptr),
               PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, gather(nullptr, good, all, nullptr), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, gather(good, nullptr, all, nullptr), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, gather(good, good, all, nullptr), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, exchange(good, good, all), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, gather(good, loose, all, nullptr), PEAL_ERR_NOT_REGISTERED);
  EXPECT_ERROR(job, gather(loose, good, all, nullptr), PEAL_ERR_NOT_REGISTERED);
  EXPECT_ERROR(job, exchange(PEAL_IN_PLACE, loose, all), PEAL_ERR_NOT_REGISTERED);
  bad[0] = size_t{1} << 32;
  EXPECT_ERROR(job, gather(PEAL_IN_PLACE, good, bad, nullptr), PEAL_ERR_BAD_LENGTH);
  EXPECT_ERROR(job, exchange(good, other, bad), PEAL_ERR_BAD_LENGTH);
  bad[0] = size_t{1} << 30;
  EXPECT_ERROR(job, gather(PEAL_IN_PLACE, good, bad, nullptr), PEAL_ERR_BAD_BOUNDS);
  std::vector<size_t> offsets(job.size, 0);
  offsets[0] = SIZE_MAX;
  EXPECT_ERROR(job, gather(PEAL_IN_PLACE, good, all, offsets.data()), PEAL_ERR_INVALID_ARGUMENT);
  free(loose);
  // None of it used up a sequence number. Nothing at all needs no buffer.
  EXPECT_OK(job, gather(nullptr, nullptr, none, offsets.data()));
  fill(good + kBlock * job.rank, kBlock, job.rank, 2);
  EXPECT_OK(job, gather(PEAL_IN_PLACE, good, all, nullptr));
  EXPECT_TRUE(job, is_gathered(job, good, kBlock, 2));
  EXPECT_OK(job, peal_free(job.card, good));
}

void wrong_requests(const Job& job) {
  peal_card_info info = {};
  info.struct_bytes = sizeof(info);
  EXPECT_OK(job, peal_card_query(job.card, &info));
  uint8_t* memory = allocate(job, 8 + size_t{8} * job.size);
  int done = 0;
  peal_request* request = nullptr;
  EXPECT_ERROR(job, peal_test(nullptr, &done), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_wait(nullptr), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_ibarrier(nullptr, &request), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_group_wait(nullptr), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_OK(job, peal_group_abort(nullptr));
  EXPECT_OK(job, peal_request_free(nullptr));
  EXPECT_TRUE(job, peal_request_failed_rank(nullptr) == -1);

  // Rank 0 posts as many as the card takes, while nobody else takes part yet.
  std::vector<peal_request*> requests;
  if (job.rank == 0) {
    EXPECT_OK(job, peal_iallgather(job.group, memory, memory + 8, 8, &request));
    requests.push_back(request);
    for (uint32_t i = 1; i < info.parked_max; i++) {
      EXPECT_OK(job, peal_ibarrier(job.group, &request));
      requests.push_back(request);
    }
    EXPECT_ERROR(job, peal_ibarrier(job.group, &request), PEAL_ERR_TOO_MANY);
    EXPECT_TRUE(job, request == nullptr);
    EXPECT_ERROR(job, peal_free(job.card, memory), PEAL_ERR_BUSY);
    EXPECT_ERROR(job, peal_wait_for(requests[0], 1'000'000), PEAL_ERR_TIMED_OUT);
    EXPECT_OK(job, peal_test(requests[0], &done));
    EXPECT_TRUE(job, done == 0);
    job.barrier();
  } else {
    job.barrier();
    EXPECT_OK(job, peal_iallgather(job.group, memory, memory + 8, 8, &request));
    requests.push_back(request);
    for (uint32_t i = 1; i < info.parked_max; i++) {
      EXPECT_OK(job, peal_ibarrier(job.group, &request));
      requests.push_back(request);
    }
  }
  for (peal_request* each : requests) {
    EXPECT_OK(job, peal_wait(each));
    EXPECT_OK(job, peal_wait(each));  // once more is fine
    EXPECT_TRUE(job, peal_request_failed_rank(each) == -1);
    EXPECT_TRUE(job, peal_request_card_ns(each) > 0);
    EXPECT_OK(job, peal_request_free(each));
    EXPECT_ERROR(job, peal_request_free(each), PEAL_ERR_INVALID_ARGUMENT);
  }
  EXPECT_OK(job, peal_free(job.card, memory));
}

void wrong_counters(const Job& job) {
  size_t count = 0;
  uint64_t values[2] = {};
  EXPECT_ERROR(job, peal_counters(job.card, nullptr, 2, &count), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_counters(job.card, values, 2, nullptr), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_OK(job, peal_counters(job.card, values, 2, &count));  // never more than it was told
  EXPECT_TRUE(job, count > 2 && peal_counter_name(count) == nullptr);
  EXPECT_TRUE(job, peal_counter_name(0) != nullptr);
  EXPECT_ERROR(job, peal_card_query(job.card, nullptr), PEAL_ERR_INVALID_ARGUMENT);
  int fd = 0;
  int ready = 0;
  EXPECT_ERROR(job, peal_arm(job.card, &ready), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_completion_fd(nullptr, &fd), PEAL_ERR_INVALID_ARGUMENT);
}

void wrong_exchange(const Job& job) {
  peal_oob* oob = nullptr;
  EXPECT_ERROR(job, peal_oob_connect("smoke-signals", 0, 1, 1, &oob), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_oob_connect("tcp:127.0.0.1", 0, 1, 1, &oob), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_ERROR(job, peal_oob_connect("unix:/nowhere/oob", 0, 1, 1, &oob), PEAL_ERR_OUT_OF_BAND);
  EXPECT_ERROR(job, peal_oob_connect(nullptr, 9, 3, 1, &oob), PEAL_ERR_BAD_RANK);
  // This rank is there already, and the job has another size.
  EXPECT_ERROR(job, peal_oob_connect(nullptr, job.rank, job.size, 100, &oob), PEAL_ERR_OUT_OF_BAND);
  EXPECT_ERROR(job, peal_oob_connect(nullptr, job.rank, job.size + 1, 100, &oob),
               PEAL_ERR_OUT_OF_BAND);
  EXPECT_TRUE(job, oob == nullptr);
}

}  // namespace

void run_input(Job& job) {
  wrong_cards(job);
  EXPECT_OK(job, peal_open(nullptr, &job.card));
  wrong_memory(job);
  wrong_groups(job);
  wrong_params(job);
  peal_close(job.card);
  peal_close(nullptr);
  open_all(job);
  wrong_buffers(job);
  wrong_blocks(job);
  wrong_requests(job);
  wrong_counters(job);
  wrong_exchange(job);
  job.barrier();
  close_all(job);
}

}  // namespace peal::e2e
