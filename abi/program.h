/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * Programs: what a triggered queue of the card carries out by itself, start after start. A program is a list of 64-byte
 * descriptors in registered host memory, behind a table of what its counters count. The card takes them in order; one that has to
 * wait waits for an event, not for a host. (Gates by a scheduling pointer: the session mode of Tofu2, Morie and others,
 * "Prototyping of Offloaded Persistent Broadcast on Tofu2 Interconnect". Gates by counters: the task lists of CORE-Direct,
 * Kandalla and others, "Improving Parallel 3D FFT Performance using Hardware Offloaded Collective Communication".)
 *
 * What one descriptor must look like is said here once, for the card, which looks at every descriptor that it fetches, and for
 * the library, which says it beforehand.
 */
#ifndef PEAL_ABI_PROGRAM_H
#define PEAL_ABI_PROGRAM_H

#include "abi/types.h"

#define PEAL_PROGRAM_DESCRIPTORS_MAX 8192 /* of a program; also the most steps that one notice tells */
#define PEAL_PROGRAM_COUNTERS_MAX 1024 /* of a program; a card may have fewer */

#define PEAL_NO_QUEUE 0xffffu /* tells nobody */
#define PEAL_NO_COUNTER 0xffffu /* counts nowhere */
#define PEAL_ANY_RANK 0xffffffffu /* a counter's source: whoever tells it */

/* X(value, symbol, "name", "what it does") */
#define PEAL_PROGRAM_OPCODES(X)                                                                                   \
	X(1, PUT, "put", "own memory to a rank's, then tells a counter there")                                    \
	X(2, SEND, "send", "own memory to a rank that receives it, by tag")                                       \
	X(3, RECEIVE, "receive", "what a rank sends, by tag, to own memory")                                      \
	X(4, WAIT, "wait", "until a counter of this iteration has reached a threshold")                           \
	X(5, SIGNAL, "signal", "tells a counter of a queue, an own one or another rank's")                        \
	X(6, COMPLETE, "complete", "when all before it is over: ends the iteration, and with the last the start") \
	X(7, JUMP, "jump", "back to the beginning, for the next iteration")

enum peal_program_opcode {
#define PEAL_PROGRAM_OPCODE_ENUM(value, symbol, name, text) PEAL_PROGRAM_##symbol = value,
	PEAL_PROGRAM_OPCODES(PEAL_PROGRAM_OPCODE_ENUM)
#undef PEAL_PROGRAM_OPCODE_ENUM
	PEAL_PROGRAM_OPCODE_COUNT
};

/* X(value, symbol, "name", "what it means") */
#define PEAL_PROGRAM_MODES(X)                                         \
	X(1, TASKS, "tasks", "descriptors wait where a WAIT says so") \
	X(2, SESSION, "session", "besides, none is issued behind the scheduling pointer, which counter 0 moves on")

/* Besides, with the mode of a program that is committed: a start that has failed is not over before every rank has begun it. For
 * programs that put into memory whose owner does not say that it is ready: that rests on what a start that is over says of the others. */
#define PEAL_PROGRAM_TOGETHER 0x80
/* And: its puts to other ranks are posted: one that is a packet long is over when the card has its bytes, and is in memory there perhaps
 * later, where the notice says so. For programs in which whoever waits for bytes waits for their notice. */
#define PEAL_PROGRAM_POSTED 0x40

enum peal_program_mode {
#define PEAL_PROGRAM_MODE_ENUM(value, symbol, name, text) PEAL_PROGRAM_MODE_##symbol = value,
	PEAL_PROGRAM_MODES(PEAL_PROGRAM_MODE_ENUM)
#undef PEAL_PROGRAM_MODE_ENUM
	PEAL_PROGRAM_MODE_COUNT
};

/* Why a start ended with BAD_PROGRAM; its completion says at which descriptor. X(value, symbol, "name", "what it means") */
#define PEAL_PROGRAM_REASONS(X)                                                              \
	X(0, NONE, "none", "nothing is wrong")                                               \
	X(1, OPCODE, "opcode", "no such opcode")                                             \
	X(2, FIELD, "field", "a field that this opcode does not use is not zero")            \
	X(3, RANK, "rank", "no such rank, or the card cannot reach it")                      \
	X(4, QUEUE, "queue", "no such queue")                                                \
	X(5, COUNTER, "counter", "no such counter, or not one of that kind")                 \
	X(6, STEPS, "steps", "no steps, or more than a program has descriptors")             \
	X(7, KEY, "key", "no such memory key of this context")                               \
	X(8, BOUNDS, "bounds", "the range leaves its registered memory")                     \
	X(9, ACCESS, "access", "the memory was not registered for this direction")           \
	X(10, LENGTH, "length", "a length that this card cannot do")                         \
	X(11, ORDER, "order", "not COMPLETE and JUMP at the end, and only there")            \
	X(12, CYCLE, "cycle", "begins again without having waited for anything")             \
	X(13, SOURCE, "source", "a counter's source is no rank; the index is the counter's") \
	X(14, AHEAD, "ahead", "a rank told a counter of an iteration that is too far ahead") \
	X(15, OVERFLOW, "overflow", "a rank told more steps than the counter or the scheduling pointer holds")

/* With the reason in a completion: the start that failed was another one, of rank failed_rank, and this one's iterations failed with
 * it. Status, index and reason are that one's. */
#define PEAL_PROGRAM_ELSEWHERE 0x80

enum peal_program_reason {
#define PEAL_PROGRAM_REASON_ENUM(value, symbol, name, text) PEAL_PROGRAM_REASON_##symbol = value,
	PEAL_PROGRAM_REASONS(PEAL_PROGRAM_REASON_ENUM)
#undef PEAL_PROGRAM_REASON_ENUM
	PEAL_PROGRAM_REASON_COUNT
};

/* Fields that an opcode does not use are zero. */
struct peal_descriptor {
	uint8_t opcode; /* enum peal_program_opcode */
	uint8_t reserved0; /* zero */
	uint16_t queue; /* PUT, SIGNAL: name of the queue that is told, of the receiving member; PUT: or PEAL_NO_QUEUE */
	uint16_t counter; /* PUT, SIGNAL: of that queue; WAIT: of this one */
	uint16_t done; /* PUT, SEND, RECEIVE, remote SIGNAL: own counter to which its end adds one, or PEAL_NO_COUNTER */
	uint32_t rank; /* PUT, SEND, SIGNAL: to whom; RECEIVE: from whom */
	uint32_t steps; /* PUT, SIGNAL: what is added to the counter; session mode: the session progress step */
	union {
		uint64_t threshold; /* WAIT; PUT: of its gate, or zero where it has none */
		uint64_t tag; /* SEND, RECEIVE */
	};
	uint64_t offset; /* PUT, SEND, RECEIVE: bytes into own memory */
	uint64_t remote_offset; /* PUT: bytes into the other rank's */
	uint64_t bytes; /* PUT, SEND, RECEIVE: at most 2^32 - 1 */
	uint32_t key; /* PUT, SEND, RECEIVE: own memory; zero where bytes is */
	uint32_t remote_key; /* PUT: the other rank's; zero where bytes is */
	/* PUT: counter of this queue. Before it has reached the threshold the put is held, and what follows may go on without it, as far
	 * as the card has room: nothing that follows may be what opens the gate. */
	uint32_t gate;
	uint32_t reserved1; /* zero */
};

/* Where the descriptors begin, in bytes behind the beginning of the program: before them lies a table of uint32_t, which says for
 * each counter which rank tells it. The own rank: only what happens here, ends of own descriptors and local signals.
 * PEAL_ANY_RANK: any rank of the group. Whoever else tells it changes nothing. */
static inline uint32_t peal_program_sources_bytes(uint32_t counters)
{
	return (counters * 4 + 63) & ~63u;
}

/* What the descriptors of a program are looked at with. */
struct peal_program_shape {
	uint32_t rank; /* own */
	uint32_t ranks; /* of the group */
	uint32_t count; /* of descriptors */
	uint32_t counters;
	uint32_t mode; /* enum peal_program_mode */
	const uint32_t *sources; /* one for each counter, which have been looked at */
};

static inline enum peal_program_reason peal_check_source(const struct peal_program_shape *shape, uint32_t source)
{
	return source < shape->ranks || source == PEAL_ANY_RANK ? PEAL_PROGRAM_REASON_NONE : PEAL_PROGRAM_REASON_SOURCE;
}

static inline int peal_counts_own(const struct peal_program_shape *shape, uint16_t counter)
{
	return counter < shape->counters && shape->sources[counter] == shape->rank;
}

static inline enum peal_program_reason peal_check_memory(const struct peal_descriptor *descriptor)
{
	if (descriptor->bytes > 0xffffffffu)
		return PEAL_PROGRAM_REASON_LENGTH;
	if (descriptor->bytes == 0 && (descriptor->key | descriptor->offset | descriptor->remote_key | descriptor->remote_offset))
		return PEAL_PROGRAM_REASON_FIELD;
	return PEAL_PROGRAM_REASON_NONE;
}

static inline enum peal_program_reason peal_check_done(const struct peal_program_shape *shape,
						       const struct peal_descriptor *descriptor)
{
	return descriptor->done == PEAL_NO_COUNTER || peal_counts_own(shape, descriptor->done) ? PEAL_PROGRAM_REASON_NONE : PEAL_PROGRAM_REASON_COUNTER;
}

static inline enum peal_program_reason peal_check_told(const struct peal_descriptor *descriptor)
{
	if (descriptor->counter >= PEAL_PROGRAM_COUNTERS_MAX)
		return PEAL_PROGRAM_REASON_COUNTER;
	return descriptor->steps == 0 || descriptor->steps > PEAL_PROGRAM_DESCRIPTORS_MAX ? PEAL_PROGRAM_REASON_STEPS : PEAL_PROGRAM_REASON_NONE;
}

/* The scheduling pointer is waited for by itself. */
static inline int peal_may_wait_for(const struct peal_program_shape *shape, uint32_t counter)
{
	return counter < shape->counters && !(shape->mode == PEAL_PROGRAM_MODE_SESSION && counter == 0);
}

static inline enum peal_program_reason peal_check_put(const struct peal_program_shape *shape, const struct peal_descriptor *put)
{
	enum peal_program_reason reason;

	if (put->threshold) {
		if (!peal_may_wait_for(shape, put->gate))
			return PEAL_PROGRAM_REASON_COUNTER;
	} else if (put->gate) {
		return PEAL_PROGRAM_REASON_FIELD;
	}
	if (put->rank >= shape->ranks)
		return PEAL_PROGRAM_REASON_RANK;
	if (put->queue == PEAL_NO_QUEUE) {
		if (put->counter | put->steps)
			return PEAL_PROGRAM_REASON_FIELD;
	} else {
		reason = peal_check_told(put);
		if (reason)
			return reason;
	}
	/* Its packets, each looked at by itself, would go on at the beginning of that memory. */
	if (put->bytes > ~put->remote_offset)
		return PEAL_PROGRAM_REASON_BOUNDS;
	reason = peal_check_done(shape, put);
	return reason ? reason : peal_check_memory(put);
}

static inline enum peal_program_reason peal_check_message(const struct peal_program_shape *shape,
							  const struct peal_descriptor *message)
{
	enum peal_program_reason reason;

	if (message->queue | message->counter | message->steps || message->remote_key | message->gate || message->remote_offset)
		return PEAL_PROGRAM_REASON_FIELD;
	if (message->rank >= shape->ranks)
		return PEAL_PROGRAM_REASON_RANK;
	reason = peal_check_done(shape, message);
	return reason ? reason : peal_check_memory(message);
}

static inline int peal_names_memory_or_gate(const struct peal_descriptor *descriptor)
{
	return descriptor->offset | descriptor->remote_offset | descriptor->bytes || descriptor->key | descriptor->remote_key | descriptor->gate;
}

static inline enum peal_program_reason peal_check_wait(const struct peal_program_shape *shape, const struct peal_descriptor *wait)
{
	if (wait->queue | wait->done || wait->rank || wait->steps || peal_names_memory_or_gate(wait))
		return PEAL_PROGRAM_REASON_FIELD;
	return peal_may_wait_for(shape, wait->counter) ? PEAL_PROGRAM_REASON_NONE : PEAL_PROGRAM_REASON_COUNTER;
}

static inline enum peal_program_reason peal_check_signal(const struct peal_program_shape *shape,
							 const struct peal_descriptor *signal)
{
	enum peal_program_reason reason;

	if (signal->tag || peal_names_memory_or_gate(signal))
		return PEAL_PROGRAM_REASON_FIELD;
	if (signal->rank >= shape->ranks)
		return PEAL_PROGRAM_REASON_RANK;
	if (signal->queue == PEAL_NO_QUEUE)
		return PEAL_PROGRAM_REASON_QUEUE;
	reason = peal_check_told(signal);
	if (reason)
		return reason;
	/* A local one is over when it is issued. */
	if (signal->rank == shape->rank && signal->done != PEAL_NO_COUNTER)
		return PEAL_PROGRAM_REASON_COUNTER;
	return peal_check_done(shape, signal);
}

static inline int peal_is_bare(const struct peal_descriptor *descriptor)
{
	return !(descriptor->queue | descriptor->counter | descriptor->done) && !descriptor->rank && !descriptor->steps &&
	       !descriptor->tag && !peal_names_memory_or_gate(descriptor);
}

/* What is wrong with the descriptor at `index`, but for its keys and for what other ranks' queues have. */
static inline enum peal_program_reason peal_check_descriptor(const struct peal_program_shape *shape, uint32_t index,
							     const struct peal_descriptor *descriptor)
{
	const uint8_t opcode = descriptor->opcode;
	const uint32_t left = shape->count - index; /* this one included */

	if (opcode == 0 || opcode >= PEAL_PROGRAM_OPCODE_COUNT)
		return PEAL_PROGRAM_REASON_OPCODE;
	if (descriptor->reserved0 | descriptor->reserved1)
		return PEAL_PROGRAM_REASON_FIELD;
	if (left <= 2 ? opcode != (left == 2 ? PEAL_PROGRAM_COMPLETE : PEAL_PROGRAM_JUMP) : opcode >= PEAL_PROGRAM_COMPLETE)
		return PEAL_PROGRAM_REASON_ORDER;
	switch (opcode) {
	case PEAL_PROGRAM_PUT:
		return peal_check_put(shape, descriptor);
	case PEAL_PROGRAM_SEND:
	case PEAL_PROGRAM_RECEIVE:
		return peal_check_message(shape, descriptor);
	case PEAL_PROGRAM_WAIT:
		return peal_check_wait(shape, descriptor);
	case PEAL_PROGRAM_SIGNAL:
		return peal_check_signal(shape, descriptor);
	default:
		return peal_is_bare(descriptor) ? PEAL_PROGRAM_REASON_NONE : PEAL_PROGRAM_REASON_FIELD;
	}
}

/* Does an iteration that carries it out take as long as a message, at least? What does not may not begin again by itself. A program
 * in session mode whose descriptors are not all scheduled from the beginning does so anyway if others move its pointer on. */
static inline int peal_is_gate(const struct peal_program_shape *shape, const struct peal_descriptor *descriptor)
{
	switch (descriptor->opcode) {
	case PEAL_PROGRAM_PUT:
	case PEAL_PROGRAM_SEND:
	case PEAL_PROGRAM_RECEIVE:
		return 1;
	case PEAL_PROGRAM_SIGNAL:
		return descriptor->rank != shape->rank;
	case PEAL_PROGRAM_WAIT:
		return descriptor->threshold != 0 && !peal_counts_own(shape, descriptor->counter);
	default:
		return 0;
	}
}

PEAL_CHECK_FIELD(struct peal_descriptor, queue, 2, 2);
PEAL_CHECK_FIELD(struct peal_descriptor, counter, 4, 2);
PEAL_CHECK_FIELD(struct peal_descriptor, done, 6, 2);
PEAL_CHECK_FIELD(struct peal_descriptor, rank, 8, 4);
PEAL_CHECK_FIELD(struct peal_descriptor, steps, 12, 4);
PEAL_CHECK_FIELD(struct peal_descriptor, threshold, 16, 8);
PEAL_CHECK_FIELD(struct peal_descriptor, tag, 16, 8);
PEAL_CHECK_FIELD(struct peal_descriptor, offset, 24, 8);
PEAL_CHECK_FIELD(struct peal_descriptor, remote_offset, 32, 8);
PEAL_CHECK_FIELD(struct peal_descriptor, bytes, 40, 8);
PEAL_CHECK_FIELD(struct peal_descriptor, key, 48, 4);
PEAL_CHECK_FIELD(struct peal_descriptor, remote_key, 52, 4);
PEAL_CHECK_FIELD(struct peal_descriptor, gate, 56, 4);
PEAL_CHECK_FIELD(struct peal_descriptor, reserved1, 60, 4);
PEAL_CHECK_SIZE(struct peal_descriptor, 64);

#endif
