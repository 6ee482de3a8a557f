/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program built when the API was at version 2, on today's library: what it says of a group is
 * taken and no byte beyond, and it gets the statistics that it knows and the same results.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peal/oob.h"

static void must(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "older: %s: %s\n", what, peal_last_error_text());
  exit(1);
}

int main(void) {
  uint32_t rank = 0;
  uint32_t size = 0;
  peal_oob* oob = NULL;
  peal_context* card = NULL;
  peal_group* group = NULL;
  struct {
    peal_group_params params;
    unsigned char beyond[64];
  } group_params;
  struct {
    peal_statistics statistics;
    unsigned char beyond[64];
  } read;
  uint32_t blocks[PEAL_API_VERSION == 2 ? 64 : -1] = {0};

  must(peal_launch_rank(&rank, &size) == PEAL_OK && size <= 64, "launch");
  must(peal_oob_connect(NULL, rank, size, 0, &oob) == PEAL_OK, "exchange");
  must(peal_open(NULL, &card) == PEAL_OK, "open");
  memset(&group_params, 0xa5, sizeof(group_params)); /* whoever reads beyond finds no pointer */
  group_params.params.struct_bytes = sizeof(group_params.params);
  group_params.params.flags = PEAL_GROUP_REGISTER;
  group_params.params.allgather_algorithm = PEAL_ALLGATHER_AUTO;
  must(peal_group_create(card, rank, size, peal_oob_exchange, oob, &group_params.params, &group) ==
           PEAL_OK,
       "group");
  for (uint32_t round = 0; round < 10; round++) {
    blocks[rank] = 1000 * round + rank;
    must(peal_iallgather(group, PEAL_IN_PLACE, blocks, sizeof(blocks[0]), NULL) == PEAL_OK, "post");
    must(peal_group_wait(group) == PEAL_OK, "wait");
    for (uint32_t r = 0; r < size; r++) must(blocks[r] == 1000 * round + r, "result");
    must(peal_barrier(group) == PEAL_OK, "barrier"); /* before anybody's next block is written */
  }
  memset(&read, 0xa5, sizeof(read));
  read.statistics.struct_bytes = sizeof(read.statistics);
  must(peal_read_statistics(card, &read.statistics) == PEAL_OK, "statistics");
  must(read.statistics.posted == 20 && read.statistics.completed == 20 &&
           read.statistics.failed == 0 && read.statistics.regions == 1,
       "its own statistics");
  for (size_t i = 0; i < sizeof(read.beyond); i++) must(read.beyond[i] == 0xa5, "a byte beyond");
  must(peal_group_destroy(group) == PEAL_OK, "destroy");
  peal_close(card);
  peal_oob_close(oob);
  return 0;
}
