/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program built when the API was at version 4, on today's library: blocks that differ in length
 * arrive where it says, and a request of its own stays done until it is freed.
 */
#include "tests/e2e/older.h"

#define RANKS 4

int main(void) {
  void* memory = NULL;
  size_t bytes[RANKS];
  size_t offsets[RANKS];
  peal_request* request = NULL;
  const uint32_t first[PEAL_API_VERSION == 4 ? 1 : -1] = {55};

  struct older self = older_begin();
  must(self.size == RANKS, "ranks");
  older_make_group(&self, NULL);
  must(peal_alloc(self.card, 2 * RANKS * RANKS * sizeof(uint32_t), &memory) == PEAL_OK, "memory");
  uint32_t* receive = memory;
  uint32_t* send = receive + RANKS * RANKS;
  for (uint32_t r = 0; r < RANKS; r++) {
    bytes[r] = (r + 1) * sizeof(*send);
    offsets[r] = (RANKS - 1 - r) * RANKS * sizeof(*send);
  }
  for (uint32_t round = 0; round < 10; round++) {
    for (uint32_t i = 0; i <= self.rank; i++)
      send[i] = first[0] + 1000 * round + 10 * self.rank + i;
    must(peal_iallgatherv(self.group, send, receive, bytes, offsets, &request) == PEAL_OK, "start");
    must(peal_wait(request) == PEAL_OK, "wait");
    must(peal_wait(request) == PEAL_OK, "wait again");
    must(peal_request_free(request) == PEAL_OK, "free");
    for (uint32_t r = 0; r < RANKS; r++) {
      for (uint32_t i = 0; i <= r; i++) {
        must(receive[(RANKS - 1 - r) * RANKS + i] == first[0] + 1000 * round + 10 * r + i,
             "a block");
      }
    }
  }
  older_end(&self);
  return 0;
}
