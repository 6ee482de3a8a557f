/* SPDX-License-Identifier: BSD-2-Clause */
/* Group commands with foreign and stale handles, and that channels come back. */
#include <poll.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "tests/guest/device.h"

#define PAGE 4096
#define MEMBERS_MAX 4096
#define LEFT_BYTES (24ul << 20)

static uint32_t members[MEMBERS_MAX];

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

/* Pages that a member's channels take, and how many pages those of all members may take. */
static long pages_each, pages_limit;

static void learn_sizes(void) {
  struct peal_card_page* card;
  struct device device;
  struct sysinfo info;

  device_open(&device);
  card = (struct peal_card_page*)(void*)device.window;
  pages_each = (long)(card->device.channels * (uint64_t)card->device.channel_bytes / PAGE);
  device_close(&device);
  CHECK_EQ(sysinfo(&info), 0);
  pages_limit = (long)(info.totalram * info.mem_unit / PAGE / 2);
}

/* As many as one context gets, which are in members[]. */
static long reserve_all(int fd) {
  struct peal_admin_command command = reserve_command(4, 0);
  struct peal_admin_reply reply;
  long count = 0;

  while (ask(fd, &command, &reply) == 0) {
    if (reply.status != PEAL_STATUS_OK) {
      CHECK_EQ(reply.status, PEAL_STATUS_NO_RESOURCES);
      return count;
    }
    CHECK(count < MEMBERS_MAX);
    members[count++] = reply.u.reserve.address.member;
  }
  /* Not the card, the driver: there are no channels for one more. */
  CHECK_EQ(errno, ENOMEM);
  CHECK_EQ(driver_count("channel_pages"), count * pages_each);
  CHECK(count * pages_each <= pages_limit);
  CHECK((count + 1) * pages_each > pages_limit);
  return count;
}

/* Closing may end after close(). */
static void wait_channels(long wanted) {
  int left = 6000;

  while (driver_count("channel_pages") > wanted && left-- > 0) poll(NULL, 0, 10);
  CHECK_EQ(driver_count("channel_pages"), wanted);
}

/* Whoever has it all hinders the others, and his own next one; what he gives back is there at once. */
static void try_beside_all(int fd, int other_fd) {
  struct peal_admin_command command = reserve_command(4, 0);
  long count = reserve_all(fd), refused = driver_count("channels_refused");
  int i;

  CHECK(count >= 4);
  /* Where the card has fewer members than there is memory for, it is the card that refuses. */
  if ((count + 1) * pages_each > pages_limit) {
    CHECK_ERRNO(try_ask(other_fd, &command), ENOMEM);
    CHECK_EQ(driver_count("channels_refused"), refused + 1);
  }
  for (i = 0; i < 2; i++) CHECK_EQ(abandon_group(fd, members[i]), PEAL_STATUS_OK);
  try_small_group();
}

/* A process has nearly all memory: there is less for channels than they may take. Nobody is killed for them. */
static void try_scarcity(int fd) {
  struct peal_admin_command command = reserve_command(4, 0);
  struct peal_admin_reply reply;
  long killed = vmstat("oom_kill"), count = 0;
  struct sysinfo info;
  size_t bytes;
  void* memory;

  CHECK_EQ(sysinfo(&info), 0);
  CHECK(info.freeram * info.mem_unit > LEFT_BYTES);
  bytes = info.freeram * info.mem_unit - LEFT_BYTES;
  memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  CHECK(memory != MAP_FAILED);
  while (ask(fd, &command, &reply) == 0 && reply.status == PEAL_STATUS_OK) count++;
  CHECK_ERRNO(try_ask(fd, &command), ENOMEM); /* the driver, not the card */
  CHECK((count + 1) * pages_each <= pages_limit);
  CHECK_EQ(vmstat("oom_kill"), killed);
  CHECK_EQ(munmap(memory, bytes), 0);
}

void test_groups(void) {
  int fd = open_device();
  int other_fd = open_device();
  long all;

  CHECK(fd >= 0 && other_fd >= 0);
  learn_sizes();
  try_reserve(fd);
  try_connect(fd, other_fd);
  try_many(fd);
  try_beside_all(fd, other_fd);
  CHECK_EQ(close(fd), 0);
  /* What a closed context left is there for the next one. */
  all = reserve_all(other_fd);
  CHECK_EQ(close(other_fd), 0);
  fd = open_device();
  CHECK(fd >= 0);
  CHECK_EQ(reserve_all(fd), all);
  CHECK_EQ(close(fd), 0);
  wait_channels(0);
  fd = open_device();
  CHECK(fd >= 0);
  try_scarcity(fd);
  CHECK_EQ(close(fd), 0);
  wait_channels(0);
  try_small_group();
}
