/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * The wire format: one Ethernet frame is one Peal packet, a 64-byte header and at most one MTU of payload (of PUT, STREAM and
 * ANNOUNCE behind a body of PEAL_P2P_BODY_BYTES).
 * Header and payload have a CRC32C each, so that a card which forwards a packet rewrites and sums 64 bytes
 * only, and the payload keeps the sum its origin gave it from end to end. (Collective packets, hopping flags
 * (origin, hop) and NACKs: Yu, Buntinas, Panda, "NIC-Based Allgather over Myrinet/GM", sections 4 and 5.)
 */
#ifndef PEAL_ABI_WIRE_H
#define PEAL_ABI_WIRE_H

#include "abi/types.h"

#define PEAL_WIRE_VERSION 3
#define PEAL_ETHERTYPE 0x88b5 /* IEEE 802 local experimental */
#define PEAL_MAC_BYTES 6
#define PEAL_HEADER_BYTES 64

/* Lists: X(value, symbol, "name", "what it means"). Values on the wire never change. */
#define PEAL_PACKET_TYPES(X)                                                                                             \
	X(1, DATA, "DATA", "a block, or a part of one")                                                                  \
	X(2, SIGNAL, "SIGNAL", "one round of a dissemination; a credit of a broadcast; an epoch is over")                \
	X(3, NACK, "NACK", "something is missing; payload: struct peal_nack")                                            \
	X(4, NOT_YET, "NOT_YET", "answer to a NACK: alive, but the data is not there yet; payload: struct peal_not_yet") \
	X(5, REFUSE, "REFUSE", "ranks disagree about this sequence; payload: struct peal_verdict")                       \
	X(6, DEATH, "DEATH", "a member is dead, the group is poisoned; payload: struct peal_verdict")                    \
	X(7, PROBE, "PROBE", "are you there?")                                                                           \
	X(8, ALIVE, "ALIVE", "answer to a probe; or, unasked, how many packets there have been")                         \
	X(9, FAREWELL, "FAREWELL", "the sender has completed the destroy: it will ask nothing any more")                 \
	/* point-to-point, see below */                                                                                  \
	X(10, OPEN, "OPEN", "asks for a connection")                                                                     \
	X(11, ACCEPT, "ACCEPT", "gives it")                                                                              \
	X(12, CLOSE, "CLOSE", "the sender sends nothing more by this connection")                                        \
	X(13, CLOSED, "CLOSED", "nor does this one: there is no such connection here any more")                          \
	X(14, ACK, "ACK", "which packets are in memory")                                                                 \
	X(15, REFUSED, "REFUSED", "this packet cannot be carried out, and why")                                          \
	X(16, SKIP, "SKIP", "takes the number of a packet that was refused, or will not be sent")                        \
	X(17, PUT, "PUT", "bytes for memory that a key names")                                                           \
	X(18, STREAM, "STREAM", "bytes for a receive or a get")                                                          \
	X(19, ANNOUNCE, "ANNOUNCE", "a message, with its bytes where the receiver has room for them")                    \
	X(20, READY, "READY", "a receive for an announced message: its bytes may come")                                  \
	X(21, GET, "GET", "asks for bytes of memory that a key names")                                                   \
	X(22, DONE, "DONE", "how a request of the receiver's ended, where this side knows")                              \
	/* of the group again: programs */                                                                               \
	X(23, FAILURE, "FAILURE", "iterations of a program have failed; payload: struct peal_failed")                    \
	X(24, KNOWN, "KNOWN", "answer to FAILURE: the sender knows it; payload: its own")                                \
	/* point-to-point again */                                                                                       \
	X(25, SEEK, "SEEK", "tags of which a message is wanted before those that were announced")

enum peal_packet_type {
#define PEAL_PACKET_ENUM(value, symbol, name, text) PEAL_PACKET_##symbol = value,
	PEAL_PACKET_TYPES(PEAL_PACKET_ENUM)
#undef PEAL_PACKET_ENUM
	PEAL_PACKET_TYPE_COUNT
};

/* What is being carried out. */
#define PEAL_OPERATIONS(X)                                                                      \
	X(0, NONE, "none", "no operation")                                                      \
	X(1, BARRIER, "barrier", "returns when everybody has entered")                          \
	X(2, ALLGATHER, "allgather", "everybody's block reaches everybody")                     \
	X(3, DESTROY, "destroy", "the last operation of a group: a barrier, then a tombstone")  \
	X(4, RECYCLE, "recycle", "the card's own: sequence is then an epoch, not an operation") \
	X(5, BROADCAST, "broadcast", "the root's block reaches everybody")                      \
	X(6, ALLTOALL, "alltoall", "everybody has a block for everybody")                       \
	X(7, ALLGATHERV, "allgatherv", "as allgather, with blocks of different lengths")        \
	X(8, ALLTOALLV, "alltoallv", "as alltoall, with blocks of different lengths")           \
	X(9, SEND, "send", "a message to one rank")                                             \
	X(10, RECEIVE, "receive", "a message from one rank")                                    \
	X(11, PUT, "put", "own memory to another rank's")                                       \
	X(12, GET, "get", "another rank's memory to own")                                       \
	X(13, FENCE, "fence", "until what was put before is in memory")                         \
	X(14, START, "start", "a triggered program")

enum peal_operation {
#define PEAL_OPERATION_ENUM(value, symbol, name, text) PEAL_OPERATION_##symbol = value,
	PEAL_OPERATIONS(PEAL_OPERATION_ENUM)
#undef PEAL_OPERATION_ENUM
	PEAL_OPERATION_COUNT
};

#define PEAL_ALGORITHMS(X)                                                                                                                                  \
	X(0, NONE, "none", "no algorithm")                                                                                                                  \
	X(1, DISSEMINATION, "dissemination", "in round k signal rank + 2^k and wait for rank - 2^k")                                                        \
	X(2, ALL_TO_ALL_BROADCAST, "all-to-all-broadcast", "every block travels down a binomial tree rooted at its origin")                                 \
	X(3, RECURSIVE_DOUBLING, "recursive-doubling", "in step k exchange all blocks held with a rank 2^k away; Bruck's order where N is no power of two") \
	X(4, BINOMIAL, "binomial", "the root's block travels down a binomial tree; credits come up")                                                        \
	X(5, BRUCK, "bruck", "in step k pass on to rank - 2^k all blocks whose way has bit k")                                                              \
	X(6, DIRECT, "direct", "every block straight from its origin to its destination")                                                                   \
	X(7, RING, "ring", "every block from rank to rank + 1, N - 1 times")

enum peal_algorithm {
#define PEAL_ALGORITHM_ENUM(value, symbol, name, text) PEAL_ALGORITHM_##symbol = value,
	PEAL_ALGORITHMS(PEAL_ALGORITHM_ENUM)
#undef PEAL_ALGORITHM_ENUM
	PEAL_ALGORITHM_COUNT
};

/*
 * What a packet of RECYCLE is about (its piece): that the sender, and all below it in the tree that leads to the root (its
 * origin), have finished the epoch; or that all ranks have, which comes down the tree of the root's broadcasts.
 */
#define PEAL_RECYCLE_BELOW 0
#define PEAL_RECYCLE_ALL 1

#define PEAL_PACKET_REPAIR 0x01 /* answers a NACK */
#define PEAL_PACKET_NUMBERED 0x02 /* edge is valid */
#define PEAL_PACKET_LOSSES 0x04 /* NACK, NOT_YET, signal of RECYCLE: its sender knows that packets of the group were lost */
#define PEAL_PACKET_FLAGS 0x07

struct peal_wire_header {
	uint8_t destination[PEAL_MAC_BYTES];
	uint8_t source[PEAL_MAC_BYTES];
	uint16_t ethertype; /* big-endian, PEAL_ETHERTYPE */
	uint8_t version; /* PEAL_WIRE_VERSION */
	uint8_t type; /* enum peal_packet_type */
	uint32_t header_crc; /* CRC32C of bytes 0..63, this field taken as zero */
	uint32_t payload_crc; /* CRC32C of the payload */
	uint32_t group; /* low 32 bits of the group id */
	uint32_t member; /* handle of the receiving member: generation << 16 | index on its card */
	uint32_t identity; /* peal_identity() of the sending member */
	uint32_t signature; /* group id, choice table, geometry, operation, algorithm, root and length (zero where blocks differ), hashed */
	uint32_t sequence; /* low 32 bits of the operation's sequence number, or of the epoch */
	uint32_t piece; /* sub-sequence within the operation */
	uint16_t origin; /* rank whose block this is; in all packets of an operation with a root, the root */
	uint16_t sender; /* rank of the sending member */
	uint8_t hop; /* log2 of the distance of this hop; step or round of algorithms in steps */
	uint8_t operation; /* enum peal_operation */
	uint8_t algorithm; /* enum peal_algorithm */
	uint8_t flags; /* PEAL_PACKET_* */
	uint8_t fragment; /* packet index within one step of an algorithm in steps, or within a piece of a broadcast; else the upper half of edge */
	uint8_t edge; /* how many DATA, SIGNAL and REFUSE packets, this one included, the sender has sent to this member, but for repairs; not in repairs */
	uint16_t length; /* payload bytes */
	uint32_t block_bytes; /* bytes of a rank's block; in alltoall of its block for each rank; in data of allgatherv and alltoallv of the sender's block for the receiver */
};

/* Where a member lives: everything a peer needs to address it. Exchanged out of band. */
struct peal_peer_address {
	uint8_t mac[PEAL_MAC_BYTES];
	uint16_t rank;
	uint32_t member; /* handle on that card */
	uint32_t incarnation; /* of that card */
	uint32_t geometry; /* what the cards of a group must have in common, hashed: docs/wire-format.md */
};

/* Who sends: the member's handle, masked with its card's incarnation. On one card no two members have the same, and
 * a card that has started anew is a stranger. The sending card makes it of what it knows itself and nothing that a
 * client has said, so no client can pass for another's member. */
static inline uint32_t peal_identity(const struct peal_peer_address *sender)
{
	return sender->member ^ sender->incarnation * 0x9e3779b1u;
}

/* Payload of a NACK. In all-to-all broadcast the header's origin and piece say what is missing; in
 * algorithms in steps the header's hop and piece do, in a broadcast its piece, and fragments has a bit per missing packet.
 * Of an all-to-all broadcast these may be of several pieces, from the header's on (docs/wire-format.md). */
struct peal_nack {
	uint64_t fragments;
	uint32_t asked_us; /* on the asker's clock, low bits; not looked at, but echoed */
	uint32_t credit; /* pieces of a broadcast that the asker and all below it have; else zero */
};

/*
 * Alltoallv in steps (docs/decisions/0083): the piece of a step's DATA packet, and of what is asked and answered about it; its hop
 * is the step. Its payload is blocks one behind the other, in any order, each behind its head.
 */
#define PEAL_PIECE_STEP 0xffffffffu
struct peal_step_block {
	uint16_t way; /* (origin - destination) mod N */
	uint16_t bytes; /* that follow; 0: the two ranks exchange their blocks directly. (An empty block is left out.) */
};

/* Payload of NOT_YET. How long the answer took tells the asker how busy the cards are. */
#define PEAL_NOT_YET_WAITS 0u /* it waits, too, and does not know why */
#define PEAL_NOT_YET_LATE 1u /* as far as it knows its host, or one that it waits for, has not come yet */
#define PEAL_NOT_YET_SENT 2u /* it has sent that, but cannot send all of it again now */
#define PEAL_NOT_YET_SPLIT 3u /* of recycling: not in that tree; ranks disagree about the root, and take rank 0 */
struct peal_not_yet {
	uint32_t asked_us; /* of the NACK */
	uint16_t reason; /* PEAL_NOT_YET_* */
	uint16_t patience_ms; /* LATE, of a broadcast or of recycling: how long it waits before it asks; zero after a loss */
};

/* Point-to-point (docs/decisions/0029): packets from 10 on. They are of no operation; their signature is the group's seed.
 * A connection joins two members for both directions. In the header block_bytes names it by the receiver's handle
 * (generation << 16 | index, chosen anew in each life; zero in OPEN), sequence numbers the packets from SKIP to DONE (0, 1, 2, …
 * in each life and direction; else zero), and all but OPEN and ACCEPT say of the other direction: piece, how many packets
 * are in memory, in order; origin, how many announcements may have come in this life; fragment, how many of them with
 * their bytes, both modulo their width. hop: PEAL_P2P_*. edge: the transmit engine by which both sides send. */
#define PEAL_P2P_ASK 0x01 /* the answer is an ACK at once */
#define PEAL_P2P_ANSWER 0x02 /* of an ACK: to one that asked */
#define PEAL_P2P_BODY_BYTES 32 /* of the payload, before the bytes that PUT, STREAM and ANNOUNCE carry */
#define PEAL_P2P_NO_QUEUE 0xffffu

/* Payload of OPEN, ACCEPT and CLOSE. */
struct peal_p2p_open {
	uint32_t handle; /* of the sender's connection */
	uint32_t life; /* OPEN: of those that the sender's card has begun, counted up modulo 2^32; else zero */
};

/* Its starts fail together. */
#define PEAL_SKIP_TOGETHER 1
/* Its start was over at the sender, and well: so a rank where it was, too, may be told behind this that all of the next one is there. */
#define PEAL_SKIP_LATE 2
#define PEAL_SKIP_TOLD 4

/* Payload of SKIP: whose put it was a packet of. That iteration of the program has failed at the sender, which says so in FAILURE as
 * well; what is told behind the SKIP must not be taken for all of it. All zero: it was of no program's put. */
struct peal_p2p_skip {
	uint64_t iteration;
	uint32_t index; /* of the put's descriptor at the sender */
	uint16_t program; /* as in a put */
	uint16_t status; /* enum peal_status with which it failed */
	uint16_t how; /* PEAL_SKIP_* */
	uint16_t told[PEAL_SKIP_TOLD]; /* programs that it tells, as in a put; 0: no more. Their iteration has failed, too. */
	uint16_t reserved[3];
};

/* Payload of ACK. */
struct peal_p2p_ack {
	uint64_t landed; /* bit i: packet piece + 1 + i is in memory as well */
};

/* Payload of REFUSED. */
struct peal_p2p_refused {
	uint32_t sequence;
	uint32_t status; /* enum peal_status with which the request ends */
};

/* Payload of SEEK. */
#define PEAL_P2P_SOUGHT 3
struct peal_p2p_seek {
	uint64_t tags[PEAL_P2P_SOUGHT];
	uint32_t count; /* of them; the others are zero */
	uint32_t reserved;
};

/* What a put tells the receiver's triggered queue when its bytes, and all that its connection carried before, are in memory. */
struct peal_p2p_notice {
	uint16_t queue; /* of the receiving member; PEAL_P2P_NO_QUEUE: none */
	uint16_t counter; /* of that queue */
	uint32_t steps;
	uint64_t iteration; /* the start it belongs to */
};

/* Bodies of PUT, STREAM and ANNOUNCE; the bytes follow. A request is named by its card's handle. */
struct peal_p2p_put {
	uint64_t offset; /* bytes into the memory */
	uint32_t key; /* of the receiving member's context */
	uint16_t program; /* name of the sender's program, plus one; 0: it is of none. Here and below: what is of an iteration that has failed is taken and thrown away */
	uint16_t reserved;
	struct peal_p2p_notice notice; /* in the last packet of a put; of a program's the iteration in all */
};
struct peal_p2p_stream {
	uint64_t offset; /* bytes into the message */
	uint32_t request; /* the receive or get */
	uint32_t reserved[5];
};
struct peal_p2p_announce {
	uint64_t tag;
	uint64_t bytes; /* of the message; those that follow are all or none */
	uint32_t request; /* the send */
	uint16_t program; /* as in a put */
	uint16_t reserved;
	uint64_t iteration; /* of that program */
};

/* Payloads of READY, GET and DONE. */
struct peal_p2p_ready {
	uint32_t request; /* the send */
	uint32_t receive; /* where its bytes go */
};
struct peal_p2p_get {
	uint64_t offset; /* bytes into the memory */
	uint64_t bytes;
	uint32_t key;
	uint32_t request; /* where the bytes go */
};
struct peal_p2p_done {
	uint32_t request;
	uint32_t status; /* enum peal_status */
};

/* Payload of FAILURE and KNOWN (docs/decisions/0041): iterations of a program that no rank of the group carries out any more. It goes
 * from peer to peer until all know it. */
struct peal_failed {
	uint64_t from; /* first iteration */
	uint64_t to; /* behind the last */
	uint32_t rank; /* whose start failed */
	uint32_t index; /* of the descriptor there, or of the counter */
	uint16_t program; /* its name */
	uint16_t status; /* enum peal_status with which the starts end */
	uint16_t reason; /* enum peal_program_reason */
	uint8_t hops; /* whoever did not know it tells its peers, with one less, unless it is zero */
	uint8_t begun; /* zero, or PEAL_FAILED_TOGETHER and below it how far the sender is: 0: it has not begun these iterations; k + 1: it has, and in rounds 0 to k - 1 has heard so of rank - 2^round */
};
#define PEAL_FAILED_TOGETHER 0x80

struct peal_verdict {
	uint32_t rank; /* the dead rank, or the rank that disagrees or failed */
	uint32_t status; /* enum peal_status with which the operations end */
};

PEAL_CHECK_FIELD(struct peal_wire_header, destination, 0, 6);
PEAL_CHECK_FIELD(struct peal_wire_header, source, 6, 6);
PEAL_CHECK_FIELD(struct peal_wire_header, ethertype, 12, 2);
PEAL_CHECK_FIELD(struct peal_wire_header, version, 14, 1);
PEAL_CHECK_FIELD(struct peal_wire_header, type, 15, 1);
PEAL_CHECK_FIELD(struct peal_wire_header, header_crc, 16, 4);
PEAL_CHECK_FIELD(struct peal_wire_header, payload_crc, 20, 4);
PEAL_CHECK_FIELD(struct peal_wire_header, group, 24, 4);
PEAL_CHECK_FIELD(struct peal_wire_header, member, 28, 4);
PEAL_CHECK_FIELD(struct peal_wire_header, identity, 32, 4);
PEAL_CHECK_FIELD(struct peal_wire_header, signature, 36, 4);
PEAL_CHECK_FIELD(struct peal_wire_header, sequence, 40, 4);
PEAL_CHECK_FIELD(struct peal_wire_header, piece, 44, 4);
PEAL_CHECK_FIELD(struct peal_wire_header, origin, 48, 2);
PEAL_CHECK_FIELD(struct peal_wire_header, sender, 50, 2);
PEAL_CHECK_FIELD(struct peal_wire_header, hop, 52, 1);
PEAL_CHECK_FIELD(struct peal_wire_header, operation, 53, 1);
PEAL_CHECK_FIELD(struct peal_wire_header, algorithm, 54, 1);
PEAL_CHECK_FIELD(struct peal_wire_header, flags, 55, 1);
PEAL_CHECK_FIELD(struct peal_wire_header, fragment, 56, 1);
PEAL_CHECK_FIELD(struct peal_wire_header, edge, 57, 1);
PEAL_CHECK_FIELD(struct peal_wire_header, length, 58, 2);
PEAL_CHECK_FIELD(struct peal_wire_header, block_bytes, 60, 4);
PEAL_CHECK_SIZE(struct peal_wire_header, PEAL_HEADER_BYTES);
PEAL_CHECK_SIZE(struct peal_peer_address, 20);
PEAL_CHECK_SIZE(struct peal_nack, 16);
PEAL_CHECK_SIZE(struct peal_step_block, 4);
PEAL_CHECK_SIZE(struct peal_not_yet, 8);
PEAL_CHECK_SIZE(struct peal_verdict, 8);
PEAL_CHECK_SIZE(struct peal_failed, 32);
PEAL_CHECK_SIZE(struct peal_p2p_open, 8);
PEAL_CHECK_SIZE(struct peal_p2p_skip, 32);
PEAL_CHECK_SIZE(struct peal_p2p_ack, 8);
PEAL_CHECK_SIZE(struct peal_p2p_refused, 8);
PEAL_CHECK_SIZE(struct peal_p2p_seek, 32);
PEAL_CHECK_SIZE(struct peal_p2p_notice, 16);
PEAL_CHECK_SIZE(struct peal_p2p_put, PEAL_P2P_BODY_BYTES);
PEAL_CHECK_SIZE(struct peal_p2p_stream, PEAL_P2P_BODY_BYTES);
PEAL_CHECK_SIZE(struct peal_p2p_announce, PEAL_P2P_BODY_BYTES);
PEAL_CHECK_SIZE(struct peal_p2p_ready, 8);
PEAL_CHECK_SIZE(struct peal_p2p_get, 24);
PEAL_CHECK_SIZE(struct peal_p2p_done, 8);

#endif
