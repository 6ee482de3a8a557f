/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program built when the API was at version 7, on today's library: messages and puts round a ring,
 * and a program whose parameters end before the engine; what lies behind them is nobody's business.
 */
#include "tests/e2e/older.h"

#define RANKS 4

struct name {
  uint32_t key;
  uint64_t offset;
};

int main(void) {
  void* memory = NULL;
  peal_request* request = NULL;
  struct name names[RANKS];
  struct name own = {0};
  size_t received = 0;
  const uint32_t first[PEAL_API_VERSION == 7 ? 1 : -1] = {99};

  struct older self = older_begin();
  must(self.size == RANKS, "ranks");
  older_make_group(&self, NULL);
  must(peal_alloc(self.card, 3 * sizeof(uint32_t), &memory) == PEAL_OK, "memory");
  uint32_t* send = memory;
  uint32_t* message = send + 1;
  uint32_t* target = send + 2;
  must(peal_memory_name(self.card, target, sizeof(*target), &own.key, &own.offset) == PEAL_OK,
       "name");
  must(peal_oob_exchange(self.oob, &own, names, sizeof(own)) == 0, "names");

  const uint32_t next = (self.rank + 1) % RANKS;
  const uint32_t before = (self.rank + RANKS - 1) % RANKS;
  *send = first[0] + self.rank;
  must(peal_isend(self.group, next, 5, send, sizeof(*send), &request) == PEAL_OK, "send");
  must(peal_recv(self.group, before, 5, message, sizeof(*message), &received) == PEAL_OK,
       "receive");
  must(received == sizeof(*message) && *message == first[0] + before, "a message");
  must(peal_wait(request) == PEAL_OK, "sent");
  must(peal_request_free(request) == PEAL_OK, "free");
  must(peal_put(self.group, next, send, sizeof(*send), names[next].key, names[next].offset,
                &request) == PEAL_OK,
       "put");
  must(peal_wait(request) == PEAL_OK, "put");
  must(peal_request_free(request) == PEAL_OK, "free");
  must(peal_barrier(self.group) == PEAL_OK, "barrier");
  must(*target == first[0] + before, "what was put");

  struct {
    peal_program_params params;
    uint32_t behind[2];
  } long_ago = {{0}, {0xeeeeeeee, 0xeeeeeeee}};
  peal_program* program = NULL;
  long_ago.params.struct_bytes = sizeof(long_ago.params);
  must(peal_program_create(self.rank, RANKS, &long_ago.params, &program) == PEAL_OK, "create");
  must(peal_program_commit(self.group, program) == PEAL_OK, "commit: engine 0");
  must(peal_program_free(program) == PEAL_OK, "free");
  older_end(&self);
  return 0;
}
