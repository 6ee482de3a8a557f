/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The card is taken away while its users leave: processes that end because of the removal, calls that hang in
 * their own memory (userfaultfd), and storms of everything a process may do against removal, unbinding and reset.
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

static void write_file(const char* path, const char* text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);

  CHECK(fd >= 0);
  CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
  CHECK_EQ(close(fd), 0);
}

static void remove_device(const char* pci_folder) {
  char path[256];

  snprintf(path, sizeof(path), "%s/remove", pci_folder);
  write_file(path, "1");
}

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
  CHECK_EQ(pinned_pages(), 0);
  close(ends[0]);
  close(ends[1]);
}
