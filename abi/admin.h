/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * Administrative commands: the slow path that sets up contexts, memory keys and groups. One 512-byte command,
 * one 512-byte reply. Over the Unix socket (SOCK_SEQPACKET) each is one message and may carry file descriptors;
 * over PCI the kernel driver writes them into the mailbox of the BAR (abi/pci.h), one at a time, most of them for a
 * process that asked by PEAL_IOCTL_ASK (abi/ioctl.h).
 */
#ifndef PEAL_ABI_ADMIN_H
#define PEAL_ABI_ADMIN_H

#include "abi/status.h"
#include "abi/types.h"
#include "abi/wire.h"

/* X(value, symbol, "name", "what it does") */
#define PEAL_ADMIN_OPCODES(X)                                                                                                            \
	X(1, OPEN_CONTEXT, "open context", "a window, its rings and the way to wake each other; over the socket the first command")      \
	X(2, CLOSE_CONTEXT, "close context", "ends the context: its groups die, its memory is let go")                                   \
	X(3, REGISTER_MEMORY, "register memory", "memory that the card may reach, by key")                                               \
	X(4, UNREGISTER_MEMORY, "unregister memory", "the card lets go of it")                                                           \
	X(5, RESERVE_GROUP, "reserve group", "a member's slot, records and channels; the reply is its address")                          \
	X(6, CONNECT_GROUP, "connect group", "tells the member its peers, the group's id and its table of algorithms")                   \
	X(7, ABANDON_GROUP, "abandon group", "gives a member back without asking anybody; peers that it has are told that it died")      \
	X(8, READ_COUNTERS, "read counters", "a part of the card's counters")                                                            \
	X(9, REAP_CHANNELS, "reap channels", "which channels the card has let go of; PCI only, of the card as a whole: context is zero") \
	X(10, ADD_PEERS, "add peers", "tells a reserved member, before it is connected, the peers that a connect group has no room for") \
	X(11, COMMIT_PROGRAM, "commit program", "a queue of the card for a program of this context; the reply is its handle")            \
	X(12, FREE_PROGRAM, "free program", "gives the queue back; BUSY while a start is not over")

enum peal_admin_opcode {
#define PEAL_ADMIN_ENUM(value, symbol, name, text) PEAL_ADMIN_##symbol = value,
	PEAL_ADMIN_OPCODES(PEAL_ADMIN_ENUM)
#undef PEAL_ADMIN_ENUM
	PEAL_ADMIN_OPCODE_COUNT
};

/* Socket: the first command. The reply carries three descriptors: the window (memfd, sealed against shrinking
 * and growing), the broadcast page (the same, read-only) and the kick eventfd (wakes a sleeping card).
 * PCI: the driver's; the reply says which slice of the BAR is the window. */
struct peal_open_context {
	uint32_t card_index; /* socket: which card of the process */
	uint32_t reserved;
};

struct peal_open_context_reply {
	uint32_t context;
	uint32_t window_bytes;
	uint64_t window_offset; /* PCI: bytes into the BAR; socket: zero */
};

enum peal_memory_kind {
	PEAL_MEMORY_ALLOCATE = 1, /* socket: the card creates it, the reply carries the memfd */
	PEAL_MEMORY_PROCESS = 2, /* address in the calling process; socket: by process_vm_*, ioctl: PCI sees PAGES */
	PEAL_MEMORY_PAGES = 3, /* PCI: pages pinned by the driver, which alone may say so */
};

#define PEAL_ACCESS_READ 0x1u /* the card may read (send buffers) */
#define PEAL_ACCESS_WRITE 0x2u /* the card may write (receive buffers) */
#define PEAL_ACCESS_FLAGS 0x3u

struct peal_register_memory {
	uint32_t kind; /* enum peal_memory_kind */
	uint32_t access; /* PEAL_ACCESS_* */
	uint64_t address; /* PROCESS: virtual address; PAGES: bus address of the page list */
	uint64_t bytes;
	uint32_t first_page_offset; /* PAGES: bytes into the first page */
	uint32_t page_shift; /* PAGES: log2 of the page size, 12 to 30 */
};
/* The page list is an array of uint64_t bus addresses, one per page, contiguous in bus address space. The card
 * copies it while it carries out the command; the driver may free it when the reply is there. */

struct peal_register_memory_reply {
	uint32_t key; /* generation << 16 | index */
	uint32_t reserved;
};

struct peal_unregister_memory {
	uint32_t key;
	uint32_t reserved;
};

/* Takes a member slot, its records and its channels. PCI: the driver names kernel memory for the channels,
 * channels * channel_bytes long, as a page list; it stays pinned until the card says the member is gone. */
struct peal_reserve_group {
	uint32_t ranks; /* N */
	uint32_t rank;
	uint64_t channel_pages; /* PCI: bus address of the page list; socket: zero */
	uint64_t channel_list_bytes; /* PCI: channels * channel_bytes; socket: zero */
};

struct peal_reserve_group_reply {
	struct peal_peer_address address; /* to be exchanged out of band */
	uint32_t reserved;
};

#define PEAL_PEERS_PER_COMMAND 20 /* those of a group of up to 1024 ranks */

/* peers[2*j] is rank + 2^j, peers[2*j+1] is rank - 2^j (modulo N), for j below ceil(log2(N)). Algorithms that talk to everybody
 * read the table of addresses, whenever they need some of it: it is there, and does not change, as long as the member lives,
 * and cannot be unregistered. A member without one (and with ranks that are no peers of it), or whose card remembers too few
 * addresses, is refused such algorithms. */
struct peal_connect_group {
	uint64_t group; /* id agreed out of band, not zero. Random: whoever does not know it cannot join */
	uint32_t member;
	uint32_t choice_hash; /* hash of the table of algorithms, agreed out of band */
	uint32_t peer_count; /* 2 * ceil(log2(N)); those beyond PEAL_PEERS_PER_COMMAND came by ADD_PEERS */
	uint32_t addresses_key; /* memory of this context that has N struct peal_peer_address, by rank; 0: none */
	struct peal_peer_address peers[PEAL_PEERS_PER_COMMAND];
	uint64_t addresses_offset; /* where in that memory they begin */
};

/* All peers, from the one numbered PEAL_PEERS_PER_COMMAND on. A second such command takes the place of the first. */
struct peal_add_peers {
	uint32_t member;
	uint32_t peer_count; /* 2 * ceil(log2(N)) - PEAL_PEERS_PER_COMMAND */
	struct peal_peer_address peers[PEAL_PEERS_MAX - PEAL_PEERS_PER_COMMAND];
};

/* Has every rank of such a group all others as its peers? */
static inline int peal_all_are_peers(uint32_t ranks)
{
	return ranks <= 5 || ranks == 7;
}

/* May a member of so large a group, with a table of addresses, use algorithms that talk to everybody? Not where its card remembers
 * fewer addresses than there are ranks: they would take each other's place for ever. */
static inline int peal_may_talk_to_all(uint32_t ranks, uint32_t remembered_addresses)
{
	return ranks <= remembered_addresses || peal_all_are_peers(ranks);
}

struct peal_abandon_group {
	uint32_t member;
	uint32_t reserved;
};

/* Of a program in memory of this context (abi/program.h). Nothing of it is read before a start; from then on until it is freed it
 * stays as it is. */
struct peal_commit_program {
	uint64_t offset; /* of the program in that memory; the table of sources first */
	uint32_t key; /* memory that the card may read */
	uint32_t member;
	uint32_t count; /* of descriptors: 2 to PEAL_PROGRAM_DESCRIPTORS_MAX */
	uint32_t counters;
	uint32_t scheduled; /* session mode: so many descriptors are behind the scheduling pointer at the beginning; else zero */
	uint16_t name; /* by which descriptors of the group's ranks tell its counters; of the member's programs no other has it */
	uint8_t mode; /* enum peal_program_mode; PEAL_PROGRAM_TOGETHER */
	uint8_t engine; /* by which its packets leave */
};

struct peal_commit_program_reply {
	uint32_t program; /* handle: generation << 16 | index */
	uint32_t starts; /* so many may be outstanding */
};

struct peal_free_program {
	uint32_t program;
	uint32_t reserved;
};

#define PEAL_COUNTERS_PER_REPLY 32

struct peal_read_counters {
	uint32_t first; /* index of the first counter wanted */
	uint32_t reserved;
};

struct peal_read_counters_reply {
	uint32_t total; /* how many counters the card has */
	uint32_t count; /* how many are in values */
	uint64_t values[PEAL_COUNTERS_PER_REPLY];
};

#define PEAL_CHANNELS_PER_REPLY 32

/* Which channels the card has let go of: each is named once, by the channel_pages of the RESERVE_GROUP that gave it (so
 * the driver keeps that list until then). A RESERVE_GROUP that failed has kept nothing and is not named. */
struct peal_reap_channels_reply {
	uint32_t count; /* how many are in lists */
	uint32_t more; /* how many wait for the next command */
	uint64_t lists[PEAL_CHANNELS_PER_REPLY];
};

#define PEAL_ADMIN_BYTES 512

struct peal_admin_command {
	uint16_t version; /* PEAL_ABI_VERSION */
	uint16_t opcode; /* enum peal_admin_opcode */
	uint32_t bytes; /* PEAL_ADMIN_BYTES */
	uint64_t tag; /* returned in the reply; ioctl: zero */
	uint32_t context; /* PCI: whose; socket and ioctl: zero, the connection or file says */
	uint32_t reserved;
	union {
		struct peal_open_context open;
		struct peal_register_memory register_memory;
		struct peal_unregister_memory unregister_memory;
		struct peal_reserve_group reserve;
		struct peal_connect_group connect;
		struct peal_add_peers add_peers;
		struct peal_abandon_group abandon;
		struct peal_read_counters counters;
		struct peal_commit_program commit_program;
		struct peal_free_program free_program;
		uint8_t bytes_[488];
	} u;
};

struct peal_admin_reply {
	uint16_t version;
	uint16_t opcode;
	uint32_t bytes;
	uint64_t tag;
	uint32_t status; /* enum peal_status */
	uint32_t reserved;
	union {
		struct peal_open_context_reply open;
		struct peal_register_memory_reply register_memory;
		struct peal_reserve_group_reply reserve;
		struct peal_read_counters_reply counters;
		struct peal_reap_channels_reply reap;
		struct peal_commit_program_reply commit_program;
		uint8_t bytes_[488];
	} u;
};

PEAL_CHECK_SIZE(struct peal_open_context, 8);
PEAL_CHECK_SIZE(struct peal_open_context_reply, 16);
PEAL_CHECK_SIZE(struct peal_register_memory, 32);
PEAL_CHECK_SIZE(struct peal_reserve_group, 24);
PEAL_CHECK_SIZE(struct peal_connect_group, 432);
PEAL_CHECK_SIZE(struct peal_add_peers, 248);
PEAL_CHECK_SIZE(struct peal_commit_program, 32);
PEAL_CHECK_SIZE(struct peal_commit_program_reply, 8);
PEAL_CHECK_SIZE(struct peal_read_counters_reply, 264);
PEAL_CHECK_SIZE(struct peal_reap_channels_reply, 264);
PEAL_CHECK_FIELD(struct peal_admin_command, u, 24, 488);
PEAL_CHECK_SIZE(struct peal_admin_command, PEAL_ADMIN_BYTES);
PEAL_CHECK_FIELD(struct peal_admin_reply, u, 24, 488);
PEAL_CHECK_SIZE(struct peal_admin_reply, PEAL_ADMIN_BYTES);

#endif
