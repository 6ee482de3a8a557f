/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program built when the API was at version 5, on today's library: a persistent request is started
 * again and again, and carries other bytes each time.
 */
#include "tests/e2e/older.h"

#define RANKS 4

int main(void) {
  void* memory = NULL;
  peal_request* request = NULL;
  const uint32_t first[PEAL_API_VERSION == 5 ? 1 : -1] = {33};

  struct older self = older_begin();
  must(self.size == RANKS, "ranks");
  older_make_group(&self, NULL);
  must(peal_alloc(self.card, (1 + RANKS) * sizeof(uint32_t), &memory) == PEAL_OK, "memory");
  uint32_t* send = memory;
  uint32_t* receive = send + 1;
  must(peal_allgather_init(self.group, send, receive, sizeof(*send), &request) == PEAL_OK, "init");
  for (uint32_t round = 0; round < 20; round++) {
    send[0] = first[0] + 1000 * round + self.rank;
    must(peal_start(request) == PEAL_OK, "start");
    must(peal_start(request) == PEAL_ERR_BUSY, "a second start");
    must(peal_wait(request) == PEAL_OK, "wait");
    for (uint32_t r = 0; r < RANKS; r++) must(receive[r] == first[0] + 1000 * round + r, "a block");
  }
  must(peal_request_free(request) == PEAL_OK, "free");
  older_end(&self);
  return 0;
}
