/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every allocation of every call fails once: the first, then the second, until there is none left
 * (fail-nth of the debug kernel). The call may fail, or do without; nothing is pinned or taken
 * afterwards, and without the fault it does well.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/guest/device.h"

#define PAGE 4096ul
#define PATIENCE_MS 120000

static int fail_nth = -1;
static int reached;
static uint8_t* memory;
static char pci_address[64];

static void fail(int n) {
  char text[16];
  int length = snprintf(text, sizeof(text), "%d", n);

  CHECK_EQ(pwrite(fail_nth, text, (size_t)length, 0), length);
}

/* The call is over: notes whether it got as far as the fault. */
static void end(void) {
  char text[16] = {0};

  CHECK(pread(fail_nth, text, sizeof(text) - 1, 0) > 0);
  reached = atoi(text) == 0;
  fail(0);
}

/* Opens without the fault, that what is tried is one call. */
static int opened(void) {
  int fd = open_context();

  CHECK(fd >= 0);
  return fd;
}

static void try_open(int n) {
  int fd;

  fail(n);
  fd = open_device();
  end();
  if (fd >= 0) CHECK_EQ(close(fd), 0);
}

static void try_first_use(int n) {
  int fd = open_device(), error;

  CHECK(fd >= 0);
  fail(n);
  error = take_context(fd) ? errno : 0;
  end();
  CHECK(error == 0 || error == ENOMEM);
  /* What failed can be tried again. */
  CHECK_EQ(take_context(fd), 0);
  CHECK_EQ(close(fd), 0);
}

static void try_command(int n, struct peal_admin_command command) {
  int fd = opened(), error;

  fail(n);
  error = try_ask(fd, &command) ? errno : 0;
  end();
  CHECK(error == 0 || error == ENOMEM);
  CHECK_EQ(close(fd), 0);
}

static void try_register(int n) {
  try_command(n, register_command((uintptr_t)memory, 64 * PAGE, PEAL_ACCESS_FLAGS));
}

static void try_reserve(int n) { try_command(n, reserve_command(2, 0)); }

static void try_map(int n) {
  struct peal_ioctl_info info = {.header = HEADER(peal_ioctl_info)};
  int fd = opened();
  void* window;

  CHECK_EQ(ioctl(fd, PEAL_IOCTL_INFO, &info), 0);
  fail(n);
  window = mmap(NULL, info.window_bytes, PROT_READ, MAP_SHARED, fd, PEAL_MMAP_WINDOW);
  end();
  if (window != MAP_FAILED) CHECK_EQ(munmap(window, info.window_bytes), 0);
  CHECK_EQ(close(fd), 0);
}

static void driver_file(const char* name, int may_fail) {
  char path[64];
  ssize_t written;
  int fd;

  snprintf(path, sizeof(path), "/sys/bus/pci/drivers/peal/%s", name);
  fd = open(path, O_WRONLY | O_CLOEXEC);
  CHECK(fd >= 0);
  fail(may_fail);
  written = write(fd, pci_address, strlen(pci_address));
  if (may_fail) end();
  CHECK(written > 0 || may_fail);
  close(fd);
}

static int bound(void) {
  char path[128];

  snprintf(path, sizeof(path), "/sys/bus/pci/drivers/peal/%s", pci_address);
  return access(path, F_OK) == 0;
}

static void try_probe(int n) {
  driver_file("unbind", 0);
  driver_file("bind", n);
}

static void each(const char* name, void (*call)(int n)) {
  int n = 0, more;

  do {
    call(++n);
    more = reached;
    if (!bound()) driver_file("bind", 0);
    wait_pinned(0);
  } while (more);
  /* And without a fault. */
  CHECK_EQ(close(opened()), 0);
  CHECK(n > 1);
  printf("%s: %d allocations failed, one at a time\n", name, n - 1);
}

static void set(const char* file, const char* text) {
  char path[128];
  int fd;

  snprintf(path, sizeof(path), "/sys/kernel/debug/%s", file);
  fd = open(path, O_WRONLY | O_CLOEXEC);
  CHECK(fd >= 0);
  CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
  close(fd);
}

void test_allocation(const char* pci_folder) {
  snprintf(pci_address, sizeof(pci_address), "%s", strrchr(pci_folder, '/') + 1);
  set("failslab/ignore-gfp-wait", "N");
  set("failslab/verbose", "0");
  set("fail_page_alloc/ignore-gfp-wait", "N");
  set("fail_page_alloc/ignore-gfp-highmem", "N");
  set("fail_page_alloc/min-order", "0");
  set("fail_page_alloc/verbose", "0");
  fail_nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
  CHECK(fail_nth >= 0);
  memory = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
                -1, 0);
  CHECK(memory != MAP_FAILED);
  each("open", try_open);
  each("first use", try_first_use);
  each("register", try_register);
  each("reserve", try_reserve);
  each("mmap", try_map);
  each("probe", try_probe);
  CHECK_EQ(close(fail_nth), 0);
}
