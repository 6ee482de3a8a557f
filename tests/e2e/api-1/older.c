/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program built when the API was at version 1, on today's library: it gets what it knows, no byte
 * beyond, and the same results.
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
  peal_memory* memory = NULL;
  struct {
    peal_card_info info;
    unsigned char beyond[64];
  } card_info;
  peal_group_params params = {sizeof(params), 0, PEAL_ALLGATHER_RECURSIVE_DOUBLING};
  uint32_t blocks[PEAL_API_VERSION == 1 ? 64 : -1] = {0};
  uint32_t own;

  must(peal_launch_rank(&rank, &size) == PEAL_OK && size <= 64, "launch");
  must(peal_oob_connect(NULL, rank, size, 0, &oob) == PEAL_OK, "exchange");
  must(peal_open(NULL, &card) == PEAL_OK, "open");
  memset(&card_info, 0xa5, sizeof(card_info));
  card_info.info.struct_bytes = sizeof(card_info.info);
  must(peal_card_query(card, &card_info.info) == PEAL_OK, "query");
  must(card_info.info.struct_bytes == sizeof(card_info.info) && card_info.info.ranks_max >= size,
       "its own fields");
  for (size_t i = 0; i < sizeof(card_info.beyond); i++)
    must(card_info.beyond[i] == 0xa5, "a byte beyond");
  must(peal_group_create(card, rank, size, peal_oob_exchange, oob, &params, &group) == PEAL_OK,
       "group");
  must(peal_register(card, blocks, sizeof(blocks), PEAL_READ | PEAL_WRITE, &memory) == PEAL_OK,
       "register");
  for (uint32_t round = 0; round < 10; round++) {
    peal_request* request = NULL;
    own = 1000 * round + rank;
    blocks[rank] = own;
    must(peal_iallgather(group, PEAL_IN_PLACE, blocks, sizeof(own), &request) == PEAL_OK, "post");
    must(peal_wait(request) == PEAL_OK && peal_request_free(request) == PEAL_OK, "wait");
    for (uint32_t r = 0; r < size; r++) must(blocks[r] == 1000 * round + r, "result");
    must(peal_barrier(group) == PEAL_OK, "barrier"); /* before anybody's next block is written */
  }
  must(peal_unregister(memory) == PEAL_OK, "unregister");
  must(peal_group_destroy(group) == PEAL_OK, "destroy");
  peal_close(card);
  peal_oob_close(oob);
  return 0;
}
