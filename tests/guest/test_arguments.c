/* SPDX-License-Identifier: BSD-2-Clause */
/* Every ioctl with a wrong version, size, pointer, length, reserved field or foreign handle. */
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/counters.h"
#include "tests/guest/device.h"

struct known {
  unsigned long command;
  uint32_t bytes;
};

static const struct known ioctls[] = {
    {PEAL_IOCTL_INFO, sizeof(struct peal_ioctl_info)},
    {PEAL_IOCTL_REGISTER, sizeof(struct peal_ioctl_register)},
    {PEAL_IOCTL_UNREGISTER, sizeof(struct peal_ioctl_unregister)},
    {PEAL_IOCTL_RESERVE_GROUP, sizeof(struct peal_ioctl_reserve_group)},
    {PEAL_IOCTL_CONNECT_GROUP, sizeof(struct peal_ioctl_connect_group)},
    {PEAL_IOCTL_ABANDON_GROUP, sizeof(struct peal_ioctl_abandon_group)},
    {PEAL_IOCTL_EVENTFD, sizeof(struct peal_ioctl_eventfd)},
    {PEAL_IOCTL_KICK, sizeof(struct peal_ioctl_kick)},
    {PEAL_IOCTL_COUNTERS, sizeof(struct peal_ioctl_counters)},
};

/* Zeros behind a header, on a page that ends right behind them and may be read-only. */
static void* argument_page(uint32_t version, uint32_t bytes, uint32_t real_bytes, int protection) {
  uint8_t* pages = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct peal_ioctl_header* header;

  CHECK(pages != MAP_FAILED);
  header = (struct peal_ioctl_header*)(void*)(pages + 4096 - real_bytes);
  header->version = version;
  header->bytes = bytes;
  CHECK_EQ(mprotect(pages, 4096, protection), 0);
  CHECK_EQ(munmap(pages + 4096, 4096), 0);
  return header;
}

static void try_header(int fd, const struct known* known) {
  unsigned long larger = known->command + (8ul << _IOC_SIZESHIFT);
  unsigned long smaller = known->command - (4ul << _IOC_SIZESHIFT);
  uint32_t bytes = known->bytes;
  int writable = PROT_READ | PROT_WRITE;

  CHECK_ERRNO(ioctl(fd, known->command, argument_page(0, bytes, bytes, writable)), EINVAL);
  CHECK_ERRNO(
      ioctl(fd, known->command, argument_page(PEAL_ABI_VERSION + 1, bytes, bytes, writable)),
      EINVAL);
  CHECK_ERRNO(
      ioctl(fd, known->command, argument_page(PEAL_ABI_VERSION, bytes - 1, bytes, writable)),
      EMSGSIZE);
  CHECK_ERRNO(
      ioctl(fd, known->command, argument_page(PEAL_ABI_VERSION, bytes + 8, bytes, writable)),
      EMSGSIZE);
  CHECK_ERRNO(ioctl(fd, known->command, argument_page(PEAL_ABI_VERSION, ~0u, bytes, writable)),
              EMSGSIZE);
  CHECK_ERRNO(ioctl(fd, known->command, NULL), EFAULT);
  CHECK_ERRNO(ioctl(fd, known->command, (void*)(uintptr_t)~0xffful), EFAULT);
  /* Half of it lies on no page. */
  CHECK_ERRNO(ioctl(fd, known->command,
                    (uint8_t*)argument_page(PEAL_ABI_VERSION, bytes, bytes, writable) + 4),
              EFAULT);
  /* A result could not be written: nothing may be done. */
  CHECK_ERRNO(ioctl(fd, known->command, argument_page(PEAL_ABI_VERSION, bytes, bytes, PROT_READ)),
              EFAULT);
  CHECK_ERRNO(ioctl(fd, smaller, argument_page(PEAL_ABI_VERSION, bytes - 4, bytes - 4, writable)),
              EINVAL);
  CHECK_ERRNO(ioctl(fd, larger, argument_page(PEAL_ABI_VERSION, bytes, bytes + 8, writable)),
              EMSGSIZE);
  /* Half of what is beyond lies on no page. */
  CHECK_ERRNO(ioctl(fd, larger, argument_page(PEAL_ABI_VERSION, bytes + 8, bytes + 4, writable)),
              EFAULT);
}

/* A caller of tomorrow, whose structure has two more words. */
static void try_larger(int fd) {
  unsigned long command = PEAL_IOCTL_INFO + (8ul << _IOC_SIZESHIFT);
  struct {
    struct peal_ioctl_info info;
    uint32_t more[2];
  } argument = {.info.header = {PEAL_ABI_VERSION, sizeof(argument)}};

  CHECK_EQ(ioctl(fd, command, &argument), 0);
  CHECK(argument.info.window_bytes != 0);
  CHECK_EQ(argument.info.header.bytes, sizeof(argument));
  argument.info.window_bytes = 0;
  argument.more[1] = 1;
  CHECK_ERRNO(ioctl(fd, command, &argument), E2BIG);
  CHECK_EQ(argument.info.window_bytes, 0);
}

static void try_eventfd(int fd) {
  struct peal_ioctl_eventfd argument = {.header = HEADER(peal_ioctl_eventfd)};
  int event = eventfd(0, EFD_CLOEXEC);
  int pipe_ends[2];

  CHECK(event >= 0);
  CHECK_EQ(pipe(pipe_ends), 0);
  argument.fd = 9999;
  CHECK_ERRNO(ioctl(fd, PEAL_IOCTL_EVENTFD, &argument), EBADF);
  argument.fd = -2;
  CHECK_ERRNO(ioctl(fd, PEAL_IOCTL_EVENTFD, &argument), EINVAL);
  argument.fd = pipe_ends[0];
  CHECK_ERRNO(ioctl(fd, PEAL_IOCTL_EVENTFD, &argument), EINVAL);
  argument.fd = event;
  argument.reserved = 1;
  CHECK_ERRNO(ioctl(fd, PEAL_IOCTL_EVENTFD, &argument), EINVAL);
  argument.reserved = 0;
  CHECK_EQ(ioctl(fd, PEAL_IOCTL_EVENTFD, &argument), 0);
  CHECK_EQ(ioctl(fd, PEAL_IOCTL_EVENTFD, &argument), 0);
  argument.fd = -1;
  CHECK_EQ(ioctl(fd, PEAL_IOCTL_EVENTFD, &argument), 0);
  CHECK_EQ(ioctl(fd, PEAL_IOCTL_EVENTFD, &argument), 0);
  close(event);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

static void try_counters(int fd) {
  struct peal_ioctl_counters argument = {.header = HEADER(peal_ioctl_counters)};
  uint64_t values[256];
  uint32_t total;

  CHECK_EQ(ioctl(fd, PEAL_IOCTL_COUNTERS, &argument), 0);
  CHECK_EQ(argument.count, 0);
  total = argument.total;
  CHECK(total > 32 && total < 256); /* more than one reply holds */

  memset(values, 0xff, sizeof(values));
  argument.values = (uintptr_t)values;
  argument.capacity = ~0u;
  CHECK_EQ(ioctl(fd, PEAL_IOCTL_COUNTERS, &argument), 0);
  CHECK_EQ(argument.count, total);
  CHECK(values[total - 1] != ~0ull && values[total] == ~0ull);
  argument.first = total - 2;
  argument.capacity = 1;
  values[1] = ~0ull;
  CHECK_EQ(ioctl(fd, PEAL_IOCTL_COUNTERS, &argument), 0);
  CHECK_EQ(argument.count, 1);
  CHECK_EQ(values[1], -1);

  argument.first = total + 1;
  CHECK_ERRNO(ioctl(fd, PEAL_IOCTL_COUNTERS, &argument), EINVAL);
  argument.first = ~0u;
  CHECK_ERRNO(ioctl(fd, PEAL_IOCTL_COUNTERS, &argument), EINVAL);
  argument.first = 0;
  argument.values = 8;
  CHECK_ERRNO(ioctl(fd, PEAL_IOCTL_COUNTERS, &argument), EFAULT);
  argument.values = ~0xfull;
  argument.capacity = 64;
  CHECK_ERRNO(ioctl(fd, PEAL_IOCTL_COUNTERS, &argument), EFAULT);
}

void test_arguments(void) {
  char page[4096] = {0};
  int fd = open_device();
  uint8_t byte;
  size_t i;

  CHECK(fd >= 0);
  for (i = 0; i < sizeof(ioctls) / sizeof(ioctls[0]); i++) try_header(fd, &ioctls[i]);
  CHECK_ERRNO(ioctl(fd, _IOWR(PEAL_IOCTL_MAGIC, 0, struct peal_ioctl_info), page), ENOTTY);
  CHECK_ERRNO(ioctl(fd, _IOWR(PEAL_IOCTL_MAGIC, 10, struct peal_ioctl_info), page), ENOTTY);
  CHECK_ERRNO(ioctl(fd, _IOWR('x', 1, struct peal_ioctl_info), page), ENOTTY);
  CHECK_ERRNO(ioctl(fd, 0x5401 /* TCGETS */, page), ENOTTY);
  CHECK_ERRNO(read(fd, &byte, 1), EINVAL);
  CHECK_ERRNO(write(fd, &byte, 1), EINVAL);
  try_larger(fd);
  try_eventfd(fd);
  try_counters(fd);
  CHECK_EQ(close(fd), 0);
  CHECK_EQ(pinned_pages(), 0);
}

void print_counter(const char* name) {
#define NAME(symbol, name, text) name,
  static const char* const names[] = {PEAL_COUNTERS(NAME)};
#undef NAME
  struct peal_ioctl_counters argument = {.header = HEADER(peal_ioctl_counters), .capacity = 1};
  uint64_t value = 0;
  int fd = open_device();

  CHECK(fd >= 0);
  while (argument.first < PEAL_COUNTER_COUNT && strcmp(names[argument.first], name) != 0)
    argument.first++;
  CHECK(argument.first < PEAL_COUNTER_COUNT);
  argument.values = (uintptr_t)&value;
  CHECK_EQ(ioctl(fd, PEAL_IOCTL_COUNTERS, &argument), 0);
  printf("%llu\n", (unsigned long long)value);
  CHECK_EQ(close(fd), 0);
}
