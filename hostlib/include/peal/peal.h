/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peal: collective operations that run on the network card. A call writes one 64-byte entry and
 * rings a doorbell; the cards of the group do the rest; one completion comes back when the result
 * is in the caller's memory.
 *
 * Threads: every function may be called from any thread, except that a handle must not be used
 * while or after another thread frees it. Operations of one group are matched between ranks in the
 * order of the calls, so threads that share a group must order their calls themselves.
 *
 * Processes: what one process opened is not its children's. In a child of fork() the connection is
 * closed, and every call with a context of the parent, or with anything made from it, fails with
 * PEAL_ERR_FORKED; the parent does not notice. The child may open contexts of its own.
 *
 * Signals: calls that wait go on waiting after a handler has run (there is no EINTR). No function
 * may be called from a signal handler. The library installs no handlers and blocks no signals.
 *
 * Errors: functions return PEAL_OK or a peal_error. peal_strerror() says what that means,
 * peal_last_error_text() what was wrong this time, with the values, in the calling thread.
 *
 * Versions: this header may grow; programs built with an older one go on working, without being
 * built again. Structures begin with their size as the caller knows it (struct_bytes), and no more
 * is read or written. Fields that the caller does not know have their defaults; fields that this
 * library does not know must be zero.
 */
#ifndef PEAL_PEAL_H
#define PEAL_PEAL_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PEAL_API __attribute__((visibility("default")))
#else
#define PEAL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Of this header. 2: wait for any, detached operations, groups made step by step or ended by one
 * rank, statistics; channel_bytes and geometry of a card. 3: broadcast, all-to-all, rules for
 * algorithms. 4: allgather and all-to-all of blocks that differ in length. 5: persistent
 * requests. 6: programs. 7: point-to-point. 8: transmit engines, Trinaryx3; posted puts, gates. */
#define PEAL_API_VERSION 8u

typedef enum peal_error {
  PEAL_OK = 0,
  /* from the card */
  PEAL_ERR_PEER_DEAD = 1, /* a member of the group died; peal_request_failed_rank() names it */
  /* ranks disagree: on the operation, algorithm, root or length of a call, or on how the group is
   * set up (size, tables of algorithms, cards) */
  PEAL_ERR_MISMATCH = 2,
  PEAL_ERR_BAD_OPCODE = 3, /* 3 to 6, 18: this library and the card do not fit together */
  PEAL_ERR_BAD_ALGORITHM = 4,
  PEAL_ERR_BAD_FLAGS = 5,
  PEAL_ERR_BAD_GROUP = 6,
  PEAL_ERR_BAD_SEQUENCE = 7,
  PEAL_ERR_BAD_KEY = 8,
  PEAL_ERR_BAD_BOUNDS = 9,    /* the range leaves its registered memory */
  PEAL_ERR_BAD_ACCESS = 10,   /* the memory was not registered for this direction */
  PEAL_ERR_BAD_LENGTH = 11,   /* a length that this card cannot do */
  PEAL_ERR_BAD_ROOT = 12,     /* the group has no such rank */
  PEAL_ERR_TOO_MANY = 13,     /* too many operations outstanding: wait for some */
  PEAL_ERR_NO_RESOURCES = 14, /* a fixed pool of the card is used up */
  PEAL_ERR_BUSY = 15,         /* still in use by a pending operation */
  PEAL_ERR_CLOSED = 16,       /* the group was destroyed */
  PEAL_ERR_DMA_FAULT = 17,    /* the card could not reach the memory */
  PEAL_ERR_BAD_VERSION = 18,
  PEAL_ERR_BAD_ADDRESS = 19,
  PEAL_ERR_BAD_RANK = 20,    /* rank or group size out of range */
  PEAL_ERR_TRUNCATED = 21,   /* the message is longer than the receive */
  PEAL_ERR_BAD_PROGRAM = 22, /* a descriptor of the program is bad; the text names it */
  /* from this library */
  PEAL_ERR_INVALID_ARGUMENT = 64,
  /* the buffer is in no memory from peal_alloc() or peal_register() */
  PEAL_ERR_NOT_REGISTERED = 65,
  PEAL_ERR_NO_MEMORY = 66,
  PEAL_ERR_SYSTEM = 67,       /* a system call failed; the text names it */
  PEAL_ERR_NO_CARD = 68,      /* no card under that name */
  PEAL_ERR_CARD_GONE = 69,    /* the card died or closed the connection */
  PEAL_ERR_CARD_ANSWER = 70,  /* the card's answer makes no sense */
  PEAL_ERR_OUT_OF_BAND = 71,  /* the caller's out-of-band allgather failed */
  PEAL_ERR_PEER_REFUSED = 72, /* another rank could not make the group; the text names it */
  PEAL_ERR_TIMED_OUT = 74,
  PEAL_ERR_FORKED = 75 /* the context belongs to the parent of this process */
} peal_error;

/* What a peal_error means. Static storage; never null. */
PEAL_API const char* peal_strerror(peal_error error);
/* What was wrong in the last call that failed in this thread, with values; "" when none did. Valid
 * until the next call. */
PEAL_API const char* peal_last_error_text(void);
/* "0.1.0" */
PEAL_API const char* peal_version(void);

/* --- context: one connection to one card --- */
typedef struct peal_context peal_context;

/* What peal_open() is: `api_version` is that of the header that the program was built with.
 * PEAL_ERR_BAD_VERSION when the library is older. */
PEAL_API peal_error peal_open_version(uint32_t api_version, const char* card,
                                      peal_context** context);
/* `card` is "emu:PATH[,card=I]" (card I of the peal-nic whose socket is PATH), "char:/dev/pealN",
 * or null for $PEAL_CARD. Waiting calls poll and yield for $PEAL_SPIN_US microseconds (default
 * 1000) before they sleep. */
static inline peal_error peal_open(const char* card, peal_context** context) {
  return peal_open_version(PEAL_API_VERSION, card, context);
}
/* Closes the connection. Groups that still exist die with it: the other ranks get
 * PEAL_ERR_PEER_DEAD. Frees everything made from the context: groups, requests, memory from
 * peal_alloc(). Waits until an emulated card reaches into memory of this process no more, unless it
 * does not answer, or is busy for longer than five seconds. In a child of fork() a context of the
 * parent cannot be freed: it only lets go of the connection. */
PEAL_API void peal_close(peal_context* context);

typedef struct peal_card_info {
  size_t struct_bytes; /* sizeof(peal_card_info), set by the caller */
  uint8_t mac[6];
  uint16_t card_index;  /* within its emulator process */
  uint32_t incarnation; /* changes with every start of the card */
  uint32_t ranks_max;   /* of a group */
  uint32_t channels;    /* K: operations a rank may be ahead, per group */
  uint32_t parked_max;  /* operations that may wait on the card beyond K, per group */
  uint32_t mtu_bytes;
  uint32_t ring_entries;    /* requests that may be outstanding, per context */
  uint32_t dead_timeout_us; /* silence after which a peer is dead */
  /* since version 2 */
  uint32_t channel_bytes; /* of one of the K channels */
  uint32_t geometry;      /* the same on all cards of a group */
} peal_card_info;
/* Fills in as much as info->struct_bytes says. */
PEAL_API peal_error peal_card_query(peal_context* context, peal_card_info* info);

/* The card's counters (packets, drops by reason, DMA), in the order of peal_counter_name(0..).
 * Writes at most `capacity` values; *count is how many the card has. */
PEAL_API peal_error peal_counters(peal_context* context, uint64_t* values, size_t capacity,
                                  size_t* count);
/* Null beyond the last counter that this library knows. */
PEAL_API const char* peal_counter_name(size_t index);

/* --- memory that the card may reach --- */
#define PEAL_READ 1u  /* the card may read it: send buffers */
#define PEAL_WRITE 2u /* the card may write it: receive buffers */

/* Zeroed memory, page-aligned, for both directions. Over emu: it is shared with the card, the
 * fastest there is. */
PEAL_API peal_error peal_alloc(peal_context* context, size_t bytes, void** memory);
/* PEAL_ERR_BUSY while an operation uses it. */
PEAL_API peal_error peal_free(peal_context* context, void* memory);
/* A registration of the caller's own memory. */
typedef struct peal_memory peal_memory;
/* Any memory of the caller. Ranges may overlap; operations use the newest that covers a buffer. It
 * must stay mapped until peal_unregister(): of memory that is gone (munmap) an emulated card says
 * PEAL_ERR_DMA_FAULT to all ranks, and what is mapped there later is taken for it; a driver keeps
 * the pages, which nobody else sees any more. `memory` belongs to the context. */
PEAL_API peal_error peal_register(peal_context* context, void* address, size_t bytes,
                                  unsigned access, peal_memory** memory);
/* PEAL_ERR_BUSY while an operation uses it; else the handle is gone. Null is fine. */
PEAL_API peal_error peal_unregister(peal_memory* memory);
/* What other ranks call that memory of the context by when they put into it or get from it: a key
 * of this rank's card, and how far behind that registration's start it lies. Registered or
 * allocated: for PEAL_WRITE if they put, for PEAL_READ if they get, which is looked at then. Tell
 * them by whatever way there is, an allgather for example. The name is good until the memory is
 * unregistered or freed. */
PEAL_API peal_error peal_memory_name(peal_context* context, void* address, size_t bytes,
                                     uint32_t* key, uint64_t* offset);

/* --- groups --- */
typedef struct peal_group peal_group;

/* The caller's own way for ranks to tell each other things before they have a group ("out of
 * band": MPI, sockets, peal_oob_exchange()). Every rank of the new group calls it with `bytes` of
 * its own; `receive` gets size * bytes, in the order of ranks. Returns 0, or anything else for
 * failure. It must be collective and blocking. */
typedef int (*peal_exchange_callback)(void* argument, const void* send, void* receive,
                                      size_t bytes);

typedef enum peal_allgather_algorithm {
  PEAL_ALLGATHER_AUTO = 0, /* by rules, and by size; the same choice on all ranks */
  PEAL_ALLGATHER_ALL_TO_ALL_BROADCAST = 1,
  PEAL_ALLGATHER_RECURSIVE_DOUBLING = 2
} peal_allgather_algorithm;

/* Operations register buffers that are in no registered memory by themselves, and keep up to
 * $PEAL_REGISTRATIONS of them (256) registered for the next time, the least recently used going
 * first. Such memory may be unmapped, and mapped again, whenever no operation uses it; that of a
 * persistent request while it is inactive. */
#define PEAL_GROUP_REGISTER 1u

typedef struct peal_group_params {
  size_t struct_bytes; /* sizeof(peal_group_params) */
  unsigned flags;      /* PEAL_GROUP_* */
  /* Anything but AUTO decides for all allgathers, before any rule. */
  peal_allgather_algorithm allgather_algorithm;
  /* since version 3 */
  /* Rules that say which algorithm carries out what, or null; read before the call returns. A rule
   * is OPERATION[:BYTES][:nRANKS]:ALGORITHM, as in
   * "allgather:0-4k:recursive-doubling,allgather:all-to-all-broadcast"; the first that fits
   * decides. Behind these stand $PEAL_ALLGATHER_ALGORITHM, the rules of $PEAL_ALGORITHMS, those of
   * the file $PEAL_ALGORITHMS_FILE, and the default table. All ranks must choose alike, else
   * PEAL_ERR_MISMATCH. `pealctl choose` says what would run. */
  const char* algorithms;
} peal_group_params;

/* Collective over all `size` ranks: every rank calls it, with its own rank, and it succeeds on all
 * or fails on all. Calls `exchange` exactly twice, also when something fails here (unless
 * `exchange` itself fails), and not at all for an argument that makes no sense. `params` may be
 * null. */
PEAL_API peal_error peal_group_create(peal_context* context, uint32_t rank, uint32_t size,
                                      peal_exchange_callback exchange, void* argument,
                                      const peal_group_params* params, peal_group** group);
/* Collective: waits for this group's pending requests, then for all ranks. The handle is gone in
 * any case. Where ranks disagree (PEAL_ERR_MISMATCH) this one has left the group, as by
 * peal_group_abort(). */
PEAL_API peal_error peal_group_destroy(peal_group* group);
/* Not collective: ends the group for everybody, at once. The other ranks get PEAL_ERR_PEER_DEAD
 * naming this one, and so do the operations that are pending here. Returns when the card has let go
 * of their buffers. The handle is gone then, its requests are still the caller's; only if the card
 * would not end the group, it is as it was, and the error says why. Other threads may wait for them
 * meanwhile, but be in no call with the group itself.
 *
 * A card goes on naming the dead for a while (dead_timeout_us and a little), and has places for so
 * many groups that ended like this; who goes on making and aborting them gets PEAL_ERR_NO_RESOURCES
 * for a new one until the oldest are forgotten. */
PEAL_API peal_error peal_group_abort(peal_group* group);
/* Waits until none of this group's operations is pending. Returns how the first detached one has
 * failed since the last such call. */
PEAL_API peal_error peal_group_wait(peal_group* group);
PEAL_API uint32_t peal_group_rank(const peal_group* group);
PEAL_API uint32_t peal_group_size(const peal_group* group);
/* The rank that died and ended this group, or -1. */
PEAL_API int peal_group_failed_rank(peal_group* group);

/* --- groups, step by step: for callers whose exchange is not a blocking call --- */
#define PEAL_GROUP_RECORD_BYTES 64u

typedef struct peal_group_builder peal_group_builder;

/* Never waits for other ranks. What fails here but concerns all ranks is in the record, and comes
 * back from the last peal_group_advance() of all of them. */
PEAL_API peal_error peal_group_begin(peal_context* context, uint32_t rank, uint32_t size,
                                     const peal_group_params* params, peal_group_builder** builder);
/* This rank's PEAL_GROUP_RECORD_BYTES for the exchange that comes next; valid until the next call
 * with this builder. */
PEAL_API const void* peal_group_record(const peal_group_builder* builder);
/* `records`: everybody's, in the order of ranks. PEAL_OK and a null *group: one more exchange, of
 * new records. Otherwise the builder is gone, and *group is made or the error says why not. Two
 * calls do nothing, and leave it as it was: one with a null argument (PEAL_ERR_INVALID_ARGUMENT,
 * which also comes of set-up: then the builder is gone), and one in a child of fork()
 * (PEAL_ERR_FORKED). There are two exchanges; no call waits for other ranks. */
PEAL_API peal_error peal_group_advance(peal_group_builder* builder, const void* records,
                                       peal_group** group);
/* Instead of an exchange that will not come. Other ranks are not told. Null is fine. */
PEAL_API void peal_group_cancel(peal_group_builder* builder);

/* --- operations --- */
typedef struct peal_request peal_request;

/* Calls with an `i` return at once. They take a null `request` too: such a *detached* operation
 * frees itself, and peal_group_wait() says when it is over and how it failed. */

/* As `send`: what this rank sends lies in the receive buffer already. Of an allgather it is the own
 * block, in its place; of an all-to-all it is everything, and is replaced. */
#define PEAL_IN_PLACE ((const void*)-1)

/* Returns when every rank of the group has called it. */
PEAL_API peal_error peal_barrier(peal_group* group);
PEAL_API peal_error peal_ibarrier(peal_group* group, peal_request** request);
/* The `bytes` of `buffer` on rank `root` become those of `buffer` on all ranks, which all name the
 * same root (PEAL_ERR_BAD_ROOT when the group has no such rank). The buffer lies in registered
 * memory: the root's for PEAL_READ, others' for PEAL_WRITE. When it is complete the buffer is the
 * caller's again, whatever other ranks still do: the root may be done before anybody has the
 * bytes. */
PEAL_API peal_error peal_bcast(peal_group* group, void* buffer, size_t bytes, uint32_t root);
PEAL_API peal_error peal_ibcast(peal_group* group, void* buffer, size_t bytes, uint32_t root,
                                peal_request** request);
/* Block r of `receive` (size * block_bytes) becomes the `send` (block_bytes) of rank r. Both lie in
 * registered memory and do not overlap. When it is complete both buffers are the caller's again,
 * whatever other ranks still do. */
PEAL_API peal_error peal_allgather(peal_group* group, const void* send, void* receive,
                                   size_t block_bytes);
PEAL_API peal_error peal_iallgather(peal_group* group, const void* send, void* receive,
                                    size_t block_bytes, peal_request** request);
/* Block r of `receive` becomes block i of rank r's `send`, where i is this rank. Both are size *
 * block_bytes long, lie in registered memory and do not overlap. With PEAL_IN_PLACE the blocks of
 * `receive` are sent, and replaced by those of the others; it is registered for both directions
 * then. When it is complete both buffers are the caller's again, whatever other ranks still do. */
PEAL_API peal_error peal_alltoall(peal_group* group, const void* send, void* receive,
                                  size_t block_bytes);
PEAL_API peal_error peal_ialltoall(peal_group* group, const void* send, void* receive,
                                   size_t block_bytes, peal_request** request);

/* Blocks that differ in length (MPI-4: MPI_Allgatherv, MPI_Alltoallv). An array has a number for
 * each rank, in bytes, and is read before the call returns. Block r of a buffer begins offsets[r]
 * behind its start; where `offsets` is null the blocks lie one behind the other. Blocks may be
 * empty, and what is empty needs no buffer; those of one receive buffer do not overlap. From its
 * first byte to its last, gaps as well, a buffer lies in one registered memory: what is between the
 * blocks is neither read nor written. On a card without the way to all ranks of so large a group:
 * PEAL_ERR_BAD_ALGORITHM. The first such call of a group allocates memory as peal_alloc() does, a
 * place of 32 * size bytes for each operation that may be outstanding; it goes with the group. */

/* Block r of `receive`, bytes[r] long, becomes the `send` of rank r. All ranks say the same bytes,
 * and may say different offsets; `send` has bytes[i], where i is this rank. When it is complete
 * both buffers are the caller's again, whatever other ranks still do. */
PEAL_API peal_error peal_allgatherv(peal_group* group, const void* send, void* receive,
                                    const size_t* bytes, const size_t* offsets);
PEAL_API peal_error peal_iallgatherv(peal_group* group, const void* send, void* receive,
                                     const size_t* bytes, const size_t* offsets,
                                     peal_request** request);
/* Block r of `receive` becomes block i of rank r's `send`, where i is this rank; what a rank sends
 * to another has as many bytes as that one receives from it, else PEAL_ERR_MISMATCH. With
 * PEAL_IN_PLACE nobody looks at send_bytes and send_offsets: the blocks of `receive` are sent, and
 * replaced by those of the others; it is registered for both directions then. When it is complete
 * both buffers are the caller's again, whatever other ranks still do. */
PEAL_API peal_error peal_alltoallv(peal_group* group, const void* send, const size_t* send_bytes,
                                   const size_t* send_offsets, void* receive,
                                   const size_t* receive_bytes, const size_t* receive_offsets);
PEAL_API peal_error peal_ialltoallv(peal_group* group, const void* send, const size_t* send_bytes,
                                    const size_t* send_offsets, void* receive,
                                    const size_t* receive_bytes, const size_t* receive_offsets,
                                    peal_request** request);

/* --- point-to-point (since version 7) --- */
/* Between two ranks of a group, which may be the same. Not counted among the group's operations:
 * what belongs together is said by rank and tag, and they may be under way together with
 * collectives, in any order. As many may be outstanding as the context has requests; who is more
 * than its card has records for ends with PEAL_ERR_TOO_MANY, and nothing of it was sent. Buffers
 * lie in registered memory (PEAL_READ where they are sent from, PEAL_WRITE where they are received
 * into), or are registered by the call in a group with PEAL_GROUP_REGISTER; they are the caller's
 * again when the request is complete. A null `request` detaches, as above.
 *
 * A group in which a rank dies ends all of them with PEAL_ERR_PEER_DEAD. Otherwise one that fails
 * leaves the others, and the group, as they are. Where another rank's memory was to blame,
 * peal_request_failed_rank() names it. */

/* As `tag` of a receive: whatever the message's is. No message has it. */
#define PEAL_ANY_TAG UINT64_MAX
/* As `to` of a fence. */
#define PEAL_ALL_RANKS 0xffffffffu

/* A message is matched with a receive that names its sender and its tag. Those of one rank to
 * another are offered in the order of the calls that sent them, and a receive takes the first that
 * fits. A send is complete when its receive has the message (as MPI_Ssend), so two ranks that both
 * send first wait for ever: begin one without waiting. Of one sender as many messages without a
 * receive are known here as its card has places for (CONFIG_CONNECTION_PLACES, 64); one behind
 * these is asked for when a receive wants it, which takes a round trip more. A message that is longer than its receive ends both with PEAL_ERR_TRUNCATED; nothing is written
 * then. */
PEAL_API peal_error peal_send(peal_group* group, uint32_t to, uint64_t tag, const void* send,
                              size_t bytes);
PEAL_API peal_error peal_isend(peal_group* group, uint32_t to, uint64_t tag, const void* send,
                               size_t bytes, peal_request** request);
/* `bytes`: room; *received, if it is not null: the length of the message, also of one that was
 * truncated. */
PEAL_API peal_error peal_recv(peal_group* group, uint32_t from, uint64_t tag, void* receive,
                              size_t bytes, size_t* received);
PEAL_API peal_error peal_irecv(peal_group* group, uint32_t from, uint64_t tag, void* receive,
                               size_t bytes, peal_request** request);

/* Another rank's memory, by the name that its peal_memory_name() gave, plus whatever is added to
 * the offset; its process does nothing for it. These return at once. A put is complete when its
 * bytes are in memory there, a get when they are here. The owner's card looks at key, bounds and
 * access of each packet (PEAL_ERR_BAD_KEY, PEAL_ERR_BAD_BOUNDS, PEAL_ERR_BAD_ACCESS): a put that is
 * refused in its midst may have written some of its bytes. Empty ones look at no memory. */
PEAL_API peal_error peal_put(peal_group* group, uint32_t to, const void* send, size_t bytes,
                             uint32_t remote_key, uint64_t remote_offset, peal_request** request);
PEAL_API peal_error peal_get(peal_group* group, uint32_t from, void* receive, size_t bytes,
                             uint32_t remote_key, uint64_t remote_offset, peal_request** request);
/* Complete when all puts of this rank to that one (or to all) that were called before are over,
 * well or not: those that are detached have no other way to say it, and peal_group_wait() says how
 * the first of them failed. */
PEAL_API peal_error peal_fence(peal_group* group, uint32_t to, peal_request** request);

/* --- persistent requests (MPI-4: MPI_Bcast_init and its like) --- */
/* An operation is described once and started as often as its caller likes: each start is one entry
 * and a doorbell, whatever the length. The calls with `_init` are collective: all ranks of the
 * group make them in the same order among themselves and among its other operations, with the same
 * operation, root and length (else PEAL_ERR_MISMATCH on all). They return when the request is made
 * on all ranks or on none, and make addresses known over the cards. Buffers are those of the calls
 * without `_init`; they stay registered, and lengths and offsets are read, before the call returns.
 *
 * The request is *inactive* then. peal_start() begins the operation, which reads the send buffer
 * from then on and not before; peal_test(), peal_wait() and their like say how it ended and make
 * the request inactive again, so that it may be started at once, with other data in its buffers. Of
 * one that is inactive they say at once that it is complete, and peal_wait_any() passes it over.
 * Starts of one request are matched between ranks in their order, whatever else is started: several
 * requests of a group may be started in any order, and be under way together. A start that fails on
 * one rank fails on all that need it; who waits hears which rank it was, and why. After an error the
 * request may be started again, by all ranks, unless a rank died.
 *
 * It is a program of the card; where a card has no room for one, or may not read a receive buffer
 * whose blocks are passed on from there (PEAL_READ | PEAL_WRITE), or where $PEAL_PROGRAMS is 0, an
 * ordinary operation, which has a group of its own, of those that the card has places for
 * (PEAL_ERR_NO_RESOURCES or PEAL_ERR_PEER_REFUSED when there are no more). It outlives the group
 * that it was made of. peal_request_free() ends it, without waiting for other ranks; it may be
 * called while the operation is under way, which then ends by itself. */
PEAL_API peal_error peal_barrier_init(peal_group* group, peal_request** request);
PEAL_API peal_error peal_bcast_init(peal_group* group, void* buffer, size_t bytes, uint32_t root,
                                    peal_request** request);
PEAL_API peal_error peal_allgather_init(peal_group* group, const void* send, void* receive,
                                        size_t block_bytes, peal_request** request);
PEAL_API peal_error peal_alltoall_init(peal_group* group, const void* send, void* receive,
                                       size_t block_bytes, peal_request** request);
PEAL_API peal_error peal_allgatherv_init(peal_group* group, const void* send, void* receive,
                                         const size_t* bytes, const size_t* offsets,
                                         peal_request** request);
PEAL_API peal_error peal_alltoallv_init(peal_group* group, const void* send,
                                        const size_t* send_bytes, const size_t* send_offsets,
                                        void* receive, const size_t* receive_bytes,
                                        const size_t* receive_offsets, peal_request** request);
/* Never blocks. PEAL_ERR_BUSY when its last start is not over, or nobody waited for its end. Where
 * the library had registered a buffer by itself that was mapped anew since, it is registered again;
 * where that fails nothing is started. */
PEAL_API peal_error peal_start(peal_request* request);
/* In the order of the list. None is started when one of them cannot be: it is null, not persistent,
 * or busy, stands twice in the list, or its buffer cannot be registered again. */
PEAL_API peal_error peal_startall(peal_request* const* requests, size_t count);

/* --- programs: what the card runs by itself, start after start --- */
/* A program is a list of descriptors for a triggered queue of the card (docs/write-a-program.md).
 * Each rank writes its own; they work together by puts and signals, which tell *counters* of the
 * other rank's program, and by waits for those. It is written, checked and printed without a card;
 * peal_program_commit() gives it to the card, peal_program_start() runs it: one entry, whatever its
 * length. A program is used by one thread at a time. */
typedef struct peal_program peal_program;

/* A rank that a counter hears from: whoever tells it. */
#define PEAL_ANY_SOURCE 0xffffffffu
/* Where a counter may be named: none. */
#define PEAL_NO_COUNT 0xffffu

/* Session mode: the first counter is the *scheduling pointer*. Nothing behind it is issued; it
 * begins behind the first `scheduled` descriptors, and what tells that counter moves it on. */
#define PEAL_PROGRAM_IN_SESSION 1u
/* (Since version 8.) Puts to other ranks are *posted*: one that fits a packet is over, and its
 * memory the caller's, when the card has its bytes. They are in the other rank's memory there when
 * the put's notice has been told, not when the start is over here, and no fence waits for them;
 * where they are refused, the iteration fails on the ranks that have not ended it. */
#define PEAL_PROGRAM_POSTED_PUTS 2u

typedef struct peal_program_params {
  size_t struct_bytes; /* sizeof(peal_program_params) */
  unsigned flags;      /* PEAL_PROGRAM_IN_SESSION, PEAL_PROGRAM_POSTED_PUTS */
  uint32_t scheduled;  /* in session mode */
  /* since version 8 */
  /* The transmit engine of the card by which all that the program sends leaves, from 0. Committing
   * it is PEAL_ERR_INVALID_ARGUMENT where the card has not so many. */
  uint32_t engine;
  uint32_t reserved; /* zero */
} peal_program_params;

/* Which counter is told, of the program with the same name on the receiving rank: of that one which
 * was committed as `program` was here; null: of this one. */
typedef struct peal_program_notice {
  const peal_program* program;
  uint32_t counter;
  uint32_t steps; /* what is added to it, 1 to 8192 */
} peal_program_notice;

/* For rank `rank` of `size`. `params` may be null. */
PEAL_API peal_error peal_program_create(uint32_t rank, uint32_t size,
                                        const peal_program_params* params, peal_program** program);
/* One more counter, zero at the beginning of each iteration, which rank `source` tells: another, the
 * own one (ends of own descriptors, signals to itself) or PEAL_ANY_SOURCE. Counters are numbered
 * 0, 1, 2, …; others' descriptors name them by number. */
PEAL_API peal_error peal_program_counter(peal_program* program, uint32_t source, uint32_t* counter);

/* Descriptors, one behind the other. `done`: own counter (of the own rank) to which its end adds
 * one, or PEAL_NO_COUNT. None of a committed program: PEAL_ERR_BUSY. */

/* `from`, `bytes` long, to a rank's memory that it has named by peal_memory_name(); then a counter
 * there is told, if `notice` is not null. It must know, by a counter of this iteration, that the
 * rank is ready. */
PEAL_API peal_error peal_program_put(peal_program* program, uint32_t rank, const void* from,
                                     size_t bytes, uint32_t remote_key, uint64_t remote_offset,
                                     const peal_program_notice* notice, uint32_t done);
/* (Since version 8.) The put that was written last has a *gate*: before that own counter has reached
 * the threshold, which is not 0, it is held, and descriptors behind it may go on without it; the
 * iteration is not over before it is. How many are held is the card's affair, so nothing behind it
 * may be what opens the gate. PEAL_ERR_INVALID_ARGUMENT where the last descriptor is no put. */
PEAL_API peal_error peal_program_gate(peal_program* program, uint32_t counter, uint64_t threshold);
/* Messages are matched in the order of their sends and receives, by rank and tag. */
PEAL_API peal_error peal_program_send(peal_program* program, uint32_t rank, uint64_t tag,
                                      const void* from, size_t bytes, uint32_t done);
PEAL_API peal_error peal_program_receive(peal_program* program, uint32_t rank, uint64_t tag,
                                         void* to, size_t bytes, uint32_t done);
/* Until that own counter has reached the threshold. */
PEAL_API peal_error peal_program_wait(peal_program* program, uint32_t counter, uint64_t threshold);
PEAL_API peal_error peal_program_signal(peal_program* program, uint32_t rank,
                                        const peal_program_notice* notice, uint32_t done);

/* What was found wrong, or worth knowing: a line each, into `text` as far as it has room
 * (`capacity` with the final zero); *length is that of the whole. PEAL_ERR_BAD_PROGRAM when a card
 * would refuse it. */
PEAL_API peal_error peal_program_check(const peal_program* program, char* text, size_t capacity,
                                       size_t* length);
/* As text, a descriptor a line; or as a picture for Graphviz (`dot -Tsvg`). */
#define PEAL_PROGRAM_AS_TEXT 0u
#define PEAL_PROGRAM_AS_GRAPH 1u
PEAL_API peal_error peal_program_print(const peal_program* program, unsigned format, char* text,
                                       size_t capacity, size_t* length);

/* Collective: every rank of the group gives its own program, all in the same order among themselves
 * and among its other operations. It succeeds on all or fails on all (PEAL_ERR_PEER_REFUSED where it
 * failed elsewhere). Own memory is looked up then, and must stay registered. */
PEAL_API peal_error peal_program_commit(peal_group* group, peal_program* program);
/* The same for programs of one rank that tell each other: all of them, in this order, or none. Every
 * rank of the group gives as many. */
PEAL_API peal_error peal_program_commit_all(peal_group* group, peal_program* const* programs,
                                            size_t count);
/* Runs it so many times, one after the other; the request is over with the last. Ranks that work
 * together start the same numbers of iterations. Several starts may be outstanding, as many as the
 * card takes: the call refuses one more with PEAL_ERR_TOO_MANY, and makes no request. None of them
 * takes the place of one of the group's operations. It ends with PEAL_ERR_BAD_PROGRAM where a
 * descriptor is bad or a rank tells what it must not. A start that fails on one rank fails on all
 * that have not come to its end, with the same error; the text and peal_request_failed_rank() name
 * that rank. The next start is another one: nothing that comes of one that has failed is written
 * behind its end, or taken for a later one's. */
PEAL_API peal_error peal_program_start(peal_program* program, uint32_t iterations,
                                       peal_request** request);
/* PEAL_ERR_BUSY while a start is not over. Not collective: no rank starts a program any more that
 * tells this one. Null is fine. */
PEAL_API peal_error peal_program_free(peal_program* program);

/* Memory of another rank, as peal_memory_name() names it there. */
typedef struct peal_named_memory {
  uint32_t key;
  uint32_t reserved; /* zero */
  uint64_t offset;
} peal_named_memory;

#define PEAL_TRINARY_ENGINES 3u

/* A broadcast of three fragments by three transmit engines (Trinaryx3; Morie and others,
 * "Prototyping of Offloaded Persistent Broadcast on Tofu2 Interconnect"). */
typedef struct peal_trinary_params {
  size_t struct_bytes; /* sizeof(peal_trinary_params) */
  /* Ranks along each dimension of a 3-D torus: rank x + torus[0] * (y + torus[1] * z) is at x, y,
   * z. At most 64 ranks, each with three links at least. */
  uint32_t torus[3];
  uint32_t root;
  void* buffer; /* own, which all ranks have registered to be read and written */
  size_t bytes;
  size_t segment_bytes;             /* a put each; not 0 */
  const peal_named_memory* buffers; /* everybody's, by rank; read before the call returns */
} peal_trinary_params;

/* Writes this rank's three programs, for the engines 0, 1 and 2. All ranks commit them by one
 * peal_program_commit_all(); a broadcast is a start of each. Needs no card. On failure the programs
 * are null. PEAL_ERR_INVALID_ARGUMENT, with the reason, where the torus has not `size` ranks or no
 * three such trees; PEAL_ERR_BAD_ROOT. */
PEAL_API peal_error peal_program_trinary(uint32_t rank, uint32_t size,
                                         const peal_trinary_params* params,
                                         peal_program* programs[PEAL_TRINARY_ENGINES]);

/* --- how requests end --- */
/* Never blocks. *done says whether it is complete; if so returns how it ended, else PEAL_OK. */
PEAL_API peal_error peal_test(peal_request* request, int* done);
/* Blocks until it is complete and returns how it ended. The request stays until
 * peal_request_free(). */
PEAL_API peal_error peal_wait(peal_request* request);
/* The same, but PEAL_ERR_TIMED_OUT when it is still pending after timeout_ns. */
PEAL_API peal_error peal_wait_for(peal_request* request, uint64_t timeout_ns);
/* Of `count` requests of one context, nulls among them: the first that is complete, as *index, and
 * how it ended; PEAL_NO_INDEX and PEAL_OK when none is. Set what it names to null, or it is named
 * again. */
#define PEAL_NO_INDEX SIZE_MAX
PEAL_API peal_error peal_test_any(peal_request* const* requests, size_t count, size_t* index);
/* Blocks until there is one, at most timeout_ns (UINT64_MAX: for ever): PEAL_ERR_TIMED_OUT.
 * PEAL_NO_INDEX and PEAL_OK at once when all are null. */
PEAL_API peal_error peal_wait_any(peal_request* const* requests, size_t count, uint64_t timeout_ns,
                                  size_t* index);
/* Blocks until all are complete; returns how the first in the list ended that did not succeed. */
PEAL_API peal_error peal_wait_all(peal_request* const* requests, size_t count);
/* One that is pending is detached instead. Null is fine. */
PEAL_API peal_error peal_request_free(peal_request* request);
/* The rank that the error is about (dead, or disagreeing), or -1. */
PEAL_API int peal_request_failed_rank(peal_request* request);
/* Time from accepted to completed on the card's clock, in ns; 0 while pending. */
PEAL_API uint64_t peal_request_card_ns(peal_request* request);
/* Of a send, a receive, a put or a get that is complete: how many bytes the message had, or were
 * moved; of one that was truncated the message's; else 0. */
PEAL_API uint64_t peal_request_bytes(peal_request* request);
/* Of a send or a receive: the message's tag; PEAL_ANY_TAG as long as it is not known; else 0. */
PEAL_API uint64_t peal_request_tag(peal_request* request);

/* --- statistics --- */
/* What this context has done since it was opened. */
typedef struct peal_statistics {
  size_t struct_bytes; /* sizeof(peal_statistics), set by the caller */
  uint64_t posted;     /* operations given to the card, destroys too */
  uint64_t completed;  /* of those: over, well or not */
  uint64_t failed;     /* of those: not well */
  uint64_t doorbells;  /* rung because the card slept */
  uint64_t sleeps;     /* of waiting calls, instead of polling on */
  uint64_t card_ns;    /* from accepted to completed, all operations together */
  uint32_t groups;     /* that exist, those of persistent requests as well */
  uint32_t requests;   /* in use: pending, or not freed */
  uint32_t regions;    /* of memory that the card may reach */
  uint64_t region_bytes;
  /* since version 7 */
  uint32_t programs; /* persistent requests that are programs of the card */
  uint32_t ordinary; /* persistent requests made as ordinary operations, ever: a card had no room
                      * for a program, or $PEAL_PROGRAMS says so */
} peal_statistics;
/* Fills in as much as statistics->struct_bytes says. */
PEAL_API peal_error peal_read_statistics(peal_context* context, peal_statistics* statistics);

/* --- epoll --- */
/* A descriptor that becomes readable when requests of an armed context may have completed, or the
 * card is gone. It belongs to the context. peal_arm() clears it; unless *ready says that something
 * completed already, poll it, then peal_test(). */
PEAL_API peal_error peal_completion_fd(peal_context* context, int* fd);
PEAL_API peal_error peal_arm(peal_context* context, int* ready);

#ifdef __cplusplus
}
#endif

#endif
