/* SPDX-License-Identifier: BSD-2-Clause */
/* Group commands with foreign and stale handles, and that channels come back. */
#include <unistd.h>

#include "tests/guest/device.h"

static void try_reserve(int fd) {
  struct peal_admin_command command = reserve_command(2, 0);
  struct peal_peer_address address;

  /* Channels are the driver's to give. */
  command.u.reserve.channel_pages = 0x1000;
  CHECK_ERRNO(try_ask(fd, &command), EINVAL);
  command.u.reserve.channel_pages = 0;
  command.u.reserve.channel_list_bytes = 4096;
  CHECK_ERRNO(try_ask(fd, &command), EINVAL);
  CHECK_EQ(reserve_group(fd, 0, 0, &address), PEAL_STATUS_BAD_RANK);
  CHECK_EQ(reserve_group(fd, 2, 2, &address), PEAL_STATUS_BAD_RANK);
  CHECK_EQ(reserve_group(fd, ~0u, 0, &address), PEAL_STATUS_BAD_RANK);
  CHECK_EQ(reserve_group(fd, 2, ~0u, &address), PEAL_STATUS_BAD_RANK);
}

static void try_connect(int fd, int other_fd) {
  struct peal_peer_address peers[PEAL_PEERS_MAX] = {0};
  struct peal_peer_address address;
  struct peal_admin_command command = make_command(PEAL_ADMIN_CONNECT_GROUP);
  struct peal_admin_reply reply;
  uint32_t member;

  CHECK_EQ(reserve_group(fd, 2, 1, &address), PEAL_STATUS_OK);
  CHECK_EQ(address.rank, 1);
  member = address.member;
  /* The driver does not look: these verdicts are the card's. */
  command.u.connect.member = member;
  command.u.connect.group = 1;
  command.u.connect.peer_count = PEAL_PEERS_MAX + 1;
  CHECK_EQ(answer(fd, &command, &reply), PEAL_STATUS_BAD_RANK);
  command.u.connect.peer_count = ~0u;
  CHECK_EQ(answer(fd, &command, &reply), PEAL_STATUS_BAD_RANK);

  CHECK_EQ(connect_group(other_fd, member, 1, 2, peers), PEAL_STATUS_BAD_GROUP);
  CHECK_EQ(connect_group(fd, ~0u, 1, 2, peers), PEAL_STATUS_BAD_GROUP);
  CHECK_EQ(connect_group(fd, member + (1u << 16), 1, 2, peers), PEAL_STATUS_BAD_GROUP);
  CHECK(connect_group(fd, member, 1, 4, peers) != PEAL_STATUS_OK);
  CHECK_EQ(abandon_group(other_fd, member), PEAL_STATUS_BAD_GROUP);
  CHECK_EQ(abandon_group(fd, member), PEAL_STATUS_OK);
  CHECK_EQ(abandon_group(fd, member), PEAL_STATUS_BAD_GROUP);
}

/* Many more than the card has members: each must be given back, card memory and channels alike. */
static void try_many(int fd) {
  struct peal_peer_address address;
  int i;

  for (i = 0; i < 200; i++) {
    CHECK_EQ(reserve_group(fd, 4, (uint32_t)i % 4, &address), PEAL_STATUS_OK);
    CHECK_EQ(abandon_group(fd, address.member), PEAL_STATUS_OK);
  }
}

static long reserve_all(int fd) {
  struct peal_peer_address address;
  long count = 0;
  uint32_t status;

  do {
    status = reserve_group(fd, 4, 0, &address);
    count += status == PEAL_STATUS_OK;
  } while (status == PEAL_STATUS_OK);
  CHECK_EQ(status, PEAL_STATUS_NO_RESOURCES);
  return count;
}

void test_groups(void) {
  int fd = open_device();
  int other_fd = open_device();
  long all;

  CHECK(fd >= 0 && other_fd >= 0);
  try_reserve(fd);
  try_connect(fd, other_fd);
  try_many(fd);
  all = reserve_all(fd);
  CHECK(all >= 4);
  CHECK_EQ(close(fd), 0);
  /* What a closed context left is there for the next one. */
  CHECK_EQ(reserve_all(other_fd), all);
  CHECK_EQ(close(other_fd), 0);
}
