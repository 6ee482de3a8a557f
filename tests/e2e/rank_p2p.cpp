// SPDX-License-Identifier: BSD-2-Clause
// Point-to-point on real processes: messages around a ring, from many to one, out of order, longer
// than many packets; puts, gets and fences; what is refused, and by which words; a rank that dies.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <random>

#include "tests/e2e/rank_support.h"

namespace peal::e2e {
namespace {

// What others call a piece of memory by.
struct Remote {
  uint32_t key = 0;
  uint64_t offset = 0;
};

std::vector<Remote> everybodys(const Job& job, void* memory, size_t bytes) {
  Remote own;
  EXPECT_OK(job, peal_memory_name(job.card, memory, bytes, &own.key, &own.offset));
  std::vector<Remote> all(job.size);
  EXPECT_OK(job,
            static_cast<peal_error>(peal_oob_exchange(job.oob, &own, all.data(), sizeof(own))));
  return all;
}

uint32_t right_of(const Job& job) { return (job.rank + 1) % job.size; }
uint32_t left_of(const Job& job) { return (job.rank + job.size - 1) % job.size; }

peal_request* send(const Job& job, uint32_t to, uint64_t tag, const void* from, size_t bytes) {
  peal_request* request = nullptr;
  EXPECT_OK(job, peal_isend(job.group, to, tag, from, bytes, &request));
  return request;
}
peal_request* receive(const Job& job, uint32_t from, uint64_t tag, void* to, size_t bytes) {
  peal_request* request = nullptr;
  EXPECT_OK(job, peal_irecv(job.group, from, tag, to, bytes, &request));
  return request;
}

void end(const Job& job, peal_request* request, peal_error wanted = PEAL_OK) {
  EXPECT_ERROR(job, peal_wait(request), wanted);
  EXPECT_OK(job, peal_request_free(request));
}

// How it ended, by the words that its user gets.
void end_with(const Job& job, peal_request* request, peal_error wanted, const std::string& text) {
  EXPECT_ERROR(job, peal_wait(request), wanted);
  if (peal_last_error_text() != text) {
    fail(job, __FILE__, __LINE__,
         std::string("\"") + peal_last_error_text() + "\" instead of \"" + text + "\"");
  }
  EXPECT_OK(job, peal_request_free(request));
}

// Nobody's bytes: a result that was not written is seen.
void blank(uint8_t* memory, size_t bytes) { memset(memory, 0xee, bytes); }
bool is_blank(const uint8_t* memory, size_t bytes) {
  return std::all_of(memory, memory + bytes, [](uint8_t each) { return each == 0xee; });
}

}  // namespace

// p2p-ring ROUNDS LONGEST SEED: everybody sends to the right and receives from the left, in forms
// that all draw alike.
void run_p2p_ring(Job& job) {
  const uint64_t rounds = job.number(0, 100);
  const size_t longest = job.number(1, 20'000);
  std::mt19937 random(static_cast<uint32_t>(job.number(2, 1)));
  open_all(job);
  uint8_t* out = allocate(job, longest);
  uint8_t* in = allocate(job, longest);
  for (uint64_t round = 0; round < rounds; round++) {
    const size_t bytes = random() % 3 == 0 ? random() % (longest + 1) : random() % 300;
    const bool any = random() % 4 == 0;
    const uint64_t tag = random();
    fill(out, bytes, job.rank, round);
    blank(in, longest);
    peal_request* waiting = nullptr;
    size_t received = 0;
    if (random() % 2 == 0) {
      waiting = send(job, right_of(job), tag, out, bytes);
      EXPECT_OK(job, peal_recv(job.group, left_of(job), any ? PEAL_ANY_TAG : tag, in, longest,
                               &received));
      EXPECT_OK(job, peal_wait(waiting));
    } else {
      waiting = receive(job, left_of(job), any ? PEAL_ANY_TAG : tag, in, longest);
      EXPECT_OK(job, peal_send(job.group, right_of(job), tag, out, bytes));
      EXPECT_OK(job, peal_wait(waiting));
      received = peal_request_bytes(waiting);
    }
    EXPECT_TRUE(job, peal_request_tag(waiting) == tag);
    EXPECT_OK(job, peal_request_free(waiting));
    EXPECT_TRUE(job, received == bytes);
    EXPECT_TRUE(job, is_filled(in, bytes, left_of(job), round));
    EXPECT_TRUE(job, is_blank(in + bytes, longest - bytes));
    if (random() % 8 == 0) EXPECT_OK(job, peal_barrier(job.group));
  }
  close_all(job);
}

// p2p-gather ROUNDS LONGEST SEED: everybody sends to rank 0 as fast as it can, and rank 0 takes
// what comes. The senders use their buffers again at once.
void run_p2p_gather(Job& job) {
  const uint64_t rounds = job.number(0, 50);
  const size_t longest = job.number(1, 5000);
  open_all(job);
  std::mt19937 random(static_cast<uint32_t>(job.number(2, 1) * 1000 + job.rank));
  if (job.rank != 0) {
    uint8_t* out = allocate(job, longest);
    for (uint64_t round = 0; round < rounds; round++) {
      const size_t bytes = random() % (longest + 1);
      fill(out, bytes, job.rank, round);
      EXPECT_OK(job, peal_send(job.group, 0, round, out, bytes));
      blank(out, longest);
    }
    close_all(job);
    return;
  }
  const uint32_t senders = job.size - 1;
  uint8_t* in = allocate(job, longest * job.size);
  std::vector<peal_request*> requests(job.size, nullptr);
  std::vector<uint64_t> seen(job.size, 0);
  for (uint32_t rank = 1; rank < job.size; rank++) {
    requests[rank] = receive(job, rank, PEAL_ANY_TAG, in + rank * longest, longest);
  }
  for (uint64_t count = 0; count < rounds * senders; count++) {
    size_t rank = 0;
    EXPECT_OK(job, peal_wait_any(requests.data(), requests.size(), UINT64_MAX, &rank));
    EXPECT_TRUE(job, peal_request_tag(requests[rank]) == seen[rank]);  // in order
    EXPECT_TRUE(job, is_filled(in + rank * longest, peal_request_bytes(requests[rank]),
                               static_cast<uint32_t>(rank), seen[rank]));
    EXPECT_OK(job, peal_request_free(requests[rank]));
    requests[rank] = nullptr;
    if (++seen[rank] == rounds) continue;
    requests[rank] =
        receive(job, static_cast<uint32_t>(rank), PEAL_ANY_TAG, in + rank * longest, longest);
  }
  close_all(job);
}

// p2p-tags SEED: rank 0 sends in the order of tags; the others receive in one of their own, which
// for more than eight means that all receives are there before one is waited for. More of them are
// outstanding than the group has room for collectives, which go on all the same.
void run_p2p_tags(Job& job) {
  constexpr size_t kBytes = 3000;
  constexpr uint64_t kMany = 40;
  constexpr uint64_t kUnmatched = 8;
  std::mt19937 random(static_cast<uint32_t>(job.number(0, 1) * 1000 + job.rank));
  open_all(job);
  uint8_t* memory = allocate(job, kMany * kBytes);
  for (const uint64_t count : {kUnmatched, kMany}) {
    std::vector<uint64_t> tags(count);
    for (uint64_t i = 0; i < count; i++) tags[i] = i;
    std::vector<peal_request*> requests;
    if (job.rank == 0) {
      for (const uint64_t tag : tags) {
        fill(memory + tag * kBytes, kBytes, 0, tag);
        for (uint32_t to = 1; to < job.size; to++) {
          requests.push_back(send(job, to, tag, memory + tag * kBytes, kBytes - tag));
        }
      }
    } else {
      std::shuffle(tags.begin(), tags.end(), random);
      blank(memory, kMany * kBytes);
      for (const uint64_t tag : tags) {
        peal_request* one = receive(job, 0, tag, memory + tag * kBytes, kBytes);
        if (count == kUnmatched) EXPECT_OK(job, peal_wait(one));
        requests.push_back(one);
      }
    }
    for (int i = 0; i < 3; i++) EXPECT_OK(job, peal_barrier(job.group));
    EXPECT_OK(job, peal_wait_all(requests.data(), requests.size()));
    for (peal_request* each : requests) EXPECT_OK(job, peal_request_free(each));
    for (uint64_t tag = 0; job.rank != 0 && tag < count; tag++) {
      EXPECT_TRUE(job, is_filled(memory + tag * kBytes, kBytes - tag, 0, tag));
      EXPECT_TRUE(job, is_blank(memory + (tag + 1) * kBytes - tag, tag));
    }
    EXPECT_OK(job, peal_barrier(job.group));
  }
  close_all(job);
}

// p2p-memory BYTES: puts and gets into the memory of both neighbours, detached and not.
void run_p2p_memory(Job& job) {
  const size_t bytes = job.number(0, 100'000);
  open_all(job);
  uint8_t* own = allocate(job, bytes);
  uint8_t* window = allocate(job, 2 * bytes);  // the left one puts into the first half
  uint8_t* got = allocate(job, bytes);
  const std::vector<Remote> windows = everybodys(job, window, 2 * bytes);
  const Remote& right = windows[right_of(job)];
  for (uint64_t round = 0; round < 5; round++) {
    fill(own, bytes, job.rank, round);
    fill(window + bytes, bytes, job.rank, ~round);
    blank(got, bytes);
    job.barrier();
    for (size_t at = 0; at < bytes;) {  // in parts, so that the fence has something to wait for
      const size_t part = std::min<size_t>(bytes - at, bytes / 3 + 1);
      EXPECT_OK(job, peal_put(job.group, right_of(job), own + at, part, right.key,
                              right.offset + at, nullptr));
      at += part;
    }
    peal_request* fence = nullptr;
    EXPECT_OK(job, peal_fence(job.group, round % 2 == 0 ? PEAL_ALL_RANKS : right_of(job), &fence));
    peal_request* get = nullptr;
    EXPECT_OK(
        job, peal_get(job.group, right_of(job), got, bytes, right.key, right.offset + bytes, &get));
    end(job, fence);
    blank(own, bytes);  // it is ours again
    EXPECT_OK(job, peal_wait(get));
    EXPECT_TRUE(job, peal_request_bytes(get) == bytes);
    EXPECT_OK(job, peal_request_free(get));
    EXPECT_OK(job, peal_group_wait(job.group));
    EXPECT_TRUE(job, is_filled(got, bytes, right_of(job), ~round));
    job.barrier();
    EXPECT_TRUE(job, is_filled(window, bytes, left_of(job), round));
    job.barrier();
  }
  close_all(job);
}

// p2p-refused: what a card refuses names the rank whose memory it was; the group stays as it is.
void run_p2p_refused(Job& job) {
  constexpr size_t kBytes = 10'000;
  static uint8_t page[4096];
  open_all(job);
  uint8_t* own = allocate(job, kBytes);
  uint8_t* window = allocate(job, kBytes);
  peal_memory* readable = nullptr;
  EXPECT_OK(job, peal_register(job.card, page, sizeof(page), PEAL_READ, &readable));
  fill(page, sizeof(page), job.rank, 3);
  blank(window, kBytes);
  const Remote good = everybodys(job, window, kBytes)[right_of(job)];
  const Remote only_read = everybodys(job, page, sizeof(page))[right_of(job)];
  const std::string right = "rank " + std::to_string(right_of(job));
  const auto put = [&](uint32_t key, uint64_t offset, size_t bytes) {
    peal_request* request = nullptr;
    EXPECT_OK(job, peal_put(job.group, right_of(job), own, bytes, key, offset, &request));
    return request;
  };
  const auto get = [&](uint32_t key, uint64_t offset, size_t bytes) {
    peal_request* request = nullptr;
    EXPECT_OK(job, peal_get(job.group, right_of(job), own, bytes, key, offset, &request));
    return request;
  };
  const std::string key = ": the card knows no such memory key of this context: " + right;
  const std::string bounds = ": the range leaves its registered memory: " + right;
  const std::string access = ": the memory was not registered for this direction: " + right;
  for (int i = 0; i < 3; i++) {
    peal_request* request = put(good.key ^ 0x5a5a, good.offset, kBytes);
    EXPECT_ERROR(job, peal_wait(request), PEAL_ERR_BAD_KEY);
    EXPECT_TRUE(job, peal_request_failed_rank(request) == static_cast<int>(right_of(job)));
    EXPECT_TRUE(job, peal_request_bytes(request) == 0);
    end_with(job, request, PEAL_ERR_BAD_KEY, "put to " + right + key);
    end_with(job, get(good.key ^ 0x5a5a, 0, 8), PEAL_ERR_BAD_KEY, "get from " + right + key);
    end_with(job, put(good.key, good.offset + (1 << 20), 8), PEAL_ERR_BAD_BOUNDS,
             "put to " + right + bounds);
    end_with(job, put(good.key, ~uint64_t{0} - 3, 8), PEAL_ERR_BAD_BOUNDS,
             "put to " + right + bounds);
    end_with(job, get(only_read.key, only_read.offset + 1, sizeof(page)), PEAL_ERR_BAD_BOUNDS,
             "get from " + right + bounds);
    end_with(job, put(only_read.key, only_read.offset, 8), PEAL_ERR_BAD_ACCESS,
             "put to " + right + access);
    end(job, put(good.key ^ 0x5a5a, 0, 0));  // nothing: no memory is looked at
    end(job, get(good.key ^ 0x5a5a, 0, 0));
  }
  // Detached ones say it through the group; those that were good are in memory all the same.
  EXPECT_OK(job, peal_put(job.group, right_of(job), own, 8, good.key ^ 0x5a5a, 0, nullptr));
  peal_request* well = get(only_read.key, only_read.offset, sizeof(page));
  end(job, well);
  EXPECT_TRUE(job, is_filled(own, sizeof(page), right_of(job), 3));
  EXPECT_ERROR(job, peal_group_wait(job.group), PEAL_ERR_BAD_KEY);
  job.barrier();
  EXPECT_TRUE(job, is_blank(window, kBytes));
  // A name that is over is nobody's.
  EXPECT_OK(job, peal_unregister(readable));
  job.barrier();
  end_with(job, get(only_read.key, only_read.offset, 8), PEAL_ERR_BAD_KEY,
           "get from " + right + key);
  EXPECT_OK(job, peal_barrier(job.group));
  close_all(job);
}

// p2p-truncated: messages that are longer than their receives, short ones and such of many packets.
// Both are told, nothing is written, and what comes behind them is not affected.
void run_p2p_truncated(Job& job) {
  constexpr size_t kBytes = 50'000;
  open_all(job);
  uint8_t* out = allocate(job, kBytes);
  uint8_t* in = allocate(job, kBytes);
  const std::string right = "rank " + std::to_string(right_of(job));
  const std::string left = "rank " + std::to_string(left_of(job));
  uint64_t tag = 0;
  for (const size_t bytes : {size_t{1}, size_t{100}, kBytes}) {
    for (const bool late : {false, true}) {
      tag++;
      fill(out, bytes, job.rank, tag);
      blank(in, kBytes);
      peal_request* sent = late ? send(job, right_of(job), tag, out, bytes) : nullptr;
      peal_request* short_one = receive(job, left_of(job), tag, in, bytes - 1);
      if (!late) sent = send(job, right_of(job), tag, out, bytes);
      const std::string what =
          ", tag " + std::to_string(tag) + ": the message is longer than the receive: ";
      EXPECT_ERROR(job, peal_wait(short_one), PEAL_ERR_TRUNCATED);
      EXPECT_TRUE(job, peal_request_bytes(short_one) == bytes);
      end_with(job, short_one, PEAL_ERR_TRUNCATED,
               "receive from " + left + what + std::to_string(bytes) + " bytes");
      end_with(job, sent, PEAL_ERR_TRUNCATED,
               "send to " + right + what + std::to_string(bytes) + " bytes");
      EXPECT_TRUE(job, is_blank(in, kBytes));
      sent = send(job, right_of(job), tag, out, bytes);
      size_t received = 0;
      EXPECT_OK(job, peal_recv(job.group, left_of(job), tag, in, bytes, &received));
      EXPECT_TRUE(job, received == bytes && is_filled(in, bytes, left_of(job), tag));
      end(job, sent);
    }
  }
  close_all(job);
}

// p2p-death receive|message|put VICTIM: the others wait for that rank's message, are in the midst
// of a long one of its, or put into its memory, when it is killed.
void run_p2p_death(Job& job) {
  constexpr size_t kBytes = 64 << 20;
  const std::string& where = job.arguments.at(0);
  const auto victim = static_cast<uint32_t>(job.number(1, 1));
  open_all(job);
  uint8_t* memory = allocate(job, kBytes);
  const std::vector<Remote> all = everybodys(job, memory, kBytes);
  if (job.rank == victim) {
    std::vector<peal_request*> sent;
    for (uint32_t to = 0; to < job.size && where == "message"; to++) {
      if (to != victim) sent.push_back(send(job, to, 1, memory, kBytes));
    }
    job.barrier();
    // The first bytes of a long message are there, and most of them are not.
    int done = 0;
    for (uint32_t i = 0; i < 50 && !sent.empty(); i++) {
      EXPECT_OK(job, peal_test(sent[0], &done));
    }
    raise(SIGKILL);
  }
  peal_request* pending = nullptr;
  if (where == "put") {
    EXPECT_OK(job, peal_put(job.group, victim, memory, kBytes, all[victim].key, all[victim].offset,
                            &pending));
  } else {
    pending = receive(job, victim, 1, memory, kBytes);
  }
  // Of another rank, which does not die: the group is over for all.
  peal_request* other = receive(job, job.rank, 2, memory, 8);
  job.barrier();
  EXPECT_ERROR(job, peal_wait(pending), PEAL_ERR_PEER_DEAD);
  EXPECT_TRUE(job, peal_request_failed_rank(pending) == static_cast<int>(victim));
  end(job, other, PEAL_ERR_PEER_DEAD);
  end(job, send(job, job.rank, 3, memory, 8), PEAL_ERR_PEER_DEAD);
  EXPECT_TRUE(job, peal_group_failed_rank(job.group) == static_cast<int>(victim));
  printf("rank %u was told that rank %u is dead\n", job.rank, victim);
  peal_close(job.card);
}

}  // namespace peal::e2e
