/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file of one page whose server (FUSE) does not answer when the page is written back: from stuck_file_begin() to
 * stuck_file_end() the kernel holds the page locked, and whoever wants to mark it dirty waits.
 */
#ifndef PEAL_TESTS_GUEST_STUCK_FILE_H
#define PEAL_TESTS_GUEST_STUCK_FILE_H

#include <stdint.h>
#include <sys/types.h>

struct stuck_file {
  uint8_t*
      page; /* mapped, writable; children do not have it. Not to be touched while it is stuck. */
  pid_t server;
  pid_t opener; /* for whom the page is written back */
  int written;  /* a byte comes when it is, */
  int answer;   /* and is wanted before the server answers */
};

void stuck_file_make(struct stuck_file* file);
/* The page has been written to, for example by being pinned. */
void stuck_file_begin(struct stuck_file* file);
void stuck_file_end(struct stuck_file* file);
/* After the end, when nothing is pinned any more. */
void stuck_file_drop(struct stuck_file* file);

#endif
