/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations through the rings: two contexts of this guest as two ranks on one card, memory at odd
 * addresses across page boundaries, completions by interrupt and eventfd.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "tests/guest/device.h"

#define RANKS 2u
#define BLOCK 9973u
#define SKEW 4090u

struct rank {
  struct device device;
  struct peal_peer_address address;
  uint8_t* memory; /* send block, then receive blocks */
  uint32_t key;
  uint64_t sequence;
};

static uint8_t pattern(uint32_t origin, uint64_t round, uint32_t at) {
  return (uint8_t)((at * 2654435761u >> 13) ^ (origin * 97u + (uint32_t)round * 31u + 5u));
}

static void submit_operation(struct rank* rank, uint8_t operation, uint8_t algorithm,
                             uint32_t bytes) {
  struct peal_submission entry = {
      .operation = operation,
      .algorithm = algorithm,
      .member = rank->address.member,
      .sequence = rank->sequence,
      .cookie = 0xc00c1e00ull + rank->sequence,
      .block_bytes = bytes,
      .send_offset = 0,
      .receive_offset = BLOCK,
      .send_key = bytes ? rank->key : 0,
      .receive_key = bytes ? rank->key : 0,
  };

  submit(&rank->device, &entry);
  rank->sequence++;
}

static void expect_status(struct rank* rank, uint16_t status) {
  struct peal_completion entry;

  wait_completion(&rank->device, &entry);
  CHECK_EQ(entry.status, status);
  CHECK_EQ(entry.sequence, rank->sequence - 1);
  CHECK_EQ(entry.cookie, 0xc00c1e00ull + rank->sequence - 1);
  CHECK_EQ(entry.member, rank->address.member);
}

static void make_group(struct rank* ranks) {
  uint32_t r;

  for (r = 0; r < RANKS; r++) {
    size_t bytes = SKEW + (1 + RANKS) * BLOCK;

    memset(&ranks[r], 0, sizeof(ranks[r]));
    device_open(&ranks[r].device);
    ranks[r].memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(ranks[r].memory != MAP_FAILED);
    ranks[r].memory += SKEW;
    CHECK_EQ(register_memory(ranks[r].device.fd, ranks[r].memory, (1 + RANKS) * BLOCK,
                             PEAL_ACCESS_FLAGS, &ranks[r].key),
             PEAL_STATUS_OK);
    CHECK_EQ(reserve_group(ranks[r].device.fd, RANKS, r, &ranks[r].address), PEAL_STATUS_OK);
  }
  for (r = 0; r < RANKS; r++) {
    struct peal_peer_address peers[2] = {ranks[(r + 1) % RANKS].address,
                                         ranks[(r + 1) % RANKS].address};

    CHECK_EQ(connect_group(ranks[r].device.fd, ranks[r].address.member, 77, 2, peers),
             PEAL_STATUS_OK);
  }
}

static void allgather(struct rank* ranks, uint8_t algorithm, uint64_t round) {
  uint32_t r, origin, at;

  for (r = 0; r < RANKS; r++) {
    for (at = 0; at < BLOCK; at++) ranks[r].memory[at] = pattern(r, round, at);
    memset(ranks[r].memory + BLOCK, 0xee, RANKS * BLOCK);
    submit_operation(&ranks[r], PEAL_OPERATION_ALLGATHER, algorithm, BLOCK);
  }
  for (r = 0; r < RANKS; r++) {
    expect_status(&ranks[r], PEAL_STATUS_OK);
    /* The user's again. */
    memset(ranks[r].memory, 0xdd, BLOCK);
    for (origin = 0; origin < RANKS; origin++) {
      for (at = 0; at < BLOCK; at++)
        CHECK_EQ(ranks[r].memory[BLOCK + origin * BLOCK + at], pattern(origin, round, at));
    }
  }
}

static void end_group(struct rank* ranks) {
  uint32_t r;

  for (r = 0; r < RANKS; r++) {
    device_close(&ranks[r].device);
    CHECK_EQ(munmap(ranks[r].memory - SKEW, SKEW + (1 + RANKS) * BLOCK), 0);
  }
}

void try_small_group(void) {
  struct rank ranks[RANKS];

  make_group(ranks);
  allgather(ranks, PEAL_ALGORITHM_RECURSIVE_DOUBLING, 0);
  end_group(ranks);
}

/* Nothing that a process writes into its window may harm anybody but itself. */
static void try_wild_tail(struct rank* healthy) {
  struct device wild;
  uint32_t key, status;
  uint8_t byte;

  device_open(&wild);
  __atomic_store_n(&wild.ring.host->indices.submission_tail, 1ull << 40, __ATOMIC_RELEASE);
  device_doorbell(&wild);
  /* The card ends the context: commands for it fail, that of others do not. (Keys would run out.) */
  do {
    status = register_memory(wild.fd, &byte, 1, PEAL_ACCESS_READ, &key);
    if (status == PEAL_STATUS_OK) status = unregister_memory(wild.fd, key);
  } while (status == PEAL_STATUS_OK);
  CHECK_EQ(status, PEAL_STATUS_CLOSED);
  device_close(&wild);
  allgather(healthy, PEAL_ALGORITHM_RECURSIVE_DOUBLING, 1000);
}

void test_rings(void) {
  struct rank ranks[RANKS];
  struct peal_submission bad = {.operation = 200};
  struct peal_completion entry;
  uint64_t round;
  uint32_t r;

  make_group(ranks);
  for (round = 0; round < 30; round++) {
    allgather(ranks, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, 2 * round);
    allgather(ranks, PEAL_ALGORITHM_RECURSIVE_DOUBLING, 2 * round + 1);
    for (r = 0; r < RANKS; r++)
      submit_operation(&ranks[r], PEAL_OPERATION_BARRIER, PEAL_ALGORITHM_DISSEMINATION, 0);
    for (r = 0; r < RANKS; r++) expect_status(&ranks[r], PEAL_STATUS_OK);
  }
  bad.member = ranks[0].address.member;
  bad.sequence = ranks[0].sequence;
  submit(&ranks[0].device, &bad);
  wait_completion(&ranks[0].device, &entry);
  CHECK_EQ(entry.status, PEAL_STATUS_BAD_OPCODE);
  try_wild_tail(ranks);
  /* A rank whose process goes away is dead, and named. */
  submit_operation(&ranks[0], PEAL_OPERATION_BARRIER, PEAL_ALGORITHM_DISSEMINATION, 0);
  device_close(&ranks[1].device);
  wait_completion(&ranks[0].device, &entry);
  CHECK_EQ(entry.status, PEAL_STATUS_PEER_DEAD);
  CHECK_EQ(entry.failed_rank, 1);
  device_close(&ranks[0].device);
  wait_pinned(0);
}

/* As many contexts as the card has, and again when they are closed. */
void test_contexts(void) {
  int fds[4096];
  int round, count, first = 0;

  for (round = 0; round < 3; round++) {
    for (count = 0; count < 4096; count++) {
      fds[count] = open_context();
      if (fds[count] < 0) break;
    }
    CHECK_EQ(errno, EBUSY);
    if (round == 0) first = count;
    CHECK(count >= 2);
    CHECK_EQ(count, first);
    while (count > 0) CHECK_EQ(close(fds[--count]), 0);
  }
}
