/* SPDX-License-Identifier: BSD-2-Clause */
/* Every rank gives its number squared, the cards give all of them to all: pealrun -n 4 ./hello */
#include <peal/oob.h>
#include <peal/peal.h>
#include <stdio.h>
#include <stdlib.h>

static void must(peal_error error) {
  if (error == PEAL_OK) return;
  fprintf(stderr, "hello: %s: %s\n", peal_strerror(error), peal_last_error_text());
  exit(1);
}
int main(void) {
  uint32_t rank, size;
  peal_oob* oob; /* how the ranks find each other: pealrun serves it */
  peal_context* card;
  peal_group* group;
  void* memory;
  must(peal_launch_rank(&rank, &size));
  must(peal_oob_connect(NULL, rank, size, 0, &oob));
  must(peal_open(NULL, &card));
  must(peal_group_create(card, rank, size, peal_oob_exchange, oob, NULL, &group));
  must(peal_alloc(card, size * sizeof(uint32_t), &memory));
  ((uint32_t*)memory)[rank] = rank * rank;
  must(peal_allgather(group, PEAL_IN_PLACE, memory, sizeof(uint32_t)));
  for (uint32_t r = 0; r < size; r++) printf("rank %u has %u\n", rank, ((uint32_t*)memory)[r]);
  must(peal_group_destroy(group));
  peal_close(card); /* and all that was made from it */
  peal_oob_close(oob);
}
