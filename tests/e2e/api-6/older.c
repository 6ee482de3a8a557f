/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program built when the API was at version 6, on today's library: a program of the card's tells
 * the next rank that it is there, and puts a number into its memory by the name that it gave.
 */
#include "tests/e2e/older.h"

#define RANKS 4

struct name {
  uint32_t key;
  uint64_t offset;
};

int main(void) {
  void* memory = NULL;
  peal_program* program = NULL;
  peal_request* request = NULL;
  struct name names[RANKS];
  struct name own = {0};
  uint32_t ready = 0;
  uint32_t arrived = 0;
  const uint32_t first[PEAL_API_VERSION == 6 ? 1 : -1] = {77};

  struct older self = older_begin();
  must(self.size == RANKS, "ranks");
  older_make_group(&self, NULL);
  must(peal_alloc(self.card, 2 * sizeof(uint32_t), &memory) == PEAL_OK, "memory");
  uint32_t* send = memory;
  uint32_t* receive = send + 1;
  must(peal_memory_name(self.card, receive, sizeof(*receive), &own.key, &own.offset) == PEAL_OK,
       "name");
  must(peal_oob_exchange(self.oob, &own, names, sizeof(own)) == 0, "names");

  const uint32_t next = (self.rank + 1) % RANKS;
  const uint32_t before = (self.rank + RANKS - 1) % RANKS;
  must(peal_program_create(self.rank, RANKS, NULL, &program) == PEAL_OK, "create");
  must(peal_program_counter(program, next, &ready) == PEAL_OK, "counter");
  must(peal_program_counter(program, before, &arrived) == PEAL_OK, "counter");
  const peal_program_notice is_ready = {NULL, ready, 1};
  const peal_program_notice has_arrived = {NULL, arrived, 1};
  must(peal_program_signal(program, before, &is_ready, PEAL_NO_COUNT) == PEAL_OK, "signal");
  must(peal_program_wait(program, ready, 1) == PEAL_OK, "wait");
  must(peal_program_put(program, next, send, sizeof(*send), names[next].key, names[next].offset,
                        &has_arrived, PEAL_NO_COUNT) == PEAL_OK,
       "put");
  must(peal_program_wait(program, arrived, 1) == PEAL_OK, "wait");
  must(peal_program_commit(self.group, program) == PEAL_OK, "commit");
  for (uint32_t round = 0; round < 20; round++) {
    *send = first[0] + 1000 * round + self.rank;
    must(peal_program_start(program, 1, &request) == PEAL_OK, "start");
    must(peal_wait(request) == PEAL_OK, "end");
    must(*receive == first[0] + 1000 * round + before, "a number");
    must(peal_request_free(request) == PEAL_OK, "free");
    must(peal_barrier(self.group) == PEAL_OK, "barrier");
  }
  must(peal_program_free(program) == PEAL_OK, "free");
  older_end(&self);
  return 0;
}
