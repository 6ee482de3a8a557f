/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * Submission and completion entries: 64 bytes, one cache line, each. The last byte is the phase; whoever
 * produces the entry writes it last. An entry in slot i of the ring's pass p (p = index / entries) is valid
 * when phase == (p & 1) ? 2 : 1, so that zeroed memory is never valid.
 */
#ifndef PEAL_ABI_QUEUE_H
#define PEAL_ABI_QUEUE_H

#include "abi/status.h"
#include "abi/types.h"
#include "abi/wire.h"

#define PEAL_SUBMIT_IN_PLACE 0x0001 /* own block already lies in the receive buffer */
#define PEAL_SUBMIT_FLAGS 0x0001

struct peal_submission {
	uint8_t operation; /* enum peal_operation: one that a host may ask for */
	uint8_t algorithm; /* enum peal_algorithm, explicit: the library chooses */
	uint16_t flags; /* PEAL_SUBMIT_* */
	uint32_t member; /* own member handle, as reserved */
	uint64_t sequence; /* 0, 1, 2, … within the group, without gaps */
	uint64_t cookie; /* the host's; returned in the completion */
	uint64_t send_offset; /* bytes into the send region */
	uint64_t receive_offset; /* bytes into the receive region */
	uint64_t block_bytes; /* bytes per rank, at most 2^32 - 1 */
	uint32_t send_key; /* memory key; ignored in place and where nothing is sent */
	uint32_t receive_key;
	uint32_t root; /* a rank of the group; zero where the operation has none */
	uint8_t reserved[3]; /* zero */
	uint8_t phase;
};

struct peal_completion {
	uint64_t cookie;
	uint64_t sequence;
	uint64_t card_ns; /* from accepted to completed, on the card's clock */
	uint32_t member;
	uint32_t failed_rank; /* PEAL_NO_RANK unless the status names one */
	uint16_t status; /* enum peal_status */
	uint8_t operation; /* as submitted */
	uint8_t reserved[28]; /* zero */
	uint8_t phase;
};

PEAL_CHECK_FIELD(struct peal_submission, sequence, 8, 8);
PEAL_CHECK_FIELD(struct peal_submission, cookie, 16, 8);
PEAL_CHECK_FIELD(struct peal_submission, send_offset, 24, 8);
PEAL_CHECK_FIELD(struct peal_submission, receive_offset, 32, 8);
PEAL_CHECK_FIELD(struct peal_submission, block_bytes, 40, 8);
PEAL_CHECK_FIELD(struct peal_submission, send_key, 48, 4);
PEAL_CHECK_FIELD(struct peal_submission, receive_key, 52, 4);
PEAL_CHECK_FIELD(struct peal_submission, root, 56, 4);
PEAL_CHECK_FIELD(struct peal_submission, phase, 63, 1);
PEAL_CHECK_SIZE(struct peal_submission, 64);
PEAL_CHECK_FIELD(struct peal_completion, card_ns, 16, 8);
PEAL_CHECK_FIELD(struct peal_completion, member, 24, 4);
PEAL_CHECK_FIELD(struct peal_completion, failed_rank, 28, 4);
PEAL_CHECK_FIELD(struct peal_completion, status, 32, 2);
PEAL_CHECK_FIELD(struct peal_completion, operation, 34, 1);
PEAL_CHECK_FIELD(struct peal_completion, phase, 63, 1);
PEAL_CHECK_SIZE(struct peal_completion, 64);

#endif
