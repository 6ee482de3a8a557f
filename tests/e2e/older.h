/* SPDX-License-Identifier: BSD-2-Clause */
/* What the programs of all versions do alike: they find each other and the card, and leave. */
#ifndef PEAL_TESTS_E2E_OLDER_H
#define PEAL_TESTS_E2E_OLDER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peal/oob.h"

struct older {
  uint32_t rank;
  uint32_t size;
  peal_oob* oob;
  peal_context* card;
  peal_group* group;
};

static void must(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "older: %s: %s\n", what, peal_last_error_text());
  exit(1);
}

static struct older older_begin(void) {
  struct older self = {0};
  must(peal_launch_rank(&self.rank, &self.size) == PEAL_OK && self.size <= 64, "launch");
  must(peal_oob_connect(NULL, self.rank, self.size, 0, &self.oob) == PEAL_OK, "exchange");
  must(peal_open(NULL, &self.card) == PEAL_OK, "open");
  return self;
}

static void older_make_group(struct older* self, const peal_group_params* params) {
  must(peal_group_create(self->card, self->rank, self->size, peal_oob_exchange, self->oob, params,
                         &self->group) == PEAL_OK,
       "group");
}

static void older_end(struct older* self) {
  must(peal_group_destroy(self->group) == PEAL_OK, "destroy");
  peal_close(self->card);
  peal_oob_close(self->oob);
}

#endif
