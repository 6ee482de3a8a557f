/* SPDX-License-Identifier: BSD-2-Clause */
/* The card dies, or is pulled out, while processes use it. */
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/guest/device.h"

#define PAGE 4096ul
#define PATIENCE_MS 120000

static void expect_event(int fd, short wanted) {
  struct pollfd wait = {fd, POLLIN, 0};

  CHECK_EQ(poll(&wait, 1, PATIENCE_MS), 1);
  CHECK_EQ(wait.revents & wanted, wanted);
}

static void everything_fails(int fd, int wanted) {
  struct peal_ioctl_info info = {.header = HEADER(peal_ioctl_info)};
  struct peal_ioctl_kick kick = {HEADER(peal_ioctl_kick)};
  struct peal_ioctl_eventfd event = {.header = HEADER(peal_ioctl_eventfd), .fd = -1};
  uint8_t byte;
  const struct peal_admin_command commands[] = {
      register_command((uintptr_t)&byte, 1, PEAL_ACCESS_READ),
      make_command(PEAL_ADMIN_UNREGISTER_MEMORY),
      reserve_command(2, 0),
      make_command(PEAL_ADMIN_CONNECT_GROUP),
      make_command(PEAL_ADMIN_ABANDON_GROUP),
      make_command(PEAL_ADMIN_READ_COUNTERS),
  };
  size_t i;

  CHECK_ERRNO(ioctl(fd, PEAL_IOCTL_INFO, &info), wanted);
  CHECK_ERRNO(ioctl(fd, PEAL_IOCTL_KICK, &kick), wanted);
  CHECK_ERRNO(ioctl(fd, PEAL_IOCTL_EVENTFD, &event), wanted);
  for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
    CHECK_ERRNO(try_ask(fd, &commands[i]), wanted);
}

/*
 * After a reset the card gives its windows to others, and here all of them are given out. Whoever
 * mapped one before sees nothing and changes nothing; the test outlives the attempt.
 */
static void old_window_is_blank(struct device* old) {
  static struct device others[4096];
  int count = 0, i;

  while (count < 4096) {
    int fd = open_context();

    if (fd < 0) break;
    CHECK_EQ(close(fd), 0);
    device_open(&others[count]);
    others[count].window[PAGE + 2000] = 42;
    count++;
  }
  CHECK_EQ(errno, EBUSY);
  CHECK(count >= 2);
  CHECK_EQ(*(volatile uint32_t*)(void*)old->window, 0);
  CHECK_EQ(old->window[PAGE + 2000], 0);
  /* A forged tail, and a doorbell with it. */
  memset(old->window + PAGE, 0x55, old->info.window_bytes - PAGE);
  if (old->doorbell) *old->doorbell = old->info.doorbell_value;
  for (i = 0; i < count; i++) {
    struct peal_ioctl_info info = {.header = HEADER(peal_ioctl_info)};

    CHECK_EQ(others[i].window[PAGE + 2000], 42);
    CHECK_EQ(others[i].ring.host->indices.submission_tail, 0);
    CHECK_EQ(ioctl(others[i].fd, PEAL_IOCTL_INFO, &info), 0);
    device_close(&others[i]);
  }
}

/* A file that had nothing of the card when it died has its first use yet to come. */
static void nothing_lost(int unused) {
  struct pollfd wait = {unused, POLLIN, 0};

  CHECK_EQ(poll(&wait, 1, 0), 0);
  CHECK_EQ(take_context(unused), 0);
  CHECK_EQ(close(unused), 0);
}

/*
 * Prints "ready" when the card may be stopped, "dead" when it was found dead, and waits until it is
 * back. The memory stays pinned until the card has acknowledged a reset.
 */
void test_death(void) {
  static uint8_t memory[4 * PAGE] __attribute__((aligned(4096)));
  struct peal_peer_address address;
  struct device device;
  int fd, left = PATIENCE_MS / 10, unused;
  uint32_t key;

  device_open(&device);
  unused = open_device();
  CHECK(unused >= 0);
  CHECK_EQ(register_memory(device.fd, memory, sizeof(memory), PEAL_ACCESS_FLAGS, &key),
           PEAL_STATUS_OK);
  CHECK_EQ(reserve_group(device.fd, 2, 0, &address), PEAL_STATUS_OK);
  printf("ready\n");
  fflush(stdout);
  expect_event(device.fd, POLLERR);
  expect_event(device.event, POLLIN);
  everything_fails(device.fd, EIO);
  expect_event(unused, POLLERR);
  everything_fails(unused, EIO);
  CHECK_ERRNO(open_device(), EIO);
  CHECK_EQ(pinned_pages(), 4);
  printf("dead\n");
  fflush(stdout);
  do {
    CHECK(left-- > 0);
    poll(NULL, 0, 10);
    fd = open_device();
  } while (fd < 0);
  /* Back, with nothing of what was: the old context stays lost, its memory is its own again. */
  wait_pinned(0);
  everything_fails(device.fd, EIO);
  nothing_lost(unused);
  old_window_is_blank(&device);
  CHECK_EQ(register_memory(fd, memory, sizeof(memory), PEAL_ACCESS_FLAGS, &key), PEAL_STATUS_OK);
  CHECK_EQ(close(fd), 0);
  device_close(&device);
  wait_pinned(0);
}

/* Prints "ready" when the card may be killed; leaves when it was found dead, with memory that
 * nobody may unpin. */
void test_orphan(void) {
  static uint8_t memory[4 * PAGE] __attribute__((aligned(4096)));
  struct device device;
  uint32_t key;

  device_open(&device);
  CHECK_EQ(register_memory(device.fd, memory, sizeof(memory), PEAL_ACCESS_FLAGS, &key),
           PEAL_STATUS_OK);
  printf("ready\n");
  fflush(stdout);
  expect_event(device.fd, POLLERR);
  device_close(&device);
  CHECK_EQ(pinned_pages(), 4);
}

struct busy {
  int fd;
  volatile int running;
  int result;
};

/* Commands without end, until the device is gone. */
static void* keep_busy(void* data) {
  static uint8_t memory[16 * PAGE];
  struct busy* busy = data;
  const struct peal_admin_command in =
      register_command((uintptr_t)memory, sizeof(memory), PEAL_ACCESS_FLAGS);
  struct peal_admin_command out = make_command(PEAL_ADMIN_UNREGISTER_MEMORY);
  struct peal_admin_reply reply;

  for (;;) {
    if (ask(busy->fd, &in, &reply) != 0) break;
    out.u.unregister_memory.key = reply.u.register_memory.key;
    if (ask(busy->fd, &out, &reply) != 0) break;
    busy->running = 1;
  }
  busy->result = errno;
  return NULL;
}

void test_unplug(const char* pci_folder) {
  static uint8_t memory[8 * PAGE] __attribute__((aligned(4096)));
  struct peal_peer_address address;
  struct device device, untouched;
  struct busy busy = {0};
  int unused = open_device();
  pthread_t thread;
  uint32_t key;

  CHECK(unused >= 0);
  device_open(&device);
  device_open(&untouched);
  CHECK_EQ(register_memory(device.fd, memory, sizeof(memory), PEAL_ACCESS_FLAGS, &key),
           PEAL_STATUS_OK);
  CHECK_EQ(reserve_group(device.fd, 2, 0, &address), PEAL_STATUS_OK);
  busy.fd = device.fd;
  CHECK_EQ(pthread_create(&thread, NULL, keep_busy, &busy), 0);
  while (!busy.running) poll(NULL, 0, 1);

  remove_device(pci_folder);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK_EQ(busy.result, ENODEV);
  expect_event(device.fd, POLLHUP);
  expect_event(device.event, POLLIN);
  everything_fails(device.fd, ENODEV);
  /* So does the first use of a file that has no context. */
  expect_event(unused, POLLHUP);
  everything_fails(unused, ENODEV);
  CHECK_ERRNO((long)mmap(NULL, PAGE, PROT_READ, MAP_SHARED, unused, 0), ENODEV);
  CHECK_EQ(close(unused), 0);
  CHECK_EQ(open_device(), -1);
  /* Nothing is pinned, although files are open. */
  wait_pinned(0);
  /* Windows are blank: what is read is zero, what is written goes nowhere, nobody is killed. */
  CHECK_EQ(*(volatile uint32_t*)(void*)device.window, 0);
  CHECK_EQ(*(volatile uint32_t*)(void*)untouched.window, 0);
  device.window[PAGE] = 1;
  if (device.doorbell) *device.doorbell = 1;
  CHECK_ERRNO((long)mmap(NULL, PAGE, PROT_READ, MAP_SHARED, device.fd, 0), ENODEV);
  device_close(&device);
  device_close(&untouched);
}

/* The machine goes to sleep in one of the kernel's ways, as far as its devices, and wakes again. */
static void sleep_once(const char* how) {
  static uint8_t memory[4 * PAGE] __attribute__((aligned(4096)));
  struct peal_peer_address address;
  struct device device;
  int left = PATIENCE_MS / 10, fd, unused;
  uint32_t key;

  device_open(&device);
  unused = open_device();
  CHECK(unused >= 0);
  CHECK_EQ(register_memory(device.fd, memory, sizeof(memory), PEAL_ACCESS_FLAGS, &key),
           PEAL_STATUS_OK);
  CHECK_EQ(reserve_group(device.fd, 2, 0, &address), PEAL_STATUS_OK);
  write_file("/sys/module/suspend/parameters/pm_test_delay", "0");
  write_file("/sys/power/pm_test", "devices");
  write_file("/sys/power/state", how);
  expect_event(device.fd, POLLERR);
  expect_event(device.event, POLLIN);
  everything_fails(device.fd, EIO);
  /* The card had let go before the memory was saved. */
  wait_pinned(0);
  while ((fd = open_device()) < 0) {
    CHECK_EQ(errno, EIO);
    CHECK(left-- > 0);
    poll(NULL, 0, 10);
  }
  CHECK_EQ(close(fd), 0);
  nothing_lost(unused);
  old_window_is_blank(&device);
  device_close(&device);
  wait_pinned(0);
}

void test_sleep(void) {
  sleep_once("freeze");
  sleep_once("disk");
}
