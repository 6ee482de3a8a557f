/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The card is taken away while its users leave: processes that end because of the removal, calls
 * that hang in their own memory (userfaultfd), and storms of everything a process may do against
 * removal, unbinding and reset.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/guest/device.h"

#define PAGE 4096ul
#define LEAVERS 8
#define PATIENCE_MS 120000

/* Holds memory, a group and a window until the device is gone, and ends at once then. */
static void leave_on_hangup(int ready) {
  static uint8_t memory[8 * PAGE] __attribute__((aligned(4096)));
  struct peal_peer_address address;
  struct device device;
  struct pollfd wait;
  uint32_t key;

  device_open(&device);
  CHECK_EQ(register_memory(device.fd, memory, sizeof(memory), PEAL_ACCESS_FLAGS, &key),
           PEAL_STATUS_OK);
  CHECK_EQ(reserve_group(device.fd, 2, 0, &address), PEAL_STATUS_OK);
  CHECK_EQ(write(ready, "x", 1), 1);
  wait = (struct pollfd){device.fd, 0, 0};
  CHECK_EQ(poll(&wait, 1, PATIENCE_MS), 1);
  CHECK_EQ(wait.revents & POLLHUP, POLLHUP);
  _exit(0);
}

static void wait_all_succeed(int count) {
  int status;

  while (count-- > 0) {
    CHECK(wait(&status) > 0);
    CHECK_EQ(status, 0);
  }
}

/* The files are closed while the removal that woke their owners is under way. */
void test_hangup(const char* pci_folder) {
  int ends[2], i;
  char byte;

  CHECK_EQ(pipe(ends), 0);
  for (i = 0; i < LEAVERS; i++) {
    pid_t child = fork();

    CHECK(child >= 0);
    if (child == 0) leave_on_hangup(ends[1]);
  }
  for (i = 0; i < LEAVERS; i++) CHECK_EQ(read(ends[0], &byte, 1), 1);
  remove_device(pci_folder);
  wait_all_succeed(LEAVERS);
  wait_pinned(0);
  close(ends[0]);
  close(ends[1]);
}

/* A page that is not there until somebody says so. */
struct late_page {
  int handler; /* userfaultfd */
  uint8_t* page;
};

static void late_page_make(struct late_page* late) {
  struct uffdio_api api = {.api = UFFD_API};
  struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};

  late->handler = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
  CHECK(late->handler >= 0);
  CHECK_EQ(ioctl(late->handler, UFFDIO_API, &api), 0);
  late->page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(late->page != MAP_FAILED);
  range.range = (struct uffdio_range){(uintptr_t)late->page, PAGE};
  CHECK_EQ(ioctl(late->handler, UFFDIO_REGISTER, &range), 0);
}

/* Returns when somebody waits for the page. */
static void late_page_wait(const struct late_page* late) {
  struct uffd_msg message;

  CHECK_EQ(read(late->handler, &message, sizeof(message)), sizeof(message));
  CHECK_EQ(message.event, UFFD_EVENT_PAGEFAULT);
}

static void late_page_come(const struct late_page* late, const uint8_t* contents) {
  struct uffdio_copy copy = {.dst = (uintptr_t)late->page, .src = (uintptr_t)contents, .len = PAGE};

  CHECK_EQ(ioctl(late->handler, UFFDIO_COPY, &copy), 0);
}

struct caller {
  int fd;
  struct late_page late;
  pthread_t thread;
  int error;
};

/* The ways to the caller's memory beside the structure itself: a command to be read, a reply to be
 * written. (This kernel pins no page of a userfaultfd.) */
static void* call_with_late_command(void* data) {
  struct caller* caller = data;
  struct peal_admin_reply reply;

  caller->error =
      ask(caller->fd, (const struct peal_admin_command*)(void*)caller->late.page, &reply) ? errno
                                                                                          : 0;
  return NULL;
}

static void* call_with_late_reply(void* data) {
  struct caller* caller = data;
  const struct peal_admin_command command = make_command(PEAL_ADMIN_READ_COUNTERS);

  caller->error =
      ask(caller->fd, &command, (struct peal_admin_reply*)(void*)caller->late.page) ? errno : 0;
  return NULL;
}

static void* (*const calls[])(void*) = {call_with_late_command, call_with_late_reply};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

static void call(struct caller* caller, size_t which, int fd) {
  late_page_make(&caller->late);
  caller->fd = fd;
  CHECK_EQ(pthread_create(&caller->thread, NULL, calls[which], caller), 0);
  late_page_wait(&caller->late);
}

/*
 * Calls that wait for the caller's own pages. All are on one context: none holds up another (each
 * is seen to wait before the next begins). Then the device is removed while they wait: removal
 * returns before any page has come.
 */
void test_late(const char* pci_folder) {
  const struct peal_admin_command command = make_command(PEAL_ADMIN_READ_COUNTERS);
  static uint8_t contents[PAGE];
  struct caller callers[CALLS];
  int fd = open_device();
  size_t i;

  CHECK(fd >= 0);
  memcpy(contents, &command, sizeof(command));
  memset(callers, 0, sizeof(callers));
  for (i = 0; i < CALLS; i++) call(&callers[i], i, fd);
  remove_device(pci_folder);
  for (i = 0; i < CALLS; i++) {
    late_page_come(&callers[i].late, contents);
    CHECK_EQ(pthread_join(callers[i].thread, NULL), 0);
    CHECK_EQ(callers[i].error, ENODEV);
    close(callers[i].late.handler);
  }
  CHECK_EQ(close(fd), 0);
  CHECK_EQ(pinned_pages(), 0);
}

/*
 * A storm: processes that do everything in any order and end in any way, while the device is
 * unbound, bound, removed and found again, and while its card falls silent and comes back. Whatever
 * fails has to fail with one of the errors that peal-driver(4) names.
 */
#define STORMERS 6
/* Between two disturbances each gets on by this many calls, so that each kind of disturbance meets
 * each kind of call. */
#define STEPS_BETWEEN 40

struct storm {
  volatile uint64_t steps; /* calls that were carried out, all processes together */
  volatile int over;
};

static uint32_t draw(uint64_t* state) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(*state >> 33);
}

/* 1: done. 0: the device is gone, or dead, or full. */
static int tolerate(int result) {
  if (result >= 0) return 1;
  CHECK(errno == ENODEV || errno == EIO || errno == EBUSY || errno == ENOSPC || errno == ENOENT ||
        errno == ENXIO || errno == ENOMEM);
  return 0;
}

static void touch_window(int fd) {
  struct peal_ioctl_info info = {.header = HEADER(peal_ioctl_info)};
  uint8_t* window;

  if (!tolerate(ioctl(fd, PEAL_IOCTL_INFO, &info))) return;
  window = mmap(NULL, info.window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PEAL_MMAP_WINDOW);
  if (!tolerate(window == MAP_FAILED ? -1 : 0)) return;
  window[PAGE + 2000]++;
  (void)*(volatile uint8_t*)window;
  /* Half of the mappings stay until the file is closed, or the process ends. */
  if (window[PAGE + 2000] & 1) CHECK_EQ(munmap(window, info.window_bytes), 0);
}

static void storm_register(int fd, uint8_t* memory, uint32_t pages, uint32_t* key) {
  /* The kernel's DMA debugging counts writers, up to seven. */
  const struct peal_admin_command command = register_command(
      (uintptr_t)memory, pages * PAGE, *key ? PEAL_ACCESS_READ : PEAL_ACCESS_FLAGS);
  struct peal_admin_reply reply;

  if (tolerate(ask(fd, &command, &reply)) && reply.status == PEAL_STATUS_OK)
    *key = reply.u.register_memory.key;
}

static void storm_eventfd(int fd, int event) {
  struct peal_ioctl_eventfd argument = {.header = HEADER(peal_ioctl_eventfd), .fd = event};

  tolerate(ioctl(fd, PEAL_IOCTL_EVENTFD, &argument));
}

static void storm_unregister(int fd, uint32_t key) {
  struct peal_admin_command command = make_command(PEAL_ADMIN_UNREGISTER_MEMORY);

  command.u.unregister_memory.key = key;
  tolerate(try_ask(fd, &command));
}

/* Half of the groups stay until the file is closed. */
static void storm_reserve(int fd, int abandons) {
  const struct peal_admin_command reserve = reserve_command(2, 0);
  struct peal_admin_command abandon = make_command(PEAL_ADMIN_ABANDON_GROUP);
  struct peal_admin_reply reply;

  if (!tolerate(ask(fd, &reserve, &reply)) || reply.status != PEAL_STATUS_OK || !abandons) return;
  abandon.u.abandon.member = reply.u.reserve.address.member;
  tolerate(try_ask(fd, &abandon));
}

static void storm_call(int fd, uint32_t what, uint8_t* memory, uint32_t* key) {
  struct peal_ioctl_kick kick = {HEADER(peal_ioctl_kick)};
  struct pollfd wait = {fd, POLLIN, 0};
  int event;

  /* Groups are the rarest: each takes megabytes. */
  if (what % 8 == 2 && what / 8 % 4 != 0) what = 5;
  switch (what % 8) {
    case 0:
      storm_register(fd, memory, 1 + what / 8 % 16, key);
      break;
    case 1:
      storm_unregister(fd, *key);
      break;
    case 2:
      storm_reserve(fd, what & 32);
      break;
    case 3:
      touch_window(fd);
      break;
    case 4:
      event = eventfd(0, EFD_CLOEXEC);
      storm_eventfd(fd, event);
      if (what & 8) storm_eventfd(fd, -1);
      close(event);
      break;
    case 5:
      tolerate(ioctl(fd, PEAL_IOCTL_KICK, &kick));
      break;
    case 6:
      CHECK(poll(&wait, 1, 0) >= 0);
      break;
    default:
      wait.events = 0;
      CHECK(poll(&wait, 1, 1) >= 0);
      break;
  }
}

/* One process: some files with some calls each, one in four of them shared with a child from before its first use, then an
 * end of some kind. */
static void storm_process(struct storm* storm, uint64_t seed) {
  uint8_t* memory =
      mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uint32_t rounds = draw(&seed) % 20, key = 0;
  pid_t child;
  int status;

  CHECK(memory != MAP_FAILED);
  while (rounds-- > 0 && !storm->over) {
    uint32_t left = draw(&seed) % 30;
    int fd = open_device();

    if (!tolerate(fd)) {
      poll(NULL, 0, 1);
      continue;
    }
    child = draw(&seed) % 4 == 0 ? fork() : -1;
    while (left-- > 0 && !storm->over) {
      storm_call(fd, draw(&seed) ^ !child, memory, &key);
      __atomic_add_fetch(&storm->steps, 1, __ATOMIC_RELAXED);
    }
    if (child == 0) _exit(0);
    if (child > 0) {
      CHECK_EQ(kill(child, draw(&seed) & 1 ? SIGKILL : 0), 0);
      CHECK_EQ(waitpid(child, &status, 0), child);
      CHECK(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    }
    if (draw(&seed) % 4 != 0) CHECK_EQ(close(fd), 0);
  }
  if (draw(&seed) % 4 == 0) kill(getpid(), SIGKILL);
  _exit(0);
}

static void storm_keeper(struct storm* storm, uint64_t seed) {
  while (!storm->over) {
    pid_t child = fork();
    int status;

    CHECK(child >= 0);
    if (child == 0) storm_process(storm, seed);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(status == 0 || WIFSIGNALED(status));
    CHECK(!WIFSIGNALED(status) || WTERMSIG(status) == SIGKILL);
    draw(&seed);
  }
  _exit(0);
}

static void let_storm(struct storm* storm) {
  uint64_t wanted = storm->steps + STORMERS * STEPS_BETWEEN;
  int left = PATIENCE_MS;

  while (storm->steps < wanted) {
    CHECK(left-- > 0);
    poll(NULL, 0, 1);
  }
}

void test_storm(const char* pci_folder) {
  const char* device = strrchr(pci_folder, '/') + 1;
  struct storm* storm = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  uint64_t i;

  CHECK(storm != MAP_FAILED);
  for (i = 0; i < STORMERS; i++) {
    pid_t keeper = fork();

    CHECK(keeper >= 0);
    if (keeper == 0) storm_keeper(storm, i + 1);
  }
  for (i = 0; i < 12; i++) {
    let_storm(storm);
    if (i % 4 == 3) {
      card_dies_and_returns();
    } else if (i % 2 == 0) {
      write_file("/sys/bus/pci/drivers/peal/unbind", device);
      write_file("/sys/bus/pci/drivers/peal/bind", device);
    } else {
      remove_device(pci_folder);
      write_file("/sys/bus/pci/rescan", "1");
    }
    wait_open();
  }
  let_storm(storm);
  storm->over = 1;
  wait_all_succeed(STORMERS);
  wait_pinned(0);
  printf("storm: %llu calls\n", (unsigned long long)storm->steps);
}
