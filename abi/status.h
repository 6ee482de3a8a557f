/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * How a request ended: the status of completions and of administrative replies. One list for the card,
 * the driver and the library, so that an error keeps its name all the way to the user.
 */
#ifndef PEAL_ABI_STATUS_H
#define PEAL_ABI_STATUS_H

enum peal_status {
	PEAL_STATUS_OK = 0,
	PEAL_STATUS_PEER_DEAD = 1, /* a member died; the completion names its rank */
	PEAL_STATUS_MISMATCH = 2, /* ranks disagree on operation, algorithm, root or length */
	PEAL_STATUS_BAD_OPCODE = 3,
	PEAL_STATUS_BAD_ALGORITHM = 4,
	PEAL_STATUS_BAD_FLAGS = 5, /* unknown flag, or a reserved field is not zero */
	PEAL_STATUS_BAD_GROUP = 6, /* no such member handle, stale generation, or another context's */
	PEAL_STATUS_BAD_SEQUENCE = 7, /* not the next sequence number of the group */
	PEAL_STATUS_BAD_KEY = 8, /* no such memory key, stale generation, or another context's */
	PEAL_STATUS_BAD_BOUNDS = 9, /* offset + length leaves the registered region, or overflows */
	PEAL_STATUS_BAD_ACCESS = 10, /* the region was not registered for this direction */
	PEAL_STATUS_BAD_LENGTH = 11, /* a length that this card cannot do */
	PEAL_STATUS_BAD_ROOT = 12,
	PEAL_STATUS_TOO_MANY = 13, /* the group's parking quota is used up */
	PEAL_STATUS_NO_RESOURCES = 14, /* a fixed pool of the card is exhausted: try again later */
	PEAL_STATUS_BUSY = 15, /* memory or group is in use by a pending operation */
	PEAL_STATUS_CLOSED = 16, /* the group was destroyed, or the context closed */
	PEAL_STATUS_DMA_FAULT = 17, /* the card could not reach the user's memory */
	PEAL_STATUS_BAD_VERSION = 18, /* ABI version or size of a structure not understood */
	PEAL_STATUS_BAD_ADDRESS = 19, /* pointer, page list or file descriptor unusable */
	PEAL_STATUS_BAD_RANK = 20, /* rank or group size out of range */
	PEAL_STATUS_COUNT
};

#define PEAL_NO_RANK 0xffffffffu /* failed_rank when no rank is to be named */

#endif
