/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * ioctls of /dev/pealN. Every structure begins with its version and size. Structures grow at their end: what an older
 * caller's lacks is zero, and what a newer caller's has beyond the driver's must be zero (E2BIG), which gives nothing
 * back there. Another version is refused with EINVAL, a size that is not the one in the ioctl's number with EMSGSIZE. A
 * failed ioctl sets errno, and leaves what it would have written as it was.
 *
 * An open file has one context, with memory keys and groups of its own: from its first INFO, ASK, EVENTFD or mmap on, which
 * waits for the card and is EBUSY where the card has none left.
 *
 * Administration (abi/admin.h) is one ioctl, PEAL_IOCTL_ASK, which takes a command to the card and brings its reply.
 *
 * mmap of the file descriptor: offset 0 is the context window (first page read-only, the rest read-write);
 * offset PEAL_MMAP_DOORBELL is the page of BAR0 that holds the doorbell, write-only, where the platform gives
 * BAR0 a page of its own (peal_ioctl_info.doorbell_bytes is zero where not: use PEAL_IOCTL_KICK); offset
 * PEAL_MMAP_DEPARTURES is a page of the kernel's, read-only, whose first 64 bits count how often registered memory has left the
 * process: it was unmapped or moved, or its pages were thrown away. The card goes on with the pages that it had;
 * PEAL_IOCTL_DEPARTED names the keys.
 */
#ifndef PEAL_ABI_IOCTL_H
#define PEAL_ABI_IOCTL_H

#include "abi/types.h"
#ifdef __KERNEL__
#include <linux/ioctl.h>
#else
#include <sys/ioctl.h>
#endif

#define PEAL_MMAP_WINDOW 0x00000000u
#define PEAL_MMAP_DOORBELL 0x10000000u
#define PEAL_MMAP_DEPARTURES 0x20000000u

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

/*
 * The command's version and bytes are as in abi/admin.h; its context, tag and reserved are zero, since the driver knows whose
 * it is, and so is the tag of the reply. Memory is registered with PEAL_MEMORY_PROCESS: the driver pins it and
 * names its pages to the card. A group is reserved without channels: they are the driver's. Everything else goes to the card as
 * it is. What is not a process' to ask for (OPEN_CONTEXT, CLOSE_CONTEXT, REAP_CHANNELS, other kinds of memory) is EPERM, what
 * does not exist EINVAL; the card has then not heard of it.
 */
struct peal_ioctl_ask {
	struct peal_ioctl_header header;
	uint64_t command; /* in: pointer to a struct peal_admin_command */
	uint64_t reply; /* out: pointer to a struct peal_admin_reply, whose status is the card's verdict */
};

struct peal_ioctl_eventfd {
	struct peal_ioctl_header header;
	int32_t fd; /* in: signalled when this context has completions and sleeps; -1 takes it back */
	uint32_t reserved; /* zero */
};

struct peal_ioctl_kick {
	struct peal_ioctl_header header;
};

/* One registration whose memory left, each once, in no particular order. */
struct peal_ioctl_departed {
	struct peal_ioctl_header header;
	uint32_t key; /* out */
	uint32_t found; /* out: 1, or 0 where there is none (any more) */
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
/* 2 to 6 and 9 were the commands of version 2, one by one. */
#define PEAL_IOCTL_INFO _IOWR(PEAL_IOCTL_MAGIC, 1, struct peal_ioctl_info)
#define PEAL_IOCTL_EVENTFD _IOWR(PEAL_IOCTL_MAGIC, 7, struct peal_ioctl_eventfd)
#define PEAL_IOCTL_KICK _IOWR(PEAL_IOCTL_MAGIC, 8, struct peal_ioctl_kick)
#define PEAL_IOCTL_ASK _IOWR(PEAL_IOCTL_MAGIC, 10, struct peal_ioctl_ask)
#define PEAL_IOCTL_DEPARTED _IOWR(PEAL_IOCTL_MAGIC, 11, struct peal_ioctl_departed)

PEAL_CHECK_SIZE(struct peal_ioctl_header, 8);
PEAL_CHECK_SIZE(struct peal_ioctl_info, 24);
PEAL_CHECK_SIZE(struct peal_ioctl_ask, 24);
PEAL_CHECK_SIZE(struct peal_ioctl_eventfd, 16);
PEAL_CHECK_SIZE(struct peal_ioctl_kick, 8);
PEAL_CHECK_SIZE(struct peal_ioctl_departed, 16);

#endif
