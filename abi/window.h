/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * The context window: the registers and rings through which one host context and one card talk. It is plain
 * memory (a sealed memfd behind a Unix socket, a slice of an ivshmem BAR, host memory that a DPU reaches by
 * RDMA), so it has no side effects on access, one writer per cache line, and no read-modify-write across the
 * seam. The first page is written by the card only, the second by the host only; then come the rings.
 *
 *   0x0000  card page: directory, device, heartbeat, reset acknowledge, indices, sleeping flag
 *   0x1000  host page: submission tail (the doorbell), completion head, sleeping flag, reset request
 *   0x2000  submission ring (host writes)      entries * 64 bytes
 *   ......  completion ring (card writes)      entries * 64 bytes
 */
#ifndef PEAL_ABI_WINDOW_H
#define PEAL_ABI_WINDOW_H

#include "abi/queue.h"
#include "abi/types.h"

#define PEAL_WINDOW_MAGIC 0x6c616570u /* "peal" in memory order */
#define PEAL_RING_ENTRIES_MIN 16
#define PEAL_RING_ENTRIES_MAX 4096

/* Self-describing: a reader walks the directory and skips the types and versions it does not know. */
enum peal_block_type {
	PEAL_BLOCK_DEVICE = 1,
	PEAL_BLOCK_HEARTBEAT = 2,
	PEAL_BLOCK_RESET = 3,
	PEAL_BLOCK_SUBMISSION = 4,
	PEAL_BLOCK_COMPLETION = 5,
};

enum peal_ring_home {
	PEAL_HOME_WINDOW = 1, /* in this window */
	PEAL_HOME_HOST = 2, /* in host memory, reached by the card's DMA engine or RDMA */
};

struct peal_block {
	uint16_t type; /* enum peal_block_type */
	uint16_t version; /* of that block's layout */
	uint32_t offset; /* bytes from the window's start */
	uint32_t bytes;
	uint32_t home; /* enum peal_ring_home; meaningful for rings */
};

struct peal_directory {
	uint32_t magic; /* PEAL_WINDOW_MAGIC, written last */
	uint32_t abi_version; /* PEAL_ABI_VERSION */
	uint32_t window_bytes;
	uint32_t block_count;
	struct peal_block blocks[11];
};

#define PEAL_CAPABILITY_CHECKSUM_HARDWARE 0x01u
#define PEAL_CAPABILITY_CHECKSUM_SKIPPED 0x02u
#define PEAL_CAPABILITY_PROCESS_MEMORY 0x04u /* memory of a process by address */
#define PEAL_CAPABILITY_SHARED_MEMORY 0x08u /* card-created shared memory */
#define PEAL_CAPABILITY_PAGE_LISTS 0x10u /* pinned pages by bus address */

struct peal_device {
	uint8_t mac[PEAL_MAC_BYTES];
	uint16_t card_index; /* within its emulator process */
	uint32_t incarnation; /* changes with every start of the card */
	uint32_t capabilities; /* PEAL_CAPABILITY_* */
	uint32_t context; /* this window's context id */
	uint32_t ranks_max;
	uint32_t members_max;
	uint32_t channels; /* K: operations a rank may be ahead, per group */
	uint32_t parked_max; /* further operations that wait on the card, per group */
	uint32_t piece_window; /* W: pieces open at once, per operation */
	uint32_t mtu_bytes; /* payload */
	uint32_t channel_bytes; /* host memory per channel: its images and its share of a page; a group needs channels times that */
	uint32_t ring_entries; /* of both rings, a power of two */
	uint32_t dead_timeout_us; /* silence after which a peer is dead */
	uint32_t geometry; /* as in struct peal_peer_address */
	uint32_t remembered_addresses; /* largest group whose ranks all may talk to each other (peal_may_talk_to_all) */
};

struct peal_heartbeat {
	uint64_t beats; /* grows while the card lives, at least every heartbeat_interval_us */
	uint32_t heartbeat_interval_us;
	uint8_t reserved[52];
};

struct peal_reset_acknowledge {
	uint32_t epoch; /* equals the requested epoch once the card has let go of everything */
	uint8_t reserved[60];
};

struct peal_card_indices {
	uint64_t submission_head; /* entries the card has copied; free-running */
	uint64_t faults; /* entries or indices refused by the ring itself */
	uint8_t reserved[48];
};

struct peal_card_sleep {
	uint32_t sleeping; /* 1: the card needs a doorbell interrupt to look */
	uint8_t reserved[60];
};

struct peal_card_page {
	struct peal_directory directory; /* 0x000 */
	uint8_t reserved0[64];
	struct peal_device device; /* 0x100 */
	struct peal_heartbeat heartbeat; /* 0x140 */
	struct peal_reset_acknowledge reset; /* 0x180 */
	struct peal_card_indices indices; /* 0x1c0 */
	struct peal_card_sleep sleep; /* 0x200 */
	uint8_t reserved1[PEAL_PAGE_BYTES - 0x240];
};

struct peal_host_line {
	uint64_t value;
	uint8_t reserved[56];
};

/* Side by side: the card reads both where it takes a submission. */
struct peal_host_indices {
	uint64_t submission_tail; /* free-running; the doorbell */
	/* free-running: entries the host has consumed. Said where it matters: with each submission, and where the host
	 * looks for a completion and finds none. */
	uint64_t completion_head;
	uint8_t reserved[48];
};

struct peal_host_page {
	struct peal_host_indices indices;
	struct peal_host_line sleeping; /* 1: the host wants an interrupt for the next completion */
	struct peal_host_line reset_epoch; /* the epoch the host asks for */
	uint8_t reserved[PEAL_PAGE_BYTES - 3 * PEAL_CACHE_LINE_BYTES];
};

#define PEAL_WINDOW_CARD_PAGE 0x0000
#define PEAL_WINDOW_HOST_PAGE 0x1000
#define PEAL_WINDOW_SUBMISSIONS 0x2000
#define PEAL_WINDOW_COMPLETIONS(entries) (PEAL_WINDOW_SUBMISSIONS + (entries)*64u)
#define PEAL_WINDOW_BYTES(entries)                                                  \
	((PEAL_WINDOW_COMPLETIONS(entries) + (entries)*64u + PEAL_PAGE_BYTES - 1) & \
	 ~(PEAL_PAGE_BYTES - 1u))

/* One page per context, read-only to its client: its sleepers, and nobody else's, wait (futex) on the broadcast word. */
struct peal_broadcast_page {
	uint32_t wake_word; /* bumped after completions; wakes every sleeper of the context */
	uint8_t reserved[PEAL_PAGE_BYTES - 4];
};

PEAL_CHECK_SIZE(struct peal_block, 16);
PEAL_CHECK_SIZE(struct peal_directory, 192);
PEAL_CHECK_SIZE(struct peal_device, 64);
PEAL_CHECK_SIZE(struct peal_heartbeat, 64);
PEAL_CHECK_SIZE(struct peal_reset_acknowledge, 64);
PEAL_CHECK_SIZE(struct peal_card_indices, 64);
PEAL_CHECK_SIZE(struct peal_card_sleep, 64);
PEAL_CHECK_FIELD(struct peal_card_page, device, 0x100, 64);
PEAL_CHECK_FIELD(struct peal_card_page, heartbeat, 0x140, 64);
PEAL_CHECK_FIELD(struct peal_card_page, reset, 0x180, 64);
PEAL_CHECK_FIELD(struct peal_card_page, indices, 0x1c0, 64);
PEAL_CHECK_FIELD(struct peal_card_page, sleep, 0x200, 64);
PEAL_CHECK_SIZE(struct peal_card_page, PEAL_PAGE_BYTES);
PEAL_CHECK_SIZE(struct peal_host_line, 64);
PEAL_CHECK_SIZE(struct peal_host_indices, 64);
PEAL_CHECK_FIELD(struct peal_host_page, indices, 0x000, 64);
PEAL_CHECK_FIELD(struct peal_host_page, sleeping, 0x040, 64);
PEAL_CHECK_FIELD(struct peal_host_page, reset_epoch, 0x080, 64);
PEAL_CHECK_SIZE(struct peal_host_page, PEAL_PAGE_BYTES);
PEAL_CHECK_SIZE(struct peal_broadcast_page, PEAL_PAGE_BYTES);

#endif
