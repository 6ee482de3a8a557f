/* SPDX-License-Identifier: BSD-2-Clause */
/* Registered memory: what may not be registered, who may unregister, what it costs, and that no pin
 * is left behind. */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/guest/device.h"

#define PAGE 4096ul
#define BOTH (PEAL_ACCESS_READ | PEAL_ACCESS_WRITE)

static int try_register(int fd, uint64_t address, uint64_t bytes, uint32_t access) {
  const struct peal_admin_command command = register_command(address, bytes, access);

  return try_ask(fd, &command);
}

static uint8_t* pages(size_t count, int protection) {
  uint8_t* memory = mmap(NULL, count * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  CHECK(memory != MAP_FAILED);
  return memory;
}

/* Other kinds of memory than the process' own, and fields that are the driver's to fill in. */
static void try_kinds(int fd) {
  uint8_t* memory = pages(1, PROT_READ | PROT_WRITE);
  const struct peal_admin_command right = register_command((uintptr_t)memory, PAGE, BOTH);
  struct peal_admin_command command = right;

  command.u.register_memory.kind = PEAL_MEMORY_ALLOCATE;
  CHECK_ERRNO(try_ask(fd, &command), EPERM);
  command.u.register_memory.kind = PEAL_MEMORY_PAGES;
  CHECK_ERRNO(try_ask(fd, &command), EPERM);
  command.u.register_memory.page_shift = 12;
  CHECK_ERRNO(try_ask(fd, &command), EPERM);
  command.u.register_memory.kind = 0;
  CHECK_ERRNO(try_ask(fd, &command), EINVAL);
  command.u.register_memory.kind = PEAL_MEMORY_PAGES + 1;
  CHECK_ERRNO(try_ask(fd, &command), EINVAL);
  command = right;
  command.u.register_memory.page_shift = 12;
  CHECK_ERRNO(try_ask(fd, &command), EINVAL);
  command = right;
  command.u.register_memory.first_page_offset = 1;
  CHECK_ERRNO(try_ask(fd, &command), EINVAL);
  CHECK_EQ(pinned_pages(), 0);
  munmap(memory, PAGE);
}

static void try_ranges(int fd) {
  uint8_t* memory = pages(4, PROT_READ | PROT_WRITE);
  uint64_t at = (uintptr_t)memory;

  CHECK_ERRNO(try_register(fd, at, PAGE, 0), EINVAL);
  CHECK_ERRNO(try_register(fd, at, PAGE, 4), EINVAL);
  CHECK_ERRNO(try_register(fd, at, PAGE, BOTH | 0x80000000u), EINVAL);
  CHECK_ERRNO(try_register(fd, at, 0, BOTH), EINVAL);
  CHECK_ERRNO(try_register(fd, at, ~0ull, BOTH), EINVAL);
  CHECK_ERRNO(try_register(fd, at, ~0ull - at + 1, BOTH), EINVAL);
  CHECK_ERRNO(try_register(fd, at, ~0ull - at, BOTH), EFBIG);
  CHECK_ERRNO(try_register(fd, at, (1ull << 30) + 1, BOTH), EFBIG);
  CHECK_ERRNO(try_register(fd, 0, PAGE, BOTH), EFAULT);
  CHECK_ERRNO(try_register(fd, 0xffff888000000000ull, PAGE, BOTH), EFAULT);
  CHECK_ERRNO(try_register(fd, (1ull << 47) - PAGE, PAGE, BOTH), EFAULT);
  CHECK_EQ(munmap(memory + 2 * PAGE, PAGE), 0);
  CHECK_ERRNO(try_register(fd, at, 4 * PAGE, BOTH), EFAULT);
  CHECK_EQ(mprotect(memory, PAGE, PROT_READ), 0);
  CHECK_ERRNO(try_register(fd, at, 2 * PAGE, BOTH), EFAULT);
  CHECK_EQ(pinned_pages(), 0);
  munmap(memory, 4 * PAGE);
}

/* More than there is memory to pin. */
static void try_too_much(int fd) {
  uint8_t* memory = mmap(NULL, 1ul << 30, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  struct rlimit limit = {64 * PAGE, 64 * PAGE};
  uint32_t key;
  int status;
  pid_t child;

  CHECK(memory != MAP_FAILED);
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    CHECK_EQ(setuid(65534), 0); /* CAP_IPC_LOCK goes with root */
    CHECK_ERRNO(try_register(fd, (uintptr_t)memory, 65 * PAGE, BOTH), ENOMEM);
    CHECK_EQ(register_memory(fd, memory, 40 * PAGE, BOTH, &key), PEAL_STATUS_OK);
    CHECK_ERRNO(try_register(fd, (uintptr_t)memory + 100 * PAGE, 40 * PAGE, BOTH), ENOMEM);
    CHECK_EQ(unregister_memory(fd, key), PEAL_STATUS_OK);
    CHECK_EQ(register_memory(fd, memory, 64 * PAGE, BOTH, &key), PEAL_STATUS_OK);
    _exit(0); /* still registered: the parent has the file */
  }
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  CHECK_EQ(pinned_pages(), 64);
  munmap(memory, 1ul << 30);
}

static void try_keys(int fd, int other_fd) {
  uint8_t* memory = pages(4, PROT_READ | PROT_WRITE);
  uint32_t key, key2;

  CHECK_EQ(unregister_memory(fd, 0), PEAL_STATUS_BAD_KEY);
  CHECK_EQ(unregister_memory(fd, ~0u), PEAL_STATUS_BAD_KEY);
  CHECK_EQ(register_memory(fd, memory + 100, 2 * PAGE, BOTH, &key), PEAL_STATUS_OK);
  CHECK_EQ(pinned_pages(), 3);
  CHECK_EQ(unregister_memory(other_fd, key), PEAL_STATUS_BAD_KEY);
  CHECK_EQ(unregister_memory(fd, key + 1), PEAL_STATUS_BAD_KEY);
  CHECK_EQ(unregister_memory(fd, key + (1u << 16)), PEAL_STATUS_BAD_KEY);
  CHECK_EQ(pinned_pages(), 3);
  /* Twice the same memory is two keys. */
  CHECK_EQ(register_memory(fd, memory, PAGE, PEAL_ACCESS_READ, &key2), PEAL_STATUS_OK);
  CHECK(key2 != key);
  CHECK_EQ(unregister_memory(fd, key), PEAL_STATUS_OK);
  CHECK_EQ(unregister_memory(fd, key), PEAL_STATUS_BAD_KEY);
  CHECK_EQ(pinned_pages(), 1);
  CHECK_EQ(unregister_memory(fd, key2), PEAL_STATUS_OK);
  CHECK_EQ(pinned_pages(), 0);
  munmap(memory, 4 * PAGE);
}

/* The card's table has an end; the driver must give back what the card refused. */
static void try_all_keys(int fd) {
  uint8_t* memory = pages(1, PROT_READ | PROT_WRITE);
  uint32_t key, status;
  long count = 0;

  do {
    status = register_memory(fd, memory, 1, PEAL_ACCESS_READ, &key);
    count += status == PEAL_STATUS_OK;
  } while (status == PEAL_STATUS_OK && count < 100000);
  CHECK_EQ(status, PEAL_STATUS_NO_RESOURCES);
  CHECK_EQ(pinned_pages(), count);
  munmap(memory, PAGE); /* pinned pages outlive their mapping */
  CHECK_EQ(pinned_pages(), count);
}

/* The next key whose memory has left, or 0. */
static uint32_t departed(int fd) {
  struct peal_ioctl_departed argument = {.header = {PEAL_ABI_VERSION, sizeof(argument)}};

  CHECK_EQ(ioctl(fd, PEAL_IOCTL_DEPARTED, &argument), 0);
  CHECK_EQ(argument.found, argument.key != 0);
  return argument.key;
}

static int try_map(int fd, size_t bytes, int protection) {
  return mmap(NULL, bytes, protection, MAP_SHARED, fd, PEAL_MMAP_DEPARTURES) == MAP_FAILED ? -1 : 0;
}

/* Memory that is unmapped, moved or thrown away is told, each registration once; what is only protected, written to or
 * copied for a child is not. */
static void try_departures(int fd, int other_fd) {
  const volatile uint64_t* count =
      mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, PEAL_MMAP_DEPARTURES);
  uint8_t* memory = pages(16, PROT_READ | PROT_WRITE);
  struct peal_ioctl_departed wrong = {.header = {PEAL_ABI_VERSION, sizeof(wrong)}, .key = 1};
  uint32_t first, second, third, neighbour;
  uint8_t* other = pages(4, PROT_READ | PROT_WRITE);
  uint64_t before;
  pid_t child;

  CHECK((const void*)count != MAP_FAILED);
  CHECK_ERRNO(try_map(fd, PAGE, PROT_READ | PROT_WRITE), EACCES);
  CHECK_ERRNO(try_map(fd, 2 * PAGE, PROT_READ), EINVAL);
  CHECK_ERRNO(ioctl(fd, PEAL_IOCTL_DEPARTED, &wrong), EINVAL);
  memset(memory, 1, 16 * PAGE);
  CHECK_EQ(register_memory(fd, memory, 4 * PAGE, BOTH, &first), PEAL_STATUS_OK);
  CHECK_EQ(register_memory(fd, memory + 4 * PAGE + 100, 200, BOTH, &second), PEAL_STATUS_OK);
  CHECK_EQ(register_memory(fd, memory + 8 * PAGE, 4 * PAGE, BOTH, &third), PEAL_STATUS_OK);
  CHECK_EQ(register_memory(other_fd, memory + 12 * PAGE, 4 * PAGE, BOTH, &neighbour),
           PEAL_STATUS_OK);
  before = *count;
  CHECK_EQ(mprotect(memory, 16 * PAGE, PROT_READ), 0);
  CHECK_EQ(mprotect(memory, 16 * PAGE, PROT_READ | PROT_WRITE), 0);
  child = fork();
  if (child == 0) _exit(0);
  CHECK_EQ(waitpid(child, NULL, 0), child);
  memset(memory, 2, 16 * PAGE);
  CHECK_EQ(*count, before);
  CHECK_EQ(departed(fd), 0);
  /* One page of four, and one that lies in the middle of its registration. */
  CHECK_EQ(munmap(memory + 3 * PAGE, PAGE), 0);
  CHECK(*count > before);
  CHECK_EQ(departed(fd), first);
  CHECK_EQ(departed(fd), 0);
  before = *count;
  CHECK_EQ(madvise(memory + 4 * PAGE, PAGE, MADV_DONTNEED), 0);
  CHECK(mremap(memory + 8 * PAGE, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, other) ==
        other);
  CHECK(*count > before);
  {
    const uint32_t one = departed(fd);
    const uint32_t two = departed(fd);

    CHECK((one == second && two == third) || (one == third && two == second));
  }
  CHECK_EQ(departed(fd), 0);
  CHECK_EQ(departed(other_fd), 0);
  CHECK_EQ(munmap(memory + 12 * PAGE, 4 * PAGE), 0);
  CHECK_EQ(departed(fd), 0);
  CHECK_EQ(departed(other_fd), neighbour);
  /* Told or not, it is unregistered as ever; what is unregistered is not told. */
  before = *count;
  CHECK_EQ(munmap(memory, 3 * PAGE), 0);
  CHECK(*count > before);
  CHECK_EQ(unregister_memory(fd, first), PEAL_STATUS_OK);
  CHECK_EQ(departed(fd), 0);
  CHECK_EQ(unregister_memory(fd, second), PEAL_STATUS_OK);
  CHECK_EQ(unregister_memory(fd, third), PEAL_STATUS_OK);
  CHECK_EQ(unregister_memory(other_fd, neighbour), PEAL_STATUS_OK);
  CHECK_EQ(pinned_pages(), 0);
  CHECK_EQ(munmap((void*)(uintptr_t)count, PAGE), 0);
  munmap(memory, 16 * PAGE);
  munmap(other, 4 * PAGE);
}

/* A process that dies half-way takes nothing with it. */
static void try_sudden_death(void) {
  uint8_t* memory = pages(16, PROT_READ | PROT_WRITE);
  struct peal_peer_address address;
  struct device device;
  uint32_t key;
  int status;
  pid_t child = fork();

  CHECK(child >= 0);
  if (child == 0) {
    device_open(&device);
    CHECK_EQ(register_memory(device.fd, memory, 16 * PAGE, BOTH, &key), PEAL_STATUS_OK);
    CHECK_EQ(reserve_group(device.fd, 2, 1, &address), PEAL_STATUS_OK);
    kill(getpid(), SIGKILL);
  }
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  wait_pinned(0);
  munmap(memory, 16 * PAGE);
}

void test_memory(void) {
  uint8_t* constant = pages(2, PROT_READ);
  int fd = open_device();
  int other_fd = open_device();
  uint32_t key;

  CHECK(fd >= 0 && other_fd >= 0);
  CHECK_EQ(pinned_pages(), 0);
  try_kinds(fd);
  try_ranges(fd);
  try_keys(fd, other_fd);
  try_departures(fd, other_fd);
  /* Read-only memory may be read. */
  CHECK_ERRNO(try_register(fd, (uintptr_t)constant, PAGE, PEAL_ACCESS_WRITE), EFAULT);
  CHECK_EQ(register_memory(fd, constant, 2 * PAGE, PEAL_ACCESS_READ, &key), PEAL_STATUS_OK);
  CHECK_EQ(unregister_memory(fd, key), PEAL_STATUS_OK);
  try_too_much(fd);
  CHECK_EQ(close(fd), 0);
  wait_pinned(0);
  fd = open_device();
  CHECK(fd >= 0);
  try_all_keys(fd);
  CHECK_EQ(close(fd), 0);
  wait_pinned(0);
  try_sudden_death();
  CHECK_EQ(close(other_fd), 0);
}
