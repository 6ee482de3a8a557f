/* SPDX-License-Identifier: BSD-2-Clause */
/* Every ioctl with a wrong version, size, pointer or reserved field, and commands that are not a
 * process' to give. */
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
    {PEAL_IOCTL_EVENTFD, sizeof(struct peal_ioctl_eventfd)},
    {PEAL_IOCTL_KICK, sizeof(struct peal_ioctl_kick)},
    {PEAL_IOCTL_ASK, sizeof(struct peal_ioctl_ask)},
    {PEAL_IOCTL_DEPARTED, sizeof(struct peal_ioctl_departed)},
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

/* Refused by the driver: the card has not heard of it, and the reply is as it was. */
static void try_heads(int fd) {
  const struct peal_admin_command right = make_command(PEAL_ADMIN_READ_COUNTERS);
  struct peal_admin_command command = right;

  CHECK_EQ(try_ask(fd, &command), 0);
  command.version = PEAL_ABI_VERSION + 1;
  CHECK_ERRNO(try_ask(fd, &command), EINVAL);
  command = right;
  command.bytes = PEAL_ADMIN_BYTES - 1;
  CHECK_ERRNO(try_ask(fd, &command), EMSGSIZE);
  command = right;
  command.context = 1;
  CHECK_ERRNO(try_ask(fd, &command), EINVAL);
  command = right;
  command.tag = 1;
  CHECK_ERRNO(try_ask(fd, &command), EINVAL);
  command = right;
  command.reserved = 1;
  CHECK_ERRNO(try_ask(fd, &command), EINVAL);
}

static void try_opcodes(int fd) {
  static const uint16_t unknown[] = {0, PEAL_ADMIN_OPCODE_COUNT, 0x7fff, 0xffff};
  static const uint16_t not_a_process[] = {PEAL_ADMIN_OPEN_CONTEXT, PEAL_ADMIN_CLOSE_CONTEXT,
                                           PEAL_ADMIN_REAP_CHANNELS};
  size_t i;

  for (i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
    const struct peal_admin_command command = make_command(unknown[i]);

    CHECK_ERRNO(try_ask(fd, &command), EINVAL);
  }
  for (i = 0; i < sizeof(not_a_process) / sizeof(not_a_process[0]); i++) {
    const struct peal_admin_command command = make_command(not_a_process[i]);

    CHECK_ERRNO(try_ask(fd, &command), EPERM);
  }
}

/* Nothing is done of which the reply could not tell. */
static void try_pointers(int fd) {
  static uint8_t memory[4096];
  const struct peal_admin_command command =
      register_command((uintptr_t)memory, sizeof(memory), PEAL_ACCESS_READ);
  uint8_t* pages = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct peal_admin_reply reply;

  CHECK(pages != MAP_FAILED);
  CHECK_EQ(munmap(pages + 4096, 4096), 0);
  CHECK_ERRNO(ask(fd, NULL, &reply), EFAULT);
  CHECK_ERRNO(ask(fd, (void*)(uintptr_t)~0xffful, &reply), EFAULT);
  CHECK_ERRNO(ask(fd, (void*)(pages + 4096 - PEAL_ADMIN_BYTES / 2), &reply), EFAULT);
  CHECK_ERRNO(ask(fd, &command, NULL), EFAULT);
  CHECK_ERRNO(ask(fd, &command, (void*)(uintptr_t)~0xffful), EFAULT);
  CHECK_ERRNO(ask(fd, &command, (void*)(pages + 4096 - PEAL_ADMIN_BYTES / 2)), EFAULT);
  CHECK_EQ(mprotect(pages, 4096, PROT_READ), 0);
  CHECK_ERRNO(ask(fd, &command, (void*)pages), EFAULT);
  CHECK_EQ(pinned_pages(), 0);
  CHECK_EQ(munmap(pages, 4096), 0);
}

/* One that passes through: what it means is between the process and the card. */
static void try_counters(int fd) {
  struct peal_admin_command command = make_command(PEAL_ADMIN_READ_COUNTERS);
  struct peal_admin_reply reply;
  uint32_t total;

  CHECK_EQ(answer(fd, &command, &reply), PEAL_STATUS_OK);
  total = reply.u.counters.total;
  CHECK_EQ(total, PEAL_COUNTER_COUNT);
  CHECK_EQ(reply.u.counters.count, PEAL_COUNTERS_PER_REPLY);
  command.u.counters.first = total - 1;
  CHECK_EQ(answer(fd, &command, &reply), PEAL_STATUS_OK);
  CHECK_EQ(reply.u.counters.count, 1);
  command.u.counters.first = total + 1;
  CHECK_EQ(answer(fd, &command, &reply), PEAL_STATUS_BAD_BOUNDS);
  command.u.counters.first = 0;
  command.u.counters.reserved = 1;
  CHECK_EQ(answer(fd, &command, &reply), PEAL_STATUS_BAD_FLAGS);
}

void test_arguments(void) {
  char page[4096] = {0};
  int fd = open_device();
  uint8_t byte;
  size_t i;

  CHECK(fd >= 0);
  for (i = 0; i < sizeof(ioctls) / sizeof(ioctls[0]); i++) try_header(fd, &ioctls[i]);
  CHECK_ERRNO(ioctl(fd, _IOWR(PEAL_IOCTL_MAGIC, 0, struct peal_ioctl_info), page), ENOTTY);
  CHECK_ERRNO(ioctl(fd, _IOWR(PEAL_IOCTL_MAGIC, 2, struct peal_ioctl_info), page), ENOTTY);
  CHECK_ERRNO(ioctl(fd, _IOWR(PEAL_IOCTL_MAGIC, 12, struct peal_ioctl_info), page), ENOTTY);
  CHECK_ERRNO(ioctl(fd, _IOWR('x', 1, struct peal_ioctl_info), page), ENOTTY);
  CHECK_ERRNO(ioctl(fd, 0x5401 /* TCGETS */, page), ENOTTY);
  CHECK_ERRNO(read(fd, &byte, 1), EINVAL);
  CHECK_ERRNO(write(fd, &byte, 1), EINVAL);
  try_larger(fd);
  try_eventfd(fd);
  try_heads(fd);
  try_opcodes(fd);
  try_pointers(fd);
  try_counters(fd);
  CHECK_EQ(close(fd), 0);
  CHECK_EQ(pinned_pages(), 0);
}

void print_counter(const char* name) {
#define NAME(symbol, name, text) name,
  static const char* const names[] = {PEAL_COUNTERS(NAME)};
#undef NAME
  struct peal_admin_command command = make_command(PEAL_ADMIN_READ_COUNTERS);
  struct peal_admin_reply reply;
  int fd = open_device();

  CHECK(fd >= 0);
  while (command.u.counters.first < PEAL_COUNTER_COUNT &&
         strcmp(names[command.u.counters.first], name) != 0)
    command.u.counters.first++;
  CHECK(command.u.counters.first < PEAL_COUNTER_COUNT);
  CHECK_EQ(answer(fd, &command, &reply), PEAL_STATUS_OK);
  printf("%llu\n", (unsigned long long)reply.u.counters.values[0]);
  CHECK_EQ(close(fd), 0);
}
