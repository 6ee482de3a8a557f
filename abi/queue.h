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
#define PEAL_SUBMIT_ANY_TAG 0x0002 /* receive: whatever the message's tag is */
#define PEAL_SUBMIT_FLAGS 0x0003

/* Point-to-point (send, receive, put, get, fence) uses the entry thus: algorithm is none; root is the other rank, for a fence
 * also PEAL_NO_RANK: all; sequence is the tag of a message, else zero (with ANY_TAG as well): such requests are not counted in the
 * group's sequence;
 * block_bytes is a length of 64 bits. What is read is named by send_key and send_offset, what is written by receive_key and
 * receive_offset: of a put the receive side, of a get the send side is memory of the other rank's context, by its card's key.
 * Names of memory that is not used are zero.
 *
 * START (abi/program.h) thus: send_key is the program's handle; sequence the first iteration (0, 1, 2, … of the program, without
 * gaps); block_bytes how many iterations the card runs before it says that they are over, each after the one before; of 0 it
 * looks at all descriptors and carries out none. All other fields are zero. */

struct peal_submission {
	uint8_t operation; /* enum peal_operation: one that a host may ask for */
	uint8_t algorithm; /* enum peal_algorithm, explicit: the library chooses */
	uint16_t flags; /* PEAL_SUBMIT_* */
	uint32_t member; /* own member handle, as reserved */
	uint64_t sequence; /* 0, 1, 2, … within the group, without gaps */
	uint64_t cookie; /* the host's; returned in the completion */
	uint64_t send_offset; /* bytes into the send region; zero in alltoallv */
	union {
		uint64_t receive_offset; /* bytes into the receive region */
		uint64_t parts_offset; /* allgatherv, alltoallv: of the table of parts, bytes into its region */
	};
	uint64_t block_bytes; /* bytes per rank, at most 2^32 - 1; zero in allgatherv and alltoallv */
	uint32_t send_key; /* memory key; ignored in place and where nothing is sent */
	uint32_t receive_key; /* allgatherv, alltoallv: this and send_key are zero where all parts are empty */
	union {
		uint32_t root; /* a rank of the group; zero where the operation has none */
		uint32_t parts_key; /* allgatherv, alltoallv: memory of the context that the card may read */
	};
	uint8_t reserved[3]; /* zero */
	uint8_t phase;
};

/* Where a rank's part of a buffer lies, and how long it is: counts and displacements of MPI. A table of parts has one
 * for each rank, in their order: in allgatherv those of the receive region (the own one says how much is sent from
 * send_offset); in alltoallv those of the send region, then those of the receive region; in place only the latter,
 * which are sent from as well. The card reads it once, some time before the completion: it stays as it is until
 * then. What rank i sends to rank j is as long as j expects, else MISMATCH. */
struct peal_part {
	uint64_t offset; /* bytes into the region; ignored in an empty part */
	uint64_t bytes; /* at most 2^32 - 1 */
};

struct peal_completion {
	uint64_t cookie;
	uint64_t sequence; /* as submitted */
	uint64_t card_ns; /* from accepted to completed, on the card's clock */
	uint32_t member;
	uint32_t failed_rank; /* PEAL_NO_RANK unless the status names one: point-to-point, whose memory could not be used */
	uint16_t status; /* enum peal_status */
	uint8_t operation; /* as submitted */
	uint8_t reserved[5]; /* zero */
	uint64_t bytes; /* send, receive, put, get: of the message, or moved; start: if it failed, index of the descriptor; else zero */
	uint64_t tag; /* receive: of the message; start: enum peal_program_reason; else zero */
	uint8_t reserved_too[7]; /* zero */
	uint8_t phase;
};

PEAL_CHECK_FIELD(struct peal_submission, sequence, 8, 8);
PEAL_CHECK_FIELD(struct peal_submission, cookie, 16, 8);
PEAL_CHECK_FIELD(struct peal_submission, send_offset, 24, 8);
PEAL_CHECK_FIELD(struct peal_submission, receive_offset, 32, 8);
PEAL_CHECK_FIELD(struct peal_submission, parts_offset, 32, 8);
PEAL_CHECK_FIELD(struct peal_submission, block_bytes, 40, 8);
PEAL_CHECK_FIELD(struct peal_submission, send_key, 48, 4);
PEAL_CHECK_FIELD(struct peal_submission, receive_key, 52, 4);
PEAL_CHECK_FIELD(struct peal_submission, root, 56, 4);
PEAL_CHECK_FIELD(struct peal_submission, parts_key, 56, 4);
PEAL_CHECK_FIELD(struct peal_submission, phase, 63, 1);
PEAL_CHECK_SIZE(struct peal_submission, 64);
PEAL_CHECK_FIELD(struct peal_part, bytes, 8, 8);
PEAL_CHECK_SIZE(struct peal_part, 16);
PEAL_CHECK_FIELD(struct peal_completion, card_ns, 16, 8);
PEAL_CHECK_FIELD(struct peal_completion, member, 24, 4);
PEAL_CHECK_FIELD(struct peal_completion, failed_rank, 28, 4);
PEAL_CHECK_FIELD(struct peal_completion, status, 32, 2);
PEAL_CHECK_FIELD(struct peal_completion, operation, 34, 1);
PEAL_CHECK_FIELD(struct peal_completion, bytes, 40, 8);
PEAL_CHECK_FIELD(struct peal_completion, tag, 48, 8);
PEAL_CHECK_FIELD(struct peal_completion, phase, 63, 1);
PEAL_CHECK_SIZE(struct peal_completion, 64);

#endif
