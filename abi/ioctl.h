/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * ioctls of /dev/pealN. Every structure begins with its version and size. Structures grow at their end: what an older
 * caller's lacks is zero, and what a newer caller's has beyond the driver's must be zero (E2BIG), which gives nothing
 * back there. Another version is refused with EINVAL, a size that is not the one in the ioctl's number with EMSGSIZE. A file descriptor is one context: its memory keys and groups are its own. status
 * is an enum peal_status from the card; a failed ioctl leaves it untouched and sets errno.
 *
 * mmap of the file descriptor: offset 0 is the context window (first page read-only, the rest read-write);
 * offset PEAL_MMAP_DOORBELL is the page of BAR0 that holds the doorbell, write-only, where the platform gives
 * BAR0 a page of its own (peal_ioctl_info.doorbell_bytes is zero where not: use PEAL_IOCTL_KICK).
 */
#ifndef PEAL_ABI_IOCTL_H
#define PEAL_ABI_IOCTL_H

#include "abi/types.h"
#include "abi/wire.h"
#ifdef __KERNEL__
#include <linux/ioctl.h>
#else
#include <sys/ioctl.h>
#endif

#define PEAL_MMAP_WINDOW 0x00000000u
#define PEAL_MMAP_DOORBELL 0x10000000u

struct peal_ioctl_header {
	uint32_t version; /* PEAL_ABI_VERSION */
	uint32_t bytes; /* sizeof the whole structure */
};

struct peal_ioctl_info {
	struct peal_ioctl_header header;
	uint32_t window_bytes; /* out: bytes to mmap at PEAL_MMAP_WINDOW */
	uint32_t doorbell_bytes; /* out: bytes to mmap at PEAL_MMAP_DOORBELL, or zero */
	uint32_t doorbell_offset; /* out: of the 32-bit register within that mapping */
	uint32_t doorbell_value; /* out: what to write there */
};

struct peal_ioctl_register {
	struct peal_ioctl_header header;
	uint64_t address; /* in: of the caller's memory */
	uint64_t bytes_; /* in */
	uint32_t access; /* in: PEAL_ACCESS_* */
	uint32_t key; /* out */
	uint32_t status; /* out */
	uint32_t reserved; /* zero */
};

struct peal_ioctl_unregister {
	struct peal_ioctl_header header;
	uint32_t key; /* in */
	uint32_t status; /* out */
};

struct peal_ioctl_reserve_group {
	struct peal_ioctl_header header;
	uint32_t ranks; /* in */
	uint32_t rank; /* in */
	struct peal_peer_address address; /* out */
	uint32_t status; /* out */
	uint64_t reserved; /* zero */
};

struct peal_ioctl_connect_group {
	struct peal_ioctl_header header;
	uint64_t group; /* in */
	uint32_t member; /* in */
	uint32_t choice_hash; /* in */
	uint64_t peers; /* in: pointer to peer_count struct peal_peer_address */
	uint32_t peer_count; /* in */
	uint32_t status; /* out */
	uint64_t reserved; /* zero */
};

struct peal_ioctl_abandon_group {
	struct peal_ioctl_header header;
	uint32_t member; /* in */
	uint32_t status; /* out */
};

struct peal_ioctl_eventfd {
	struct peal_ioctl_header header;
	int32_t fd; /* in: signalled when this context has completions and sleeps; -1 takes it back */
	uint32_t reserved; /* zero */
};

struct peal_ioctl_kick {
	struct peal_ioctl_header header;
};

struct peal_ioctl_counters {
	struct peal_ioctl_header header;
	uint32_t first; /* in */
	uint32_t capacity; /* in: of values, in counters */
	uint32_t total; /* out */
	uint32_t count; /* out */
	uint64_t values; /* in: pointer to capacity uint64_t */
};

#ifndef __KERNEL__
/* Rings the mapped doorbell, after everything that the caller has written into the window. A store to a device is not kept
 * behind stores to memory by what keeps processors in order among themselves (arm64: dmb ish), so it takes more. */
static inline void peal_ring_mapped_doorbell(volatile uint32_t *doorbell, uint32_t value)
{
#if defined(__aarch64__)
	__asm__ volatile("dmb oshst"
			 :
			 :
			 : "memory");
#else
	__atomic_thread_fence(__ATOMIC_RELEASE);
#endif
	*doorbell = value;
}
#endif

#define PEAL_IOCTL_MAGIC 0xb7
#define PEAL_IOCTL_INFO _IOWR(PEAL_IOCTL_MAGIC, 1, struct peal_ioctl_info)
#define PEAL_IOCTL_REGISTER _IOWR(PEAL_IOCTL_MAGIC, 2, struct peal_ioctl_register)
#define PEAL_IOCTL_UNREGISTER _IOWR(PEAL_IOCTL_MAGIC, 3, struct peal_ioctl_unregister)
#define PEAL_IOCTL_RESERVE_GROUP _IOWR(PEAL_IOCTL_MAGIC, 4, struct peal_ioctl_reserve_group)
#define PEAL_IOCTL_CONNECT_GROUP _IOWR(PEAL_IOCTL_MAGIC, 5, struct peal_ioctl_connect_group)
#define PEAL_IOCTL_ABANDON_GROUP _IOWR(PEAL_IOCTL_MAGIC, 6, struct peal_ioctl_abandon_group)
#define PEAL_IOCTL_EVENTFD _IOWR(PEAL_IOCTL_MAGIC, 7, struct peal_ioctl_eventfd)
#define PEAL_IOCTL_KICK _IOWR(PEAL_IOCTL_MAGIC, 8, struct peal_ioctl_kick)
#define PEAL_IOCTL_COUNTERS _IOWR(PEAL_IOCTL_MAGIC, 9, struct peal_ioctl_counters)

PEAL_CHECK_SIZE(struct peal_ioctl_header, 8);
PEAL_CHECK_SIZE(struct peal_ioctl_info, 24);
PEAL_CHECK_SIZE(struct peal_ioctl_register, 40);
PEAL_CHECK_SIZE(struct peal_ioctl_unregister, 16);
PEAL_CHECK_SIZE(struct peal_ioctl_reserve_group, 48);
PEAL_CHECK_SIZE(struct peal_ioctl_connect_group, 48);
PEAL_CHECK_SIZE(struct peal_ioctl_abandon_group, 16);
PEAL_CHECK_SIZE(struct peal_ioctl_eventfd, 16);
PEAL_CHECK_SIZE(struct peal_ioctl_kick, 8);
PEAL_CHECK_SIZE(struct peal_ioctl_counters, 32);

#endif
