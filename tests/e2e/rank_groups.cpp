// SPDX-License-Identifier: BSD-2-Clause
// Many groups: one after the other, several at once that overlap, and used by several threads.
#include <algorithm>
#include <cstring>
#include <thread>

#include "tests/e2e/rank_support.h"

namespace peal::e2e {
namespace {

// The out-of-band allgather of a part of the ranks, carried by that of all: everybody calls it,
// whoever is outside contributes nothing.
struct Subset {
  const Job* job;
  std::vector<uint32_t> members;  // ranks of the job

  static int allgather(void* argument, const void* send, void* receive, size_t bytes) {
    const auto* subset = static_cast<const Subset*>(argument);
    std::vector<uint8_t> all(bytes * subset->job->size);
    const int failed = peal_oob_exchange(subset->job->oob, send, all.data(), bytes);
    if (failed != 0) return failed;
    for (size_t i = 0; i < subset->members.size(); i++) {
      memcpy(static_cast<uint8_t*>(receive) + i * bytes,
             all.data() + size_t{subset->members[i]} * bytes, bytes);
    }
    return 0;
  }
};

constexpr size_t kRecordBytes = PEAL_GROUP_RECORD_BYTES;

// Makes the group of `members`, if this rank is one of them;
// takes part in the exchange in any case.
peal_group* make_subgroup(const Job& job, Subset& subset) {
  const auto place = std::find(subset.members.begin(), subset.members.end(), job.rank);
  peal_group* group = nullptr;
  if (place == subset.members.end()) {
    for (int round = 0; round < 2; round++) {
      const std::vector<uint8_t> nothing(kRecordBytes);
      std::vector<uint8_t> all(kRecordBytes * job.size);
      EXPECT_OK(job, static_cast<peal_error>(
                         peal_oob_exchange(job.oob, nothing.data(), all.data(), kRecordBytes)));
    }
    return group;
  }
  EXPECT_OK(job, peal_group_create(job.card, static_cast<uint32_t>(place - subset.members.begin()),
                                   static_cast<uint32_t>(subset.members.size()), Subset::allgather,
                                   &subset, nullptr, &group));
  return group;
}

void gather_once(const Job& job, peal_group* group, const std::vector<uint32_t>& members,
                 uint8_t* send, uint8_t* receive, size_t bytes, uint64_t iteration) {
  fill(send, bytes, job.rank, iteration);
  EXPECT_OK(job, peal_allgather(group, send, receive, bytes));
  for (size_t i = 0; i < members.size(); i++) {
    EXPECT_TRUE(job, is_filled(receive + i * bytes, bytes, members[i], iteration));
  }
}

}  // namespace

// churn COUNT: groups made, used and destroyed again and again;
// every slot of the card is used many times.
void run_churn(Job& job) {
  const uint64_t count = job.number(0, 60);
  EXPECT_OK(job, peal_open(nullptr, &job.card));
  const size_t bytes = 100;
  uint8_t* send = allocate(job, bytes);
  uint8_t* receive = allocate(job, bytes * job.size);
  for (uint64_t i = 0; i < count; i++) {
    EXPECT_OK(job, peal_group_create(job.card, job.rank, job.size, peal_oob_exchange, job.oob,
                                     nullptr, &job.group));
    EXPECT_TRUE(job, peal_group_rank(job.group) == job.rank);
    EXPECT_TRUE(job, peal_group_size(job.group) == job.size);
    fill(send, bytes, job.rank, i);
    EXPECT_OK(job, peal_allgather(job.group, send, receive, bytes));
    EXPECT_TRUE(job, is_gathered(job, receive, bytes, i));
    EXPECT_OK(job, peal_group_destroy(job.group));
  }
  EXPECT_OK(job, peal_free(job.card, send));
  EXPECT_OK(job, peal_free(job.card, receive));
  peal_close(job.card);
}

// exhaust: groups until a card has no member left. Everybody is refused together, by name; then the
// groups that exist still work, and their members can be had again.
void run_exhaust(Job& job) {
  EXPECT_OK(job, peal_open(nullptr, &job.card));
  std::vector<peal_group*> groups;
  for (int time = 0; time < 3; time++) {
    while (true) {
      peal_group* group = nullptr;
      const peal_error error = peal_group_create(job.card, job.rank, job.size, peal_oob_exchange,
                                                 job.oob, nullptr, &group);
      if (error != PEAL_OK) {
        EXPECT_TRUE(job, error == PEAL_ERR_NO_RESOURCES || error == PEAL_ERR_PEER_REFUSED);
        break;
      }
      groups.push_back(group);
      EXPECT_TRUE(job, groups.size() < 10'000);
    }
    EXPECT_TRUE(job, !groups.empty());
    for (peal_group* group : groups) EXPECT_OK(job, peal_barrier(group));
    for (peal_group* group : groups) EXPECT_OK(job, peal_group_destroy(group));
    groups.clear();
  }
  peal_close(job.card);
}

// many COUNT: so many groups at once, all used, all destroyed, and the same again. The script looks
// before there are any, and when all have been used.
void run_many(Job& job) {
  const size_t count = job.number(0, 256);
  const bool each_kind = job.number(1, 0) != 0;
  EXPECT_OK(job, peal_open(nullptr, &job.card));
  const size_t bytes = 64;
  uint8_t* send = allocate(job, bytes);
  uint8_t* receive = allocate(job, bytes * job.size);
  const std::vector<size_t> lengths(job.size, bytes / job.size);
  std::vector<peal_group*> groups(count);
  const auto use = [&](peal_group* group, uint64_t i) {
    fill(send, bytes, job.rank, i);
    EXPECT_OK(job, peal_allgather(group, send, receive, bytes));
    EXPECT_TRUE(job, is_gathered(job, receive, bytes, i));
    if (!each_kind) return;
    EXPECT_OK(job, peal_bcast(group, receive, bytes, static_cast<uint32_t>(i % job.size)));
    EXPECT_OK(job, peal_alltoall(group, send, receive, lengths[0]));
    EXPECT_OK(job, peal_allgatherv(group, send, receive, lengths.data(), nullptr));
    EXPECT_OK(job, peal_alltoallv(group, send, lengths.data(), nullptr, receive, lengths.data(),
                                  nullptr));
  };
  for (uint64_t time = 0; time < 2; time++) {
    if (time == 0) job.wait_for_script();
    for (peal_group*& group : groups) {
      EXPECT_OK(job, peal_group_create(job.card, job.rank, job.size, peal_oob_exchange, job.oob,
                                       nullptr, &group));
    }
    const uint64_t uses = each_kind ? 1 : 3;
    for (uint64_t i = 0; i < uses * count; i++) use(groups[i % count], i);
    for (peal_group* group : groups) EXPECT_OK(job, peal_barrier(group));
    job.wait_for_script();
    for (peal_group* group : groups) EXPECT_OK(job, peal_group_destroy(group));
  }
  EXPECT_OK(job, peal_free(job.card, send));
  EXPECT_OK(job, peal_free(job.card, receive));
  peal_close(job.card);
}

// overlap: all ranks, the even ones, and pairs of neighbours, used in turns.
void run_overlap(Job& job) {
  EXPECT_OK(job, peal_open(nullptr, &job.card));
  std::vector<Subset> subsets(3, Subset{&job, {}});
  for (uint32_t rank = 0; rank < job.size; rank++) {
    subsets[0].members.push_back(rank);
    if (rank % 2 == 0) subsets[1].members.push_back(rank);
    if (rank < job.size - 1 && rank > 0) subsets[2].members.push_back(rank);
  }
  std::vector<peal_group*> groups;
  for (Subset& subset : subsets) groups.push_back(make_subgroup(job, subset));
  const size_t bytes = 3000;
  uint8_t* send = allocate(job, bytes);
  uint8_t* receive = allocate(job, bytes * job.size);
  for (uint64_t i = 0; i < 90; i++) {
    const size_t which = i % groups.size();
    if (groups[which] == nullptr) continue;
    gather_once(job, groups[which], subsets[which].members, send, receive, bytes, i);
  }
  for (peal_group* group : groups) EXPECT_OK(job, peal_group_destroy(group));
  peal_close(job.card);
}

// threads COUNT: each thread has a group of its own on the one context, and waits in it; all share
// the completion ring.
void run_threads(Job& job) {
  const size_t count = job.number(0, 4);
  EXPECT_OK(job, peal_open(nullptr, &job.card));
  std::vector<peal_group*> groups(count);
  for (peal_group*& group : groups) {
    EXPECT_OK(job, peal_group_create(job.card, job.rank, job.size, peal_oob_exchange, job.oob,
                                     nullptr, &group));
  }
  std::vector<std::thread> threads;
  for (size_t t = 0; t < count; t++) {
    threads.emplace_back([&job, group = groups[t], t] {
      const size_t bytes = 200 + t;
      uint8_t* send = allocate(job, bytes);
      uint8_t* receive = allocate(job, bytes * job.size);
      for (uint64_t i = 0; i < 300; i++) {
        fill(send, bytes, job.rank, i * 16 + t);
        EXPECT_OK(job, peal_allgather(group, send, receive, bytes));
        EXPECT_TRUE(job, is_gathered(job, receive, bytes, i * 16 + t));
        if (i % 8 == t) EXPECT_OK(job, peal_barrier(group));
      }
      EXPECT_OK(job, peal_free(job.card, send));
      EXPECT_OK(job, peal_free(job.card, receive));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (peal_group* group : groups) EXPECT_OK(job, peal_group_destroy(group));
  peal_close(job.card);
}

}  // namespace peal::e2e
