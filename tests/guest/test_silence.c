/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A card that does not answer, and is not dead yet: who does not need it does not wait for it, and
 * who waits can be killed. The test outside stops and continues the card when told to. Nothing here
 * is a matter of time: while a command waits, the card is known to be silent.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/guest/device.h"

#define PATIENCE_MS 120000

static uint8_t byte; /* to register */

/* From kFirst on it is the first use of the file. */
enum Command { kCounters, kRegister, kReserve, kClose, kFirst, kFirstAsk, kFirstMap, kCommands };

/* A command that the silent card does not answer. */
static void command(int fd, enum Command which) {
  const struct peal_admin_command counters = make_command(PEAL_ADMIN_READ_COUNTERS);
  const struct peal_admin_command reserve = reserve_command(2, 0);
  const struct peal_admin_command memory = register_command((uintptr_t)&byte, 1, PEAL_ACCESS_READ);

  if (which == kCounters) try_ask(fd, &counters);
  if (which == kRegister) try_ask(fd, &memory);
  if (which == kReserve) try_ask(fd, &reserve);
  if (which == kClose) close(fd);
  if (which == kFirst) take_context(fd);
  if (which == kFirstAsk) try_ask(fd, &counters);
  if (which == kFirstMap) mmap(NULL, PEAL_PAGE_BYTES, PROT_READ, MAP_SHARED, fd, PEAL_MMAP_WINDOW);
}

/* With a pipe, by which it is told to go on. */
static pid_t fork_told(int go[2]) {
  pid_t child;

  CHECK_EQ(pipe(go), 0);
  child = fork();
  CHECK(child >= 0);
  return child;
}

static void await_word(const int go[2]) {
  char unused = 0;

  CHECK_EQ(read(go[0], &unused, 1), 1);
}

static pid_t begin(enum Command which) {
  int go[2];
  pid_t child = fork_told(go);

  if (child == 0) {
    int fd = which < kFirst ? open_context() : open_device();

    CHECK(fd >= 0);
    await_word(go);
    command(fd, which);
    for (;;) pause();
  }
  close(go[0]);
  /* Its file is open, for it reads the byte; the card is stopped by now or will be. */
  CHECK_EQ(dup2(go[1], 100 + (int)which), 100 + (int)which);
  close(go[1]);
  return child;
}

static uint32_t register_byte(int fd) {
  const struct peal_admin_command command = register_command((uintptr_t)&byte, 1, PEAL_ACCESS_READ);
  struct peal_admin_reply reply;

  CHECK_EQ(ask(fd, &command, &reply), 0);
  CHECK_EQ(reply.status, PEAL_STATUS_OK);
  return reply.u.register_memory.key;
}

static uint32_t unregister(int fd, uint32_t key) {
  struct peal_admin_command command = make_command(PEAL_ADMIN_UNREGISTER_MEMORY);
  struct peal_admin_reply reply;

  command.u.unregister_memory.key = key;
  CHECK_EQ(ask(fd, &command, &reply), 0);
  return reply.status;
}

/* Of a file that its parent has as well. */
static pid_t begin_unregister(int fd, uint32_t key, int go[2]) {
  pid_t child = fork_told(go);

  if (child == 0) {
    await_word(go);
    unregister(fd, key);
    for (;;) pause();
  }
  return child;
}

/* The card has let go of it, and gives the key again when it has given all others of its place. */
static void the_key_comes_again(int fd, uint32_t key) {
  uint32_t next;
  int left = 1 << 17;

  CHECK_EQ(unregister(fd, key), PEAL_STATUS_BAD_KEY);
  do {
    CHECK(left-- > 0);
    next = register_byte(fd);
    CHECK_EQ(unregister(fd, next), PEAL_STATUS_OK);
  } while (next != key);
}

static void nobody_waits_for_the_mailbox(int fd, struct device* other) {
  struct peal_ioctl_kick kick = {HEADER(peal_ioctl_kick)};
  struct pollfd wait[2] = {{fd, POLLIN, 0}, {other->fd, POLLIN, 0}};

  CHECK_EQ(poll(wait, 2, 0), 0);
  CHECK_EQ(ioctl(fd, PEAL_IOCTL_KICK, &kick), 0);
  CHECK_EQ(ioctl(other->fd, PEAL_IOCTL_KICK, &kick), 0);
  CHECK_EQ(ioctl(other->fd, PEAL_IOCTL_INFO, &other->info), 0);
  other->window[8192 - 1]++; /* a page fault */
}

void test_silence(void) {
  int contexts = count_contexts(), left = PATIENCE_MS, status, what;
  pid_t children[kCommands], unregisters;
  struct device other;
  int fd = open_context();
  int go[2];
  uint32_t key;

  CHECK(fd >= 0);
  key = register_byte(fd);
  unregisters = begin_unregister(fd, key, go);
  device_open(&other);
  for (what = 0; what < kCommands; what++) children[what] = begin((enum Command)what);
  /* The children that are to have a context have it when the card has so many less. */
  while (count_contexts() != contexts - 2 - kFirst) CHECK(left-- > 0);
  ask_outside("stop the card");
  CHECK_EQ(write(go[1], "x", 1), 1); /* the first, and the only one that the card has */
  wait_blocked(unregisters);
  for (what = 0; what < kCommands; what++) {
    CHECK_EQ(write(100 + what, "x", 1), 1);
    wait_blocked(children[what]);
  }
  nobody_waits_for_the_mailbox(fd, &other);
  CHECK_EQ(kill(unregisters, SIGKILL), 0);
  CHECK_EQ(waitpid(unregisters, &status, 0), unregisters);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  for (what = 0; what < kCommands; what++) {
    struct pollfd wait = {fd, POLLIN, 0};

    CHECK_EQ(kill(children[what], SIGKILL), 0);
    CHECK_EQ(waitpid(children[what], &status, 0), children[what]);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    /* Not because the card had been given up meanwhile. */
    CHECK_EQ(poll(&wait, 1, 0), 0);
  }
  ask_outside("continue the card");
  the_key_comes_again(fd, key);
  CHECK_EQ(close(fd), 0);
  device_close(&other);
  wait_pinned(0);
  /* Whatever was left behind has been seen to. */
  left = PATIENCE_MS;
  while (count_contexts() != contexts) {
    CHECK(left-- > 0);
    poll(NULL, 0, 1);
  }
}
