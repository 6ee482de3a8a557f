/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * How the two sides of a context window talk: the producers, the consumers and the sleeping handshake, once. Free-running
 * 64-bit indices; the tail is the truth, the phase byte says that an entry's 64 bytes have all arrived (a reader
 * that fetches by RDMA may see the tail first), the doorbell is an idempotent hint.
 *
 * Sleeping: the side that wants to sleep sets its flag, fences, and looks again; the other side publishes, fences,
 * and looks at the flag. So at least one of them sees the other.
 *
 * Not thread-safe: one producer and one consumer per ring. User space and card only; the kernel never touches a ring.
 */
#ifndef PEAL_ABI_RING_H
#define PEAL_ABI_RING_H

#include "abi/queue.h"
#include "abi/window.h"

#define PEAL_RING_INLINE static inline __attribute__((always_inline))

PEAL_RING_INLINE uint8_t peal_ring_phase(uint64_t index, uint32_t entries)
{
	return (index & entries) ? 2 : 1;
}

PEAL_RING_INLINE uint64_t peal_ring_word(const void *entry, int i)
{
	uint64_t word;

	__builtin_memcpy(&word, (const uint8_t *)entry + 8 * i, sizeof(word));
	return word;
}

PEAL_RING_INLINE void peal_ring_store_word(void *slot, int i, uint64_t word)
{
	__atomic_store_n((uint64_t *)slot + i, word, __ATOMIC_RELAXED);
}

/* All but the words 1 and 2, the last of them with the phase. Word by word from where it is: a loop, or a copy of the
 * entry first, would take twice the instructions. */
PEAL_RING_INLINE void peal_ring_store_others(void *slot, const void *entry, uint8_t phase)
{
	uint64_t last = peal_ring_word(entry, 7) & 0x00ffffffffffffffu;

	peal_ring_store_word(slot, 0, peal_ring_word(entry, 0));
	peal_ring_store_word(slot, 3, peal_ring_word(entry, 3));
	peal_ring_store_word(slot, 4, peal_ring_word(entry, 4));
	peal_ring_store_word(slot, 5, peal_ring_word(entry, 5));
	peal_ring_store_word(slot, 6, peal_ring_word(entry, 6));
	__atomic_store_n((uint64_t *)slot + 7, last | (uint64_t)phase << 56, __ATOMIC_RELEASE);
}

PEAL_RING_INLINE void peal_ring_store_entry(void *slot, const void *entry, uint8_t phase)
{
	peal_ring_store_word(slot, 1, peal_ring_word(entry, 1));
	peal_ring_store_word(slot, 2, peal_ring_word(entry, 2));
	peal_ring_store_others(slot, entry, phase);
}

/* 1 and a copy when the entry carries the expected phase, else 0. The copy is the only read. */
PEAL_RING_INLINE int peal_ring_load_entry(const void *slot, void *entry, uint8_t phase)
{
	const uint64_t *from = (const uint64_t *)slot;
	uint64_t words[8];

	words[7] = __atomic_load_n(&from[7], __ATOMIC_ACQUIRE);
	if (((const uint8_t *)words)[63] != phase)
		return 0;
	words[0] = __atomic_load_n(&from[0], __ATOMIC_RELAXED);
	words[1] = __atomic_load_n(&from[1], __ATOMIC_RELAXED);
	words[2] = __atomic_load_n(&from[2], __ATOMIC_RELAXED);
	words[3] = __atomic_load_n(&from[3], __ATOMIC_RELAXED);
	words[4] = __atomic_load_n(&from[4], __ATOMIC_RELAXED);
	words[5] = __atomic_load_n(&from[5], __ATOMIC_RELAXED);
	words[6] = __atomic_load_n(&from[6], __ATOMIC_RELAXED);
	__builtin_memcpy(entry, words, sizeof(words));
	return 1;
}

/* Host side of a window. */
struct peal_host_ring {
	struct peal_card_page *card; /* read only */
	struct peal_host_page *host;
	struct peal_submission *submissions;
	const struct peal_completion *completions;
	uint32_t entries;
	uint64_t submission_tail;
	uint64_t completion_head;
};

PEAL_RING_INLINE void peal_host_ring_init(struct peal_host_ring *ring, void *window,
					  uint32_t entries)
{
	uint8_t *base = (uint8_t *)window;

	ring->card = (struct peal_card_page *)(void *)(base + PEAL_WINDOW_CARD_PAGE);
	ring->host = (struct peal_host_page *)(void *)(base + PEAL_WINDOW_HOST_PAGE);
	ring->submissions = (struct peal_submission *)(void *)(base + PEAL_WINDOW_SUBMISSIONS);
	ring->completions = (const struct peal_completion *)(const void *)(base +
									   PEAL_WINDOW_COMPLETIONS(entries));
	ring->entries = entries;
	ring->submission_tail = 0;
	ring->completion_head = 0;
}

/* 1 when published, 0 when the ring is full. After a 1, ring the doorbell if peal_host_ring_card_sleeps(). The entry's
 * own sequence and cookie are not looked at, so that what was posted before need not be written to be posted anew. */
PEAL_RING_INLINE int peal_host_ring_submit_as(struct peal_host_ring *ring,
					      const struct peal_submission *entry, uint64_t sequence,
					      uint64_t cookie)
{
	uint64_t tail = ring->submission_tail;
	uint64_t head = __atomic_load_n(&ring->card->indices.submission_head, __ATOMIC_ACQUIRE);
	void *slot = &ring->submissions[tail & (ring->entries - 1)];

	if (tail - head >= ring->entries)
		return 0;
	peal_ring_store_word(slot, 1, sequence);
	peal_ring_store_word(slot, 2, cookie);
	peal_ring_store_others(slot, entry, peal_ring_phase(tail, ring->entries));
	ring->submission_tail = tail + 1;
	__atomic_store_n(&ring->host->indices.completion_head, ring->completion_head, __ATOMIC_RELEASE);
	__atomic_store_n(&ring->host->indices.submission_tail, tail + 1, __ATOMIC_RELEASE);
	return 1;
}

PEAL_RING_INLINE int peal_host_ring_submit(struct peal_host_ring *ring,
					   const struct peal_submission *entry)
{
	return peal_host_ring_submit_as(ring, entry, entry->sequence, entry->cookie);
}

PEAL_RING_INLINE int peal_host_ring_card_sleeps(struct peal_host_ring *ring)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&ring->card->sleep.sleeping, __ATOMIC_RELAXED) != 0;
}

/* 1 and a copy, or 0 when nothing has completed. The card is told how far the host has read where it may lack room for
 * what the host waits for: with the next submission, or here where nothing is found. What is found touches nothing but
 * its entry. */
PEAL_RING_INLINE int peal_host_ring_poll(struct peal_host_ring *ring, struct peal_completion *entry)
{
	uint64_t head = ring->completion_head;
	uint64_t *told = &ring->host->indices.completion_head;

	if (!peal_ring_load_entry(&ring->completions[head & (ring->entries - 1)], entry,
				  peal_ring_phase(head, ring->entries))) {
		if (__atomic_load_n(told, __ATOMIC_RELAXED) != head)
			__atomic_store_n(told, head, __ATOMIC_RELEASE);
		return 0;
	}
	ring->completion_head = head + 1;
	return 1;
}

/* Announce sleep; then poll once more before really sleeping. */
PEAL_RING_INLINE void peal_host_ring_set_sleeping(struct peal_host_ring *ring, int sleeping)
{
	__atomic_store_n(&ring->host->sleeping.value, (uint64_t)sleeping, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Card side of a window. Everything read from the host page is checked here. */
struct peal_card_ring {
	struct peal_card_page *card;
	struct peal_host_page *host; /* read only */
	const struct peal_submission *submissions;
	struct peal_completion *completions;
	uint32_t entries;
	uint64_t submission_head;
	uint64_t completion_tail;
};

enum peal_ring_poll {
	PEAL_RING_EMPTY = 0,
	PEAL_RING_ENTRY = 1,
	PEAL_RING_WILD = 2, /* the host's index is impossible: counted, the ring is left alone */
};

PEAL_RING_INLINE void peal_card_ring_init(struct peal_card_ring *ring, void *window,
					  uint32_t entries)
{
	uint8_t *base = (uint8_t *)window;

	ring->card = (struct peal_card_page *)(void *)(base + PEAL_WINDOW_CARD_PAGE);
	ring->host = (struct peal_host_page *)(void *)(base + PEAL_WINDOW_HOST_PAGE);
	ring->submissions = (const struct peal_submission *)(const void *)(base + PEAL_WINDOW_SUBMISSIONS);
	ring->completions = (struct peal_completion *)(void *)(base + PEAL_WINDOW_COMPLETIONS(entries));
	ring->entries = entries;
	ring->submission_head = 0;
	ring->completion_tail = 0;
}

/* Takes one entry by copy: what the host writes afterwards into the slot has no effect. */
PEAL_RING_INLINE enum peal_ring_poll peal_card_ring_poll(struct peal_card_ring *ring,
							 struct peal_submission *entry)
{
	uint64_t head = ring->submission_head;
	uint64_t tail = __atomic_load_n(&ring->host->indices.submission_tail, __ATOMIC_ACQUIRE);

	if (tail == head)
		return PEAL_RING_EMPTY;
	if (tail - head > ring->entries)
		return PEAL_RING_WILD;
	if (!peal_ring_load_entry(&ring->submissions[head & (ring->entries - 1)], entry,
				  peal_ring_phase(head, ring->entries)))
		return PEAL_RING_EMPTY;
	ring->submission_head = head + 1;
	__atomic_store_n(&ring->card->indices.submission_head, head + 1, __ATOMIC_RELEASE);
	return PEAL_RING_ENTRY;
}

/* Completions that fit now; -1 when the host's index is impossible. */
PEAL_RING_INLINE int64_t peal_card_ring_space(struct peal_card_ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->host->indices.completion_head, __ATOMIC_ACQUIRE);
	uint64_t used = ring->completion_tail - head;

	if (used > ring->entries)
		return -1;
	return (int64_t)(ring->entries - used);
}

/* The caller has made sure of space (it takes no more submissions than completions fit). */
PEAL_RING_INLINE void peal_card_ring_complete(struct peal_card_ring *ring,
					      const struct peal_completion *entry)
{
	uint64_t tail = ring->completion_tail;

	peal_ring_store_entry(&ring->completions[tail & (ring->entries - 1)], entry,
			      peal_ring_phase(tail, ring->entries));
	ring->completion_tail = tail + 1;
}

/* After completions: does the host sleep, and so want an interrupt or a broadcast? */
PEAL_RING_INLINE int peal_card_ring_host_sleeps(struct peal_card_ring *ring)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&ring->host->sleeping.value, __ATOMIC_RELAXED) != 0;
}

/* Announce sleep; then poll once more before really sleeping. */
PEAL_RING_INLINE void peal_card_ring_set_sleeping(struct peal_card_ring *ring, int sleeping)
{
	__atomic_store_n(&ring->card->sleep.sleeping, (uint32_t)sleeping, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#endif
