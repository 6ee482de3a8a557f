/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program built when the API was at version 3, on today's library: what it says of a group is
 * taken and no byte beyond, its rules are obeyed, and it gets the same results.
 */
#include "tests/e2e/older.h"

int main(void) {
  void* memory = NULL;
  struct {
    peal_group_params params;
    unsigned char beyond[64];
  } group_params;
  uint32_t* send = NULL;
  uint32_t* receive = NULL;
  const uint32_t first[PEAL_API_VERSION == 3 ? 1 : -1] = {77};

  struct older self = older_begin();
  memset(&group_params, 0xa5, sizeof(group_params));
  group_params.params.struct_bytes = sizeof(group_params.params);
  group_params.params.flags = 0;
  group_params.params.allgather_algorithm = PEAL_ALLGATHER_AUTO;
  group_params.params.algorithms = self.rank == 0 ? "alltoall:direct" : "alltoall:0-:n0-:direct";
  older_make_group(&self, &group_params.params);
  must(peal_alloc(self.card, 2 * self.size * sizeof(*send), &memory) == PEAL_OK, "memory");
  send = memory;
  receive = send + self.size;
  for (uint32_t round = 0; round < 10; round++) {
    const uint32_t root = round % self.size;
    for (uint32_t r = 0; r < self.size; r++) send[r] = 10000 * round + 100 * self.rank + r;
    must(peal_alltoall(self.group, send, receive, sizeof(*send)) == PEAL_OK, "alltoall");
    for (uint32_t r = 0; r < self.size; r++) {
      must(receive[r] == 10000 * round + 100 * r + self.rank, "a block of an alltoall");
    }
    if (self.rank == root) send[0] = first[0] + round;
    must(peal_bcast(self.group, send, sizeof(*send), root) == PEAL_OK, "bcast");
    must(send[0] == first[0] + round, "the bytes of a bcast");
  }
  must(peal_bcast(self.group, send, sizeof(*send), self.size) == PEAL_ERR_BAD_ROOT,
       "a root beyond");
  older_end(&self);
  return 0;
}
