/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the guest's tests of peal.ko share: checks that print where they failed, and the device's
 * ioctls and rings directly, without libpeal, so that a failure is the driver's or the card's.
 */
#ifndef PEAL_TESTS_GUEST_DEVICE_H
#define PEAL_TESTS_GUEST_DEVICE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "abi/admin.h"
#include "abi/ioctl.h"
#include "abi/ring.h"

#define DEVICE "/dev/peal0"

#define CHECK(condition)                                                     \
  do {                                                                       \
    if (!(condition)) check_failed(__FILE__, __LINE__, #condition, 0, 0, 0); \
  } while (0)

#define CHECK_EQ(got, wanted)                                                                     \
  do {                                                                                            \
    long long got_ = (long long)(got);                                                            \
    long long wanted_ = (long long)(wanted);                                                      \
    if (got_ != wanted_) check_failed(__FILE__, __LINE__, #got " == " #wanted, 1, got_, wanted_); \
  } while (0)

/* The call must fail with this errno. */
#define CHECK_ERRNO(call, wanted)    \
  do {                               \
    errno = 0;                       \
    CHECK_EQ((long long)(call), -1); \
    CHECK_EQ(errno, wanted);         \
  } while (0)

void check_failed(const char* file, int line, const char* text, int valued, long long got,
                  long long wanted) __attribute__((noreturn));

/* An open context with its window mapped. */
struct device {
  int fd;
  uint8_t* window;
  struct peal_ioctl_info info;
  volatile uint32_t* doorbell; /* null: kick by ioctl */
  struct peal_host_ring ring;
  int event;
};

#define HEADER(type) \
  { PEAL_ABI_VERSION, sizeof(struct type) }

int open_device(void);
/* First use: INFO, after which the file has its context. */
int take_context(int fd);
/* Both; a file that gets no context is closed again, and errno says why. */
int open_context(void);
/* How many contexts the card has left; all are taken meanwhile. */
int count_contexts(void);
void device_open(struct device* device);
void device_close(struct device* device);
void device_doorbell(struct device* device);

/* Zeros behind a right head. */
struct peal_admin_command make_command(uint16_t opcode);
struct peal_admin_command register_command(uint64_t address, uint64_t bytes, uint32_t access);
struct peal_admin_command reserve_command(uint32_t ranks, uint32_t rank);
/* The ioctl's own result. */
int ask(int fd, const struct peal_admin_command* command, struct peal_admin_reply* reply);
/* The same, of which only the result matters: one that failed must have written nothing. */
int try_ask(int fd, const struct peal_admin_command* command);
/* The status; the ioctl itself must succeed. */
uint32_t answer(int fd, const struct peal_admin_command* command, struct peal_admin_reply* reply);
uint32_t register_memory(int fd, void* address, uint64_t bytes, uint32_t access, uint32_t* key);
uint32_t unregister_memory(int fd, uint32_t key);
uint32_t reserve_group(int fd, uint32_t ranks, uint32_t rank, struct peal_peer_address* address);
uint32_t connect_group(int fd, uint32_t member, uint64_t group, uint32_t count,
                       const struct peal_peer_address* peers);
uint32_t abandon_group(int fd, uint32_t member);

/* Publishes one entry, and rings if the card sleeps. */
void submit(struct device* device, const struct peal_submission* entry);
/* Sleeps on the eventfd until there is a completion. */
void wait_completion(struct device* device, struct peal_completion* entry);

/* Two contexts as the ranks of a group, from its making to its end: each gets the other's block. */
void try_small_group(void);

/* One of the numbers that the driver shows (peal-driver(4)). */
long driver_count(const char* name);

/* A line of /proc/vmstat. */
long vmstat(const char* name);

/* Pages that the kernel holds pinned for devices, all processes together. */
long pinned_pages(void);
/* Polls until no more than `wanted` are pinned: closing may end after close(). Fails after a
 * minute. */
void wait_pinned(long wanted);

/* Until the task sleeps in the kernel and only what it waits for, or SIGKILL, can wake it. */
void wait_blocked(pid_t task);
/* Says what the test outside has to do with the card, and waits until it is done. */
void ask_outside(const char* what);
/* The card is stopped, found dead, and continued, as the test outside is told, and can be opened again. */
void card_dies_and_returns(void);
/* Until the card gives contexts, or has given all. */
void wait_open(void);

/* For what is written into at once, in /sys or /proc. */
void write_file(const char* path, const char* text);
/* The card is taken away; returns when the driver has let it go. */
void remove_device(const char* pci_folder);

/* The subcommands. */
void test_arguments(void);
void test_memory(void);
void test_groups(void);
void test_mappings(void);
void test_rings(void);
void test_contexts(void);
void test_first_use(void);
void test_half_way(void);
void test_silent_removal(const char* pci_folder);
void test_full(const char* command);
void test_death(void);
void test_orphan(void);
void test_unplug(const char* pci_folder);
void test_hangup(const char* pci_folder);
void test_late(const char* pci_folder);
void test_storm(const char* pci_folder);
void test_stuck(const char* pci_folder);
void test_stuck_reset(void);
void test_silence(void);
void test_sleep(void);
void test_allocation(const char* pci_folder);
// Prints one of the card's counters.
void print_counter(const char* name);

#endif
