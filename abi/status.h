/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * How a request ended: the status of completions and of administrative replies. One list for the card,
 * the driver and the library, so that an error keeps its name all the way to the user.
 */
#ifndef PEAL_ABI_STATUS_H
#define PEAL_ABI_STATUS_H

/*
 * X(value, symbol, "name", "what it means"). With PEER_DEAD the completion names the rank that is dead. MISMATCH: on
 * operation, algorithm, root or length. BAD_FLAGS also: a reserved field is not zero. BAD_GROUP, BAD_KEY also: a
 * generation that is over, or another context's. BAD_BOUNDS also: offset + length overflows. CLOSED also: the context
 * was closed.
 */
#define PEAL_STATUSES(X)                                                                                      \
	X(0, OK, "OK", "success")                                                                             \
	X(1, PEER_DEAD, "PEER_DEAD", "a member of the group died")                                            \
	X(2, MISMATCH, "MISMATCH", "ranks disagree")                                                          \
	X(3, BAD_OPCODE, "BAD_OPCODE", "the card does not know this operation")                               \
	X(4, BAD_ALGORITHM, "BAD_ALGORITHM", "the card does not know this algorithm")                         \
	X(5, BAD_FLAGS, "BAD_FLAGS", "the card does not know a flag")                                         \
	X(6, BAD_GROUP, "BAD_GROUP", "the card knows no such group of this context")                          \
	X(7, BAD_SEQUENCE, "BAD_SEQUENCE", "not the next operation of the group")                             \
	X(8, BAD_KEY, "BAD_KEY", "the card knows no such memory key of this context")                         \
	X(9, BAD_BOUNDS, "BAD_BOUNDS", "the range leaves its registered memory")                              \
	X(10, BAD_ACCESS, "BAD_ACCESS", "the memory was not registered for this direction")                   \
	X(11, BAD_LENGTH, "BAD_LENGTH", "a length that this card cannot do")                                  \
	X(12, BAD_ROOT, "BAD_ROOT", "no such root rank")                                                      \
	X(13, TOO_MANY, "TOO_MANY", "too many operations outstanding; wait for some")                         \
	X(14, NO_RESOURCES, "NO_RESOURCES", "a fixed pool of the card is used up")                            \
	X(15, BUSY, "BUSY", "still in use by a pending operation")                                            \
	X(16, CLOSED, "CLOSED", "the group was destroyed")                                                    \
	X(17, DMA_FAULT, "DMA_FAULT", "the card could not reach the memory")                                  \
	X(18, BAD_VERSION, "BAD_VERSION", "the library and the card or driver do not speak the same version") \
	X(19, BAD_ADDRESS, "BAD_ADDRESS", "an address or descriptor is unusable")                             \
	X(20, BAD_RANK, "BAD_RANK", "rank or group size out of range")                                        \
	X(21, TRUNCATED, "TRUNCATED", "the message is longer than the receive")                               \
	X(22, BAD_PROGRAM, "BAD_PROGRAM", "a descriptor of the program is bad")

enum peal_status {
#define PEAL_STATUS_ENUM(value, symbol, name, text) PEAL_STATUS_##symbol = value,
	PEAL_STATUSES(PEAL_STATUS_ENUM)
#undef PEAL_STATUS_ENUM
	PEAL_STATUS_COUNT
};

#define PEAL_NO_RANK 0xffffffffu /* failed_rank when no rank is to be named */

#endif
