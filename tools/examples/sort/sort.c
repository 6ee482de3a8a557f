/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sorting by samples. Each rank sorts its own keys and shows some of them (allgather); rank 0 says
 * where each rank's share begins (broadcast); how many keys each has for each goes around
 * (all-to-all), then the keys themselves (alltoallv), and each sorts what it has got. Whether it is
 * in order everybody sees from the ends of all shares, where an empty one has none (allgatherv).
 *
 *   pealrun -n 8 peal-sort [KEYS]
 */
#include <peal/oob.h>
#include <peal/peal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRanksMax = 64, kKeysMax = 10000000 };

static void must(peal_error error) {
  if (error == PEAL_OK) return;
  fprintf(stderr, "peal-sort: %s: %s\n", peal_strerror(error), peal_last_error_text());
  exit(1);
}

static int compare(const void* a, const void* b) {
  const uint64_t x = *(const uint64_t*)a;
  const uint64_t y = *(const uint64_t*)b;
  return (x > y) - (x < y);
}
static void sort(uint64_t* keys, size_t count) { qsort(keys, count, sizeof(*keys), compare); }

static uint64_t sum_of(const uint64_t* keys, size_t count) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; i++) sum += keys[i];
  return sum;
}

/* Memory for so many numbers that the card may reach; it is freed with the context. */
static uint64_t* allocate(peal_context* card, size_t count) {
  void* memory = NULL;
  must(peal_alloc(card, (count > 0 ? count : 1) * sizeof(uint64_t), &memory));
  return memory;
}

/* Zero where it is no number, which is refused. */
static unsigned long number(const char* text) {
  char* end = NULL;
  const unsigned long value = strtoul(text, &end, 10);
  return *text != '-' && *end == '\0' ? value : 0;
}

int main(int argc, char** argv) {
  const size_t count = argc > 1 ? number(argv[1]) : 100000;
  uint32_t rank = 0;
  uint32_t size = 0;
  peal_oob* oob = NULL;
  peal_context* card = NULL;
  peal_group* group = NULL;
  if (argc > 2 || count < 1 || count > kKeysMax) {
    fprintf(stderr, "peal-sort: expected one number of KEYS from 1 to %d\n", kKeysMax);
    return 2;
  }
  must(peal_launch_rank(&rank, &size));
  if (size > kRanksMax) {
    fprintf(stderr, "peal-sort: %u ranks, the limit is %d\n", size, kRanksMax);
    return 2;
  }
  must(peal_oob_connect(NULL, rank, size, 0, &oob));
  must(peal_open(NULL, &card));
  must(peal_group_create(card, rank, size, peal_oob_exchange, oob, NULL, &group));

  /* Most keys are small, so that shares of equal width would differ in length. */
  uint64_t* keys = allocate(card, count);
  uint64_t state = rank + 1;
  for (size_t i = 0; i < count; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    keys[i] = (state >> 33) * (state >> 33) >> (state >> 59);
  }
  sort(keys, count);

  uint64_t* samples = allocate(card, (size_t)size * size);
  for (uint32_t r = 0; r < size; r++) samples[rank * size + r] = keys[r * count / size];
  must(peal_allgather(group, PEAL_IN_PLACE, samples, size * sizeof(uint64_t)));

  uint64_t* begins = allocate(card, size);
  if (rank == 0) {
    sort(samples, (size_t)size * size);
    for (uint32_t r = 0; r < size; r++) begins[r] = r == 0 ? 0 : samples[r * size];
  }
  must(peal_bcast(group, begins, size * sizeof(uint64_t), 0));

  uint64_t* sent = allocate(card, size);
  uint64_t* received = allocate(card, size);
  size_t sent_bytes[kRanksMax];
  size_t received_bytes[kRanksMax];
  for (size_t i = 0, r = 0; r < size; r++) {
    const size_t first = i;
    while (i < count && (r + 1 == size || keys[i] < begins[r + 1])) i++;
    sent[r] = i - first;
    sent_bytes[r] = sent[r] * sizeof(uint64_t);
  }
  must(peal_alltoall(group, sent, received, sizeof(uint64_t)));

  const size_t share = sum_of(received, size);
  uint64_t* sorted = allocate(card, share);
  for (uint32_t r = 0; r < size; r++) received_bytes[r] = received[r] * sizeof(uint64_t);
  must(peal_alltoallv(group, keys, sent_bytes, NULL, sorted, received_bytes, NULL));
  sort(sorted, share);

  /* What each rank had and has: how many keys, and their sum. */
  uint64_t* totals = allocate(card, 4 * (size_t)size);
  const uint64_t own[] = {count, sum_of(keys, count), share, sum_of(sorted, share)};
  memcpy(totals + 4 * (size_t)rank, own, sizeof(own));
  must(peal_allgather(group, PEAL_IN_PLACE, totals, sizeof(own)));
  uint64_t all[4] = {0};
  size_t end_bytes[kRanksMax];
  size_t ends_before = 0;
  size_t ends = 0;
  for (uint32_t r = 0; r < size; r++) {
    for (int i = 0; i < 4; i++) all[i] += totals[4 * (size_t)r + i];
    const size_t number = totals[4 * (size_t)r + 2] > 0 ? 2 : 0;
    end_bytes[r] = number * sizeof(uint64_t);
    if (r < rank) ends_before += number;
    ends += number;
  }
  uint64_t* edges = allocate(card, ends);
  if (share > 0) {
    edges[ends_before] = sorted[0];
    edges[ends_before + 1] = sorted[share - 1];
  }
  must(peal_allgatherv(group, PEAL_IN_PLACE, edges, end_bytes, NULL));
  int right = all[0] == all[2] && all[1] == all[3];
  for (size_t i = 1; i < ends; i++) right = right && edges[i - 1] <= edges[i];
  if (rank == 0 || !right) {
    printf("rank %u has %zu of %zu keys, from %llu to %llu: %s\n", rank, share, (size_t)all[0],
           (unsigned long long)edges[0], (unsigned long long)edges[ends - 1],
           right ? "all are in order" : "which is WRONG");
  }
  must(peal_group_destroy(group));
  peal_close(card);
  peal_oob_close(oob);
  return right ? 0 : 1;
}
