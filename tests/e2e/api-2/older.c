/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program built when the API was at version 2, on today's library: what it says of a group is
 * taken and no byte beyond, and it gets the statistics that it knows and the same results.
 */
#include "tests/e2e/older.h"

int main(void) {
  struct {
    peal_group_params params;
    unsigned char beyond[64];
  } group_params;
  struct {
    peal_statistics statistics;
    unsigned char beyond[64];
  } read;
  uint32_t blocks[PEAL_API_VERSION == 2 ? 64 : -1] = {0};

  struct older self = older_begin();
  memset(&group_params, 0xa5, sizeof(group_params)); /* whoever reads beyond finds no pointer */
  group_params.params.struct_bytes = sizeof(group_params.params);
  group_params.params.flags = PEAL_GROUP_REGISTER;
  group_params.params.allgather_algorithm = PEAL_ALLGATHER_AUTO;
  older_make_group(&self, &group_params.params);
  for (uint32_t round = 0; round < 10; round++) {
    blocks[self.rank] = 1000 * round + self.rank;
    must(peal_iallgather(self.group, PEAL_IN_PLACE, blocks, sizeof(blocks[0]), NULL) == PEAL_OK,
         "post");
    must(peal_group_wait(self.group) == PEAL_OK, "wait");
    for (uint32_t r = 0; r < self.size; r++) must(blocks[r] == 1000 * round + r, "result");
    must(peal_barrier(self.group) == PEAL_OK,
         "barrier"); /* before anybody's next block is written */
  }
  memset(&read, 0xa5, sizeof(read));
  read.statistics.struct_bytes = sizeof(read.statistics);
  must(peal_read_statistics(self.card, &read.statistics) == PEAL_OK, "statistics");
  must(read.statistics.posted == 20 && read.statistics.completed == 20 &&
           read.statistics.failed == 0 && read.statistics.regions == 1,
       "its own statistics");
  for (size_t i = 0; i < sizeof(read.beyond); i++) must(read.beyond[i] == 0xa5, "a byte beyond");
  older_end(&self);
  return 0;
}
