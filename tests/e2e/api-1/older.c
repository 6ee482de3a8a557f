/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program built when the API was at version 1, on today's library: it gets what it knows, no byte
 * beyond, and the same results.
 */
#include "tests/e2e/older.h"

int main(void) {
  peal_memory* memory = NULL;
  struct {
    peal_card_info info;
    unsigned char beyond[64];
  } card_info;
  peal_group_params params = {sizeof(params), 0, PEAL_ALLGATHER_RECURSIVE_DOUBLING};
  uint32_t blocks[PEAL_API_VERSION == 1 ? 64 : -1] = {0};
  uint32_t own;

  struct older self = older_begin();
  memset(&card_info, 0xa5, sizeof(card_info));
  card_info.info.struct_bytes = sizeof(card_info.info);
  must(peal_card_query(self.card, &card_info.info) == PEAL_OK, "query");
  must(card_info.info.struct_bytes == sizeof(card_info.info) &&
           card_info.info.ranks_max >= self.size,
       "its own fields");
  for (size_t i = 0; i < sizeof(card_info.beyond); i++)
    must(card_info.beyond[i] == 0xa5, "a byte beyond");
  older_make_group(&self, &params);
  must(peal_register(self.card, blocks, sizeof(blocks), PEAL_READ | PEAL_WRITE, &memory) == PEAL_OK,
       "register");
  for (uint32_t round = 0; round < 10; round++) {
    peal_request* request = NULL;
    own = 1000 * round + self.rank;
    blocks[self.rank] = own;
    must(peal_iallgather(self.group, PEAL_IN_PLACE, blocks, sizeof(own), &request) == PEAL_OK,
         "post");
    must(peal_wait(request) == PEAL_OK && peal_request_free(request) == PEAL_OK, "wait");
    for (uint32_t r = 0; r < self.size; r++) must(blocks[r] == 1000 * round + r, "result");
    must(peal_barrier(self.group) == PEAL_OK,
         "barrier"); /* before anybody's next block is written */
  }
  must(peal_unregister(memory) == PEAL_OK, "unregister");
  older_end(&self);
  return 0;
}
