/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An open file takes its context at its first use, once, whoever of its threads and processes comes
 * first, whichever call it is, and whatever becomes of who asked.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/guest/device.h"

#define PATIENCE_MS 120000
#define THREADS 6
#define ROUNDS 40

enum Use { kInfo, kAsk, kEventfd, kMap, kUses };

/* 0, or -1 and errno. */
static int use(int fd, enum Use which) {
  const struct peal_admin_command counters = make_command(PEAL_ADMIN_READ_COUNTERS);
  struct peal_ioctl_eventfd none = {.header = HEADER(peal_ioctl_eventfd), .fd = -1};
  void* page;

  if (which == kInfo) return take_context(fd);
  if (which == kAsk) return try_ask(fd, &counters);
  if (which == kEventfd) return ioctl(fd, PEAL_IOCTL_EVENTFD, &none);
  page = mmap(NULL, PEAL_PAGE_BYTES, PROT_READ, MAP_SHARED, fd, PEAL_MMAP_WINDOW);
  if (page == MAP_FAILED) return -1;
  CHECK_EQ(*(volatile uint32_t*)page, PEAL_WINDOW_MAGIC);
  return munmap(page, PEAL_PAGE_BYTES);
}

static int opened(void) {
  int fd = open_device();

  CHECK(fd >= 0);
  return fd;
}

static int kick(int fd) {
  struct peal_ioctl_kick argument = {HEADER(peal_ioctl_kick)};

  return ioctl(fd, PEAL_IOCTL_KICK, &argument);
}

static void end_well(pid_t child) {
  int status;

  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
}

static void each_use_is_a_first(int contexts) {
  int first, next;

  for (first = 0; first < kUses; first++) {
    int fd = opened();

    CHECK_EQ(count_contexts(), contexts);
    CHECK_EQ(use(fd, (enum Use)first), 0);
    CHECK_EQ(count_contexts(), contexts - 1);
    for (next = 0; next < kUses; next++) CHECK_EQ(use(fd, (enum Use)next), 0);
    CHECK_EQ(count_contexts(), contexts - 1);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(count_contexts(), contexts);
  }
}

/* What the driver refuses anyway, it refuses without a context, and kicks and polls need none. */
static void what_takes_none(int fd) {
  struct peal_ioctl_eventfd wild = {.header = HEADER(peal_ioctl_eventfd), .fd = -2};
  struct peal_admin_command command = make_command(PEAL_ADMIN_READ_COUNTERS);
  struct pollfd wait = {fd, POLLIN, 0};

  CHECK_EQ(poll(&wait, 1, 0), 0);
  CHECK_EQ(kick(fd), 0);
  CHECK_ERRNO(ioctl(fd, PEAL_IOCTL_EVENTFD, &wild), EINVAL);
  command.tag = 1;
  CHECK_ERRNO(try_ask(fd, &command), EINVAL);
  command = make_command(PEAL_ADMIN_OPEN_CONTEXT);
  CHECK_ERRNO(try_ask(fd, &command), EPERM);
  CHECK_ERRNO(ask(fd, NULL, NULL), EFAULT);
}

/* With every context taken a file can still be opened, and gets one as soon as there is one. */
static void busy_is_not_for_ever(int contexts) {
  int fds[4096], count = 0, fd = opened(), which;

  while (count < contexts) CHECK((fds[count++] = open_context()) >= 0);
  for (which = 0; which < kUses; which++) CHECK_ERRNO(use(fd, (enum Use)which), EBUSY);
  what_takes_none(fd);
  CHECK_EQ(close(fds[--count]), 0);
  CHECK_EQ(use(fd, kMap), 0);
  while (count > 0) CHECK_EQ(close(fds[--count]), 0);
  CHECK_EQ(close(fd), 0);
}

/* A child's first use is its parent's, and outlives the child. */
static void child_first(int contexts) {
  static uint8_t memory[PEAL_PAGE_BYTES];
  int fd = opened();
  pid_t child = fork();
  uint32_t key;

  CHECK(child >= 0);
  if (child == 0) {
    CHECK_EQ(register_memory(fd, memory, sizeof(memory), PEAL_ACCESS_READ, &key), PEAL_STATUS_OK);
    _exit(0);
  }
  end_well(child);
  CHECK_EQ(count_contexts(), contexts - 1);
  CHECK_EQ(register_memory(fd, memory, sizeof(memory), PEAL_ACCESS_READ, &key), PEAL_STATUS_OK);
  CHECK_EQ(count_contexts(), contexts - 1);
  CHECK_EQ(close(fd), 0);
  wait_pinned(0);
}

struct racer {
  pthread_barrier_t* start;
  pthread_t thread;
  enum Use which;
  int fd;
};

static void* race(void* data) {
  struct racer* racer = data;

  pthread_barrier_wait(racer->start);
  CHECK_EQ(use(racer->fd, racer->which), 0);
  return NULL;
}

/* All come first, each in its way. */
static void threads_first(int contexts) {
  struct racer racers[THREADS];
  pthread_barrier_t start;
  int round, i;

  CHECK_EQ(pthread_barrier_init(&start, NULL, THREADS), 0);
  for (round = 0; round < ROUNDS; round++) {
    int fd = opened();

    for (i = 0; i < THREADS; i++) {
      racers[i] =
          (struct racer){.start = &start, .which = (enum Use)((round + i) % kUses), .fd = fd};
      CHECK_EQ(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
    }
    for (i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(racers[i].thread, NULL), 0);
    if (round == 0) CHECK_EQ(count_contexts(), contexts - 1);
    CHECK_EQ(close(fd), 0);
  }
  CHECK_EQ(pthread_barrier_destroy(&start), 0);
  CHECK_EQ(count_contexts(), contexts);
}

void test_first_use(void) {
  int contexts = count_contexts();

  each_use_is_a_first(contexts);
  busy_is_not_for_ever(contexts);
  child_first(contexts);
  threads_first(contexts);
  CHECK_EQ(count_contexts(), contexts);
}

/* What a program says that finds every context taken; it has to fail. */
void test_full(const char* command) {
  int fds[4096], count = 0;

  while (count < 4096 && (fds[count] = open_context()) >= 0) count++;
  CHECK_EQ(errno, EBUSY);
  fflush(stdout);
  CHECK(system(command) != 0);
  while (count > 0) CHECK_EQ(close(fds[--count]), 0);
}

/* A child that comes first on the silent card, and is seen to wait. Ends with `wanted`. */
static pid_t first_in_child(int fd, enum Use which, int wanted) {
  pid_t child = fork();

  CHECK(child >= 0);
  if (child == 0) {
    int error = use(fd, which) ? errno : 0;

    CHECK_EQ(error, wanted);
    _exit(0);
  }
  wait_blocked(child);
  return child;
}

static void kill_child(pid_t child) {
  int status;

  CHECK_EQ(kill(child, SIGKILL), 0);
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Opens in a child: who is stuck there is found by our patience. */
static void opens_at_once(const char* path) {
  struct pollfd wait;
  int ends[2];
  pid_t child;

  CHECK_EQ(pipe(ends), 0);
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    CHECK(open(path, O_RDWR | O_CLOEXEC) >= 0);
    CHECK_EQ(write(ends[1], "x", 1), 1);
    _exit(0);
  }
  wait = (struct pollfd){ends[0], POLLIN, 0};
  CHECK_EQ(poll(&wait, 1, PATIENCE_MS), 1);
  end_well(child);
  close(ends[0]);
  close(ends[1]);
}

/* The kernel opens all misc devices under one lock. */
static void nobody_else_waits(int fd) {
  struct pollfd wait = {fd, POLLIN, 0};

  CHECK_EQ(poll(&wait, 1, 0), 0);
  CHECK_EQ(kick(fd), 0);
  opens_at_once(DEVICE);
  opens_at_once("/dev/userfaultfd");
}

/*
 * Who comes first is killed while the card is silent, and who waits behind it on the same file; the
 * file lives on, and once the card speaks it gets one context. What the card had opened for the dead
 * is closed again.
 */
void test_half_way(void) {
  int contexts = count_contexts(), left = PATIENCE_MS, fd = opened(), other = opened();
  struct pollfd wait = {fd, POLLIN, 0};
  pid_t first, second, third, elsewhere;

  ask_outside("stop the card");
  first = first_in_child(fd, kInfo, 0);
  second = first_in_child(fd, kAsk, 0);
  elsewhere = first_in_child(other, kMap, 0);
  nobody_else_waits(fd);
  /* One waits for another file's command, one for its own file's, one for the card. */
  kill_child(elsewhere);
  kill_child(second);
  kill_child(first);
  elsewhere = first_in_child(other, kMap, 0);
  third = first_in_child(fd, kEventfd, 0);
  nobody_else_waits(fd);
  /* Not because the card had been given up meanwhile. */
  CHECK_EQ(poll(&wait, 1, 0), 0);
  ask_outside("continue the card");
  end_well(third);
  end_well(elsewhere);
  CHECK_EQ(use(fd, kMap), 0);
  while (count_contexts() != contexts - 2) {
    CHECK(left-- > 0);
    poll(NULL, 0, 1);
  }
  CHECK_EQ(close(fd), 0);
  CHECK_EQ(close(other), 0);
  CHECK_EQ(count_contexts(), contexts);
}

/*
 * A removal while the card is silent, and files are in their first use: they are sent home at once,
 * and while the removal waits for the card nobody else does.
 */
void test_silent_removal(const char* pci_folder) {
  int fd = opened(), other = opened(), i;
  pid_t children[3], remover;
  struct pollfd wait;

  ask_outside("stop the card");
  children[0] = first_in_child(fd, kMap, ENODEV);
  children[1] = first_in_child(fd, kInfo, ENODEV);
  children[2] = first_in_child(other, kAsk, ENODEV);
  remover = fork();
  CHECK(remover >= 0);
  if (remover == 0) {
    remove_device(pci_folder);
    _exit(0);
  }
  wait = (struct pollfd){fd, 0, 0};
  CHECK_EQ(poll(&wait, 1, PATIENCE_MS), 1);
  CHECK_EQ(wait.revents & POLLHUP, POLLHUP);
  for (i = 0; i < 3; i++) end_well(children[i]);
  wait_blocked(remover);
  for (i = 0; i < kUses; i++) CHECK_ERRNO(use(fd, (enum Use)i), ENODEV);
  CHECK_ERRNO(open_device(), ENOENT);
  opens_at_once("/dev/userfaultfd");
  ask_outside("continue the card");
  end_well(remover);
  CHECK_EQ(close(fd), 0);
  CHECK_EQ(close(other), 0);
  CHECK_EQ(pinned_pages(), 0);
}
