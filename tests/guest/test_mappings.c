/* SPDX-License-Identifier: BSD-2-Clause */
/* What of the BAR may be mapped, and how. */
#define _GNU_SOURCE /* mremap */
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/guest/device.h"

#define PAGE 4096ul

static sigjmp_buf escape;

static void on_fault(int signal) { siglongjmp(escape, signal); }

/* The signal that touching the byte raises, or 0. */
static int touch(volatile uint8_t* byte, int write) {
  int signal = sigsetjmp(escape, 1);

  if (signal != 0) return signal;
  if (write)
    *byte = 1;
  else
    (void)*byte;
  return 0;
}

static void* map(int fd, uint64_t bytes, int protection, int flags, uint64_t offset) {
  return mmap(NULL, bytes, protection, flags, fd, (off_t)offset);
}

static void try_window(int fd, uint32_t bytes) {
  int rw = PROT_READ | PROT_WRITE;
  uint8_t *card, *rest, *whole;

  CHECK_ERRNO((long)map(fd, bytes, rw, MAP_PRIVATE, 0), EACCES);
  CHECK_ERRNO((long)map(fd, bytes, rw | PROT_EXEC, MAP_SHARED, 0), EACCES);
  CHECK_ERRNO((long)map(fd, PAGE, rw, MAP_SHARED, 0), EACCES);
  CHECK_ERRNO((long)map(fd, bytes + PAGE, rw, MAP_SHARED, 0), EINVAL);
  CHECK_ERRNO((long)map(fd, bytes, rw, MAP_SHARED, PAGE), EINVAL);
  CHECK_ERRNO((long)map(fd, PAGE, rw, MAP_SHARED, bytes), EINVAL);
  CHECK_ERRNO((long)map(fd, PAGE, PROT_READ, MAP_SHARED, ~0xffful), EOVERFLOW);
  CHECK_ERRNO((long)map(fd, PAGE, PROT_READ, MAP_SHARED, 1ul << 40), EINVAL);

  card = map(fd, PAGE, PROT_READ, MAP_SHARED, 0);
  rest = map(fd, bytes - PAGE, rw, MAP_SHARED, PAGE);
  whole = map(fd, bytes, rw, MAP_SHARED, 0);
  CHECK(card != MAP_FAILED && rest != MAP_FAILED && whole != MAP_FAILED);
  CHECK_ERRNO(mprotect(card, PAGE, rw), EACCES);
  CHECK_ERRNO(mprotect(rest, PAGE, PROT_READ | PROT_EXEC), EACCES);
  CHECK_EQ(*(uint32_t*)(void*)card, PEAL_WINDOW_MAGIC);
  /* One mapping of all of it does not make the card page writable, neither at first touch nor
   * later. */
  CHECK_EQ(touch(whole, 1), SIGBUS);
  CHECK_EQ(touch(whole, 0), 0);
  CHECK_EQ(touch(whole, 1), SIGBUS);
  CHECK_EQ(*(uint32_t*)(void*)whole, PEAL_WINDOW_MAGIC);
  /* They are the same memory. */
  whole[PAGE + 1000] = 42;
  CHECK_EQ(rest[1000], 42);
  CHECK_EQ(touch(whole + bytes - 1, 1), 0);
  CHECK_ERRNO((long)mremap(rest, bytes - PAGE, bytes, MREMAP_MAYMOVE), EFAULT);
  munmap(card, PAGE);
  munmap(rest, bytes - PAGE);
  munmap(whole, bytes);
}

static void try_doorbell(int fd, const struct peal_ioctl_info* info) {
  uint8_t* page;

  if (info->doorbell_bytes == 0) {
    CHECK_ERRNO((long)map(fd, PAGE, PROT_WRITE, MAP_SHARED, PEAL_MMAP_DOORBELL), ENXIO);
    return;
  }
  CHECK_EQ(info->doorbell_bytes, PAGE);
  CHECK_ERRNO((long)map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, PEAL_MMAP_DOORBELL), EACCES);
  CHECK_ERRNO((long)map(fd, PAGE, PROT_WRITE, MAP_PRIVATE, PEAL_MMAP_DOORBELL), EACCES);
  CHECK_ERRNO((long)map(fd, 2 * PAGE, PROT_WRITE, MAP_SHARED, PEAL_MMAP_DOORBELL), EINVAL);
  CHECK_ERRNO((long)map(fd, PAGE, PROT_WRITE, MAP_SHARED, PEAL_MMAP_DOORBELL + PAGE), EINVAL);
  page = map(fd, PAGE, PROT_WRITE, MAP_SHARED, PEAL_MMAP_DOORBELL);
  CHECK(page != MAP_FAILED);
  CHECK_ERRNO(mprotect(page, PAGE, PROT_READ | PROT_WRITE), EACCES);
  *(volatile uint32_t*)(void*)(page + info->doorbell_offset) = info->doorbell_value;
  munmap(page, PAGE);
}

/* A child of fork has no window: two processes on one ring would only spoil it. */
static void try_fork(uint8_t* window) {
  pid_t child = fork();
  int status;

  CHECK(child >= 0);
  if (child == 0) _exit(touch(window, 0) == SIGSEGV ? 0 : 1);
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
}

/* Windows of two contexts are two memories. */
static void try_isolation(void) {
  struct device a, b;

  device_open(&a);
  device_open(&b);
  a.window[PAGE + 2000] = 7;
  CHECK_EQ(b.window[PAGE + 2000], 0);
  CHECK(a.ring.card->device.context != b.ring.card->device.context);
  try_fork(a.window);
  device_close(&b);
  /* A window that comes back is clean. */
  device_open(&b);
  CHECK_EQ(b.window[PAGE + 2000], 0);
  device_close(&a);
  device_open(&a);
  CHECK_EQ(a.window[PAGE + 2000], 0);
  device_close(&a);
  device_close(&b);
}

void test_mappings(void) {
  struct peal_ioctl_info info = {.header = HEADER(peal_ioctl_info)};
  struct sigaction action = {.sa_handler = on_fault};
  int fd = open_device();

  CHECK(fd >= 0);
  CHECK_EQ(sigaction(SIGBUS, &action, NULL), 0);
  CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
  CHECK_EQ(ioctl(fd, PEAL_IOCTL_INFO, &info), 0);
  CHECK(info.window_bytes >= PEAL_WINDOW_BYTES(PEAL_RING_ENTRIES_MIN));
  try_window(fd, info.window_bytes);
  try_doorbell(fd, &info);
  CHECK_EQ(close(fd), 0);
  try_isolation();
  printf("doorbell: %s\n", info.doorbell_bytes ? "mapped" : "ioctl");
}
