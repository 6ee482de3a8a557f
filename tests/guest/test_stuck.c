/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that the card has let go of and that cannot be unpinned, because the kernel holds its page locked until a server
 * answers (stuck_file.h). Nobody waits for it but who asked for it, and who did can be killed: neither another call of the same
 * context, nor a command of another, nor a file's end, nor a reset, nor removal. It stays pinned, and on its process' account, until
 * the server answers; unloading the module waits for that.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/guest/device.h"
#include "tests/guest/stuck_file.h"

#define PATIENCE_MS 120000
#define PAGE_KIB 4

/* What the process has pinned (its account). */
static long pinned_kib(void) {
  FILE* file = fopen("/proc/self/status", "r");
  char line[256];
  long value = -1;

  CHECK(file);
  while (value < 0 && fgets(line, sizeof(line), file)) sscanf(line, "VmPin: %ld", &value);
  fclose(file);
  return value;
}

static void everything_is_unpinned(void) {
  int left = PATIENCE_MS;

  while (pinned_kib() > 0) {
    CHECK(left-- > 0);
    poll(NULL, 0, 1);
  }
  CHECK_EQ(pinned_pages(), 0);
}

static void pinned_still(long pages) {
  CHECK_EQ(pinned_pages(), pages);
  CHECK_EQ(pinned_kib(), pages * PAGE_KIB);
}

/* A context that has the page. */
static int open_with(const struct stuck_file* file, uint32_t* key) {
  int fd = open_device();

  CHECK(fd >= 0);
  CHECK_EQ(register_memory(fd, file->page, 1, PEAL_ACCESS_WRITE, key), PEAL_STATUS_OK);
  return fd;
}

static void goes_on(int fd) {
  const struct peal_admin_command command = make_command(PEAL_ADMIN_READ_COUNTERS);
  struct peal_admin_reply reply;

  CHECK_EQ(answer(fd, &command, &reply), PEAL_STATUS_OK);
}

/* Of another tenant, whose memory is not stuck. */
static void others_go_on(void) {
  const long pinned = pinned_pages();
  int fd = open_device();
  uint8_t byte;
  uint32_t key;

  CHECK(fd >= 0);
  CHECK_EQ(register_memory(fd, &byte, 1, PEAL_ACCESS_WRITE, &key), PEAL_STATUS_OK);
  CHECK_EQ(unregister_memory(fd, key), PEAL_STATUS_OK);
  CHECK_EQ(pinned_pages(), pinned);
  CHECK_EQ(close(fd), 0);
}

static void end_by_kill(pid_t child) {
  int status;

  CHECK_EQ(kill(child, SIGKILL), 0);
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void unregister_waits_alone(int fd, uint32_t key) {
  pid_t child = fork();

  CHECK(child >= 0);
  if (child == 0) {
    unregister_memory(fd, key);
    _exit(0);
  }
  wait_blocked(child);
  goes_on(fd);
  CHECK_EQ(unregister_memory(fd, key), PEAL_STATUS_BAD_KEY);
  end_by_kill(child);
}

/* The last file of a context goes with its process, and the card's word on that comes when the process is no more. */
static void closes_unheard(int fd) {
  pid_t child = fork();

  CHECK(child >= 0);
  if (child == 0) {
    for (;;) pause();
  }
  CHECK_EQ(close(fd), 0);
  ask_outside("stop the card");
  end_by_kill(child);
  ask_outside("continue the card");
}

static pid_t begin_unload(void) {
  pid_t child = fork();

  CHECK(child >= 0);
  if (child == 0) {
    CHECK_EQ(syscall(SYS_delete_module, "peal", O_NONBLOCK), 0);
    _exit(0);
  }
  wait_blocked(child);
  return child;
}

/* The card is one that is not found dead when it is stopped. Afterwards the module is gone. */
void test_stuck(const char* pci_folder) {
  int unregisters, closes, unheard, stays, status;
  struct stuck_file file;
  uint32_t key, unused;
  pid_t unload;

  stuck_file_make(&file);
  unregisters = open_with(&file, &key);
  closes = open_with(&file, &unused);
  unheard = open_with(&file, &unused);
  stays = open_with(&file, &unused);
  pinned_still(4);
  stuck_file_begin(&file);

  unregister_waits_alone(unregisters, key);
  CHECK_EQ(close(closes), 0);
  closes_unheard(unheard);
  goes_on(unregisters);
  others_go_on();
  remove_device(pci_folder);
  CHECK_ERRNO(take_context(stays), ENODEV);
  write_file("/sys/bus/pci/rescan", "1");
  others_go_on();
  pinned_still(4);

  CHECK_EQ(close(stays), 0);
  CHECK_EQ(close(unregisters), 0);
  unload = begin_unload();
  pinned_still(4);
  stuck_file_end(&file);
  CHECK_EQ(waitpid(unload, &status, 0), unload);
  CHECK_EQ(status, 0);
  /* The module waited for all of it. */
  pinned_still(0);
  stuck_file_drop(&file);
}

/* The card is one that is soon found dead. */
void test_stuck_reset(void) {
  struct stuck_file file;
  uint32_t unused;
  int fd;

  stuck_file_make(&file);
  fd = open_with(&file, &unused);
  stuck_file_begin(&file);
  card_dies_and_returns();
  others_go_on();
  pinned_still(1);
  CHECK_EQ(close(fd), 0);
  stuck_file_end(&file);
  everything_is_unpinned();
  stuck_file_drop(&file);
}
