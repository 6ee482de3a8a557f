/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of peal.h that peal-matmul and peal-perf use, carried out by Open MPI's collectives,
 * messages and windows, under the name libpeal.so.0: the very same programs then run over either, write and read the same
 * data, and time the same calls. There is no card: counters are none, and times on the card are 0.
 *
 *   mpirun -n 8 -x LD_LIBRARY_PATH=THE_FOLDER_OF_THIS peal-matmul
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "peal/oob.h"
#include "peal/peal.h"

enum { kAllocationsMax = 64, kAlignment = 4096, kRanksMax = 1024, kWindowsMax = 16 };

struct peal_context {
  void* memory[kAllocationsMax];
};
/* What MPI wants to know of blocks that differ: counts and displacements are its own until the
 * operation is complete. */
struct blocks {
  int bytes[kRanksMax];
  int offsets[kRanksMax];
};
struct peal_group {
  MPI_Comm ranks;
  int rank;
  int size;
  struct blocks send; /* of the blocking calls */
  struct blocks receive;
};
/* Memory that has a name: its number here, which is the same on all ranks. */
struct window {
  MPI_Win window;
  uint64_t begun;              /* puts and gets of this rank */
  uint64_t flushed[kRanksMax]; /* those up to here, of each rank's, are complete */
};
static struct window windows[kWindowsMax];
static uint32_t window_count;

struct peal_request {
  MPI_Request request;
  struct window* window;                /* of a put or a get, or null */
  uint32_t other;                       /* whose memory it is */
  uint64_t number;                      /* in its window, from 1 */
  void (*begin)(peal_request* request); /* every start: Open MPI 4 has no persistent collectives */
  peal_group* group;
  const void* send;
  void* receive;
  int bytes;
  int root;
  struct blocks* from; /* of this operation alone, or null */
  struct blocks* to;
};
struct peal_oob {
  MPI_Comm ranks;
};

static const char* last_error = "";

static peal_error fail(peal_error error, const char* text) {
  last_error = text;
  return error;
}

/* Rank and size are known before MPI_Init(), and peal-perf asks for $PEAL_RANK even before that. */
__attribute__((constructor)) static void take_environment(void) {
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  const char* size = getenv("OMPI_COMM_WORLD_SIZE");
  if (rank != NULL) setenv("PEAL_RANK", rank, 1);
  if (size != NULL) setenv("PEAL_SIZE", size, 1);
}

peal_error peal_launch_rank(uint32_t* rank, uint32_t* size) {
  const char* rank_text = getenv("PEAL_RANK");
  const char* size_text = getenv("PEAL_SIZE");
  if (rank_text == NULL || size_text == NULL) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "not started by Open MPI's mpirun");
  }
  *rank = (uint32_t)strtoul(rank_text, NULL, 10);
  *size = (uint32_t)strtoul(size_text, NULL, 10);
  return PEAL_OK;
}

const char* peal_strerror(peal_error error) { return error == PEAL_OK ? "success" : "failure"; }
const char* peal_last_error_text(void) { return last_error; }
const char* peal_version(void) {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  return text;
}

/* MPI's errors end the job by themselves, as its default is. */
peal_error peal_oob_connect(const char* server, uint32_t rank, uint32_t size, unsigned timeout_ms,
                            peal_oob** oob) {
  (void)server;
  (void)timeout_ms;
  MPI_Init(NULL, NULL);
  int own_rank = 0;
  int own_size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &own_size);
  if ((uint32_t)own_rank != rank || (uint32_t)own_size != size) {
    return fail(PEAL_ERR_BAD_RANK, "rank and size are not those of MPI_COMM_WORLD");
  }
  *oob = malloc(sizeof(**oob));
  if (*oob == NULL) return fail(PEAL_ERR_NO_MEMORY, "no memory");
  MPI_Comm_dup(MPI_COMM_WORLD, &(*oob)->ranks);
  return PEAL_OK;
}

int peal_oob_exchange(void* oob, const void* send, void* receive, size_t bytes) {
  return MPI_Allgather(send, (int)bytes, MPI_BYTE, receive, (int)bytes, MPI_BYTE,
                       ((peal_oob*)oob)->ranks);
}

void peal_oob_close(peal_oob* oob) {
  MPI_Comm_free(&oob->ranks);
  free(oob);
  MPI_Finalize();
}

peal_error peal_open_version(uint32_t api_version, const char* card, peal_context** context) {
  (void)api_version; /* the programs are of this very tree */
  (void)card;
  *context = calloc(1, sizeof(**context));
  return *context != NULL ? PEAL_OK : fail(PEAL_ERR_NO_MEMORY, "no memory");
}

void peal_close(peal_context* context) {
  for (int i = 0; i < kAllocationsMax; i++) free(context->memory[i]);
  free(context);
}

peal_error peal_alloc(peal_context* context, size_t bytes, void** memory) {
  for (int i = 0; i < kAllocationsMax; i++) {
    if (context->memory[i] != NULL) continue;
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    *memory = aligned_alloc(kAlignment, rounded);
    if (*memory == NULL) return fail(PEAL_ERR_NO_MEMORY, "no memory");
    context->memory[i] = memset(*memory, 0, rounded);
    return PEAL_OK;
  }
  return fail(PEAL_ERR_NO_MEMORY, "too many allocations");
}

peal_error peal_free(peal_context* context, void* memory) {
  for (int i = 0; i < kAllocationsMax; i++) {
    if (memory == NULL || context->memory[i] != memory) continue;
    free(memory);
    context->memory[i] = NULL;
    return PEAL_OK;
  }
  return memory == NULL ? PEAL_OK : fail(PEAL_ERR_INVALID_ARGUMENT, "not allocated here");
}

peal_error peal_register(peal_context* context, void* address, size_t bytes, unsigned access,
                         peal_memory** memory) {
  (void)context;
  (void)address;
  (void)bytes;
  (void)access;
  *memory = NULL;
  return PEAL_OK;
}

peal_error peal_card_query(peal_context* context, peal_card_info* info) {
  (void)context;
  *info = (peal_card_info){.struct_bytes = info->struct_bytes};
  return PEAL_OK;
}

peal_error peal_counters(peal_context* context, uint64_t* values, size_t capacity, size_t* count) {
  (void)context;
  (void)values;
  (void)capacity;
  *count = 0;
  return PEAL_OK;
}

const char* peal_counter_name(size_t index) {
  (void)index;
  return NULL;
}

peal_error peal_group_create(peal_context* context, uint32_t rank, uint32_t size,
                             peal_exchange_callback exchange, void* argument,
                             const peal_group_params* params, peal_group** group) {
  (void)context;
  (void)exchange;
  (void)argument;
  (void)params;
  int own_rank = 0;
  int own_size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &own_size);
  if ((uint32_t)own_rank != rank || (uint32_t)own_size != size) {
    return fail(PEAL_ERR_BAD_RANK, "only groups of all ranks");
  }
  if (size > kRanksMax) return fail(PEAL_ERR_BAD_RANK, "at most 1024 ranks");
  *group = malloc(sizeof(**group));
  if (*group == NULL) return fail(PEAL_ERR_NO_MEMORY, "no memory");
  MPI_Comm_dup(MPI_COMM_WORLD, &(*group)->ranks);
  (*group)->rank = own_rank;
  (*group)->size = own_size;
  return PEAL_OK;
}

peal_error peal_group_destroy(peal_group* group) {
  for (; window_count > 0; window_count--) {
    MPI_Win_unlock_all(windows[window_count - 1].window);
    MPI_Win_free(&windows[window_count - 1].window);
  }
  MPI_Barrier(group->ranks);
  MPI_Comm_free(&group->ranks);
  free(group);
  return PEAL_OK;
}

peal_error peal_barrier(peal_group* group) {
  MPI_Barrier(group->ranks);
  return PEAL_OK;
}

static const void* mpi_send(const void* send) {
  return send == PEAL_IN_PLACE ? MPI_IN_PLACE : send;
}

peal_error peal_allgather(peal_group* group, const void* send, void* receive, size_t block_bytes) {
  MPI_Allgather(mpi_send(send), (int)block_bytes, MPI_BYTE, receive, (int)block_bytes, MPI_BYTE,
                group->ranks);
  return PEAL_OK;
}

peal_error peal_alltoall(peal_group* group, const void* send, void* receive, size_t block_bytes) {
  MPI_Alltoall(mpi_send(send), (int)block_bytes, MPI_BYTE, receive, (int)block_bytes, MPI_BYTE,
               group->ranks);
  return PEAL_OK;
}

static void take_blocks(const peal_group* group, const size_t* bytes, const size_t* offsets,
                        struct blocks* blocks) {
  size_t behind = 0;
  for (int r = 0; r < group->size; r++) {
    blocks->bytes[r] = (int)bytes[r];
    blocks->offsets[r] = (int)(offsets != NULL ? offsets[r] : behind);
    behind += bytes[r];
  }
}

peal_error peal_allgatherv(peal_group* group, const void* send, void* receive, const size_t* bytes,
                           const size_t* offsets) {
  take_blocks(group, bytes, offsets, &group->receive);
  MPI_Allgatherv(mpi_send(send), group->receive.bytes[group->rank], MPI_BYTE, receive,
                 group->receive.bytes, group->receive.offsets, MPI_BYTE, group->ranks);
  return PEAL_OK;
}

peal_error peal_alltoallv(peal_group* group, const void* send, const size_t* send_bytes,
                          const size_t* send_offsets, void* receive, const size_t* receive_bytes,
                          const size_t* receive_offsets) {
  take_blocks(group, receive_bytes, receive_offsets, &group->receive);
  if (send != PEAL_IN_PLACE) take_blocks(group, send_bytes, send_offsets, &group->send);
  MPI_Alltoallv(mpi_send(send), group->send.bytes, group->send.offsets, MPI_BYTE, receive,
                group->receive.bytes, group->receive.offsets, MPI_BYTE, group->ranks);
  return PEAL_OK;
}

peal_error peal_bcast(peal_group* group, void* buffer, size_t bytes, uint32_t root) {
  MPI_Bcast(buffer, (int)bytes, MPI_BYTE, (int)root, group->ranks);
  return PEAL_OK;
}

static peal_error make_request(const peal_request* like, peal_request** request) {
  *request = malloc(sizeof(**request));
  if (*request == NULL) return fail(PEAL_ERR_NO_MEMORY, "no memory");
  **request = *like;
  (*request)->request = MPI_REQUEST_NULL;
  return PEAL_OK;
}

/* A request with room for what MPI keeps until it is complete. */
static peal_error make_blocks_request(const peal_request* like, peal_request** request) {
  if (make_request(like, request) != PEAL_OK) return PEAL_ERR_NO_MEMORY;
  (*request)->from = calloc(1, sizeof(*(*request)->from));
  (*request)->to = calloc(1, sizeof(*(*request)->to));
  if ((*request)->from != NULL && (*request)->to != NULL) return PEAL_OK;
  (void)peal_request_free(*request);
  return fail(PEAL_ERR_NO_MEMORY, "no memory");
}

static void begin_allgather(peal_request* r) {
  MPI_Iallgather(mpi_send(r->send), r->bytes, MPI_BYTE, r->receive, r->bytes, MPI_BYTE,
                 r->group->ranks, &r->request);
}
static void begin_alltoall(peal_request* r) {
  MPI_Ialltoall(mpi_send(r->send), r->bytes, MPI_BYTE, r->receive, r->bytes, MPI_BYTE,
                r->group->ranks, &r->request);
}
static void begin_allgatherv(peal_request* r) {
  MPI_Iallgatherv(mpi_send(r->send), r->to->bytes[r->group->rank], MPI_BYTE, r->receive,
                  r->to->bytes, r->to->offsets, MPI_BYTE, r->group->ranks, &r->request);
}
static void begin_alltoallv(peal_request* r) {
  MPI_Ialltoallv(mpi_send(r->send), r->from->bytes, r->from->offsets, MPI_BYTE, r->receive,
                 r->to->bytes, r->to->offsets, MPI_BYTE, r->group->ranks, &r->request);
}
static void begin_bcast(peal_request* r) {
  MPI_Ibcast(r->receive, r->bytes, MPI_BYTE, r->root, r->group->ranks, &r->request);
}
static void begin_barrier(peal_request* r) { MPI_Ibarrier(r->group->ranks, &r->request); }

peal_error peal_allgather_init(peal_group* group, const void* send, void* receive,
                               size_t block_bytes, peal_request** request) {
  const peal_request like = {.begin = begin_allgather,
                             .group = group,
                             .send = send,
                             .receive = receive,
                             .bytes = (int)block_bytes};
  return make_request(&like, request);
}

peal_error peal_alltoall_init(peal_group* group, const void* send, void* receive,
                              size_t block_bytes, peal_request** request) {
  const peal_request like = {.begin = begin_alltoall,
                             .group = group,
                             .send = send,
                             .receive = receive,
                             .bytes = (int)block_bytes};
  return make_request(&like, request);
}

peal_error peal_allgatherv_init(peal_group* group, const void* send, void* receive,
                                const size_t* bytes, const size_t* offsets,
                                peal_request** request) {
  const peal_request like = {
      .begin = begin_allgatherv, .group = group, .send = send, .receive = receive};
  if (make_blocks_request(&like, request) != PEAL_OK) return PEAL_ERR_NO_MEMORY;
  take_blocks(group, bytes, offsets, (*request)->to);
  return PEAL_OK;
}

peal_error peal_alltoallv_init(peal_group* group, const void* send, const size_t* send_bytes,
                               const size_t* send_offsets, void* receive,
                               const size_t* receive_bytes, const size_t* receive_offsets,
                               peal_request** request) {
  const peal_request like = {
      .begin = begin_alltoallv, .group = group, .send = send, .receive = receive};
  if (make_blocks_request(&like, request) != PEAL_OK) return PEAL_ERR_NO_MEMORY;
  take_blocks(group, receive_bytes, receive_offsets, (*request)->to);
  if (send != PEAL_IN_PLACE) take_blocks(group, send_bytes, send_offsets, (*request)->from);
  return PEAL_OK;
}

peal_error peal_bcast_init(peal_group* group, void* buffer, size_t bytes, uint32_t root,
                           peal_request** request) {
  const peal_request like = {.begin = begin_bcast,
                             .group = group,
                             .receive = buffer,
                             .bytes = (int)bytes,
                             .root = (int)root};
  return make_request(&like, request);
}

peal_error peal_barrier_init(peal_group* group, peal_request** request) {
  const peal_request like = {.begin = begin_barrier, .group = group};
  return make_request(&like, request);
}

peal_error peal_start(peal_request* request) {
  request->begin(request);
  return PEAL_OK;
}

/* The calls that do not wait make a request and start it. */
static peal_error start_made(peal_error made, peal_request** request) {
  return made == PEAL_OK ? peal_start(*request) : made;
}

peal_error peal_iallgather(peal_group* group, const void* send, void* receive, size_t block_bytes,
                           peal_request** request) {
  return start_made(peal_allgather_init(group, send, receive, block_bytes, request), request);
}

peal_error peal_ialltoall(peal_group* group, const void* send, void* receive, size_t block_bytes,
                          peal_request** request) {
  return start_made(peal_alltoall_init(group, send, receive, block_bytes, request), request);
}

peal_error peal_iallgatherv(peal_group* group, const void* send, void* receive, const size_t* bytes,
                            const size_t* offsets, peal_request** request) {
  return start_made(peal_allgatherv_init(group, send, receive, bytes, offsets, request), request);
}

peal_error peal_ialltoallv(peal_group* group, const void* send, const size_t* send_bytes,
                           const size_t* send_offsets, void* receive, const size_t* receive_bytes,
                           const size_t* receive_offsets, peal_request** request) {
  return start_made(peal_alltoallv_init(group, send, send_bytes, send_offsets, receive,
                                        receive_bytes, receive_offsets, request),
                    request);
}

peal_error peal_ibcast(peal_group* group, void* buffer, size_t bytes, uint32_t root,
                       peal_request** request) {
  return start_made(peal_bcast_init(group, buffer, bytes, root, request), request);
}

peal_error peal_ibarrier(peal_group* group, peal_request** request) {
  return start_made(peal_barrier_init(group, request), request);
}

static peal_error begin_message(peal_request** request) {
  static const peal_request like;
  return make_request(&like, request);
}

peal_error peal_isend(peal_group* group, uint32_t to, uint64_t tag, const void* send, size_t bytes,
                      peal_request** request) {
  if (begin_message(request) != PEAL_OK) return PEAL_ERR_NO_MEMORY;
  MPI_Isend(send, (int)bytes, MPI_BYTE, (int)to, (int)tag, group->ranks, &(*request)->request);
  return PEAL_OK;
}

peal_error peal_irecv(peal_group* group, uint32_t from, uint64_t tag, void* receive, size_t bytes,
                      peal_request** request) {
  if (begin_message(request) != PEAL_OK) return PEAL_ERR_NO_MEMORY;
  MPI_Irecv(receive, (int)bytes, MPI_BYTE, (int)from, (int)tag, group->ranks, &(*request)->request);
  return PEAL_OK;
}

/* Unlike libpeal's this is collective: all ranks name their memory in the same order. It can be
 * reached until the group is destroyed. */
peal_error peal_memory_name(peal_context* context, void* address, size_t bytes, uint32_t* key,
                            uint64_t* offset) {
  (void)context;
  if (window_count == kWindowsMax) return fail(PEAL_ERR_NO_MEMORY, "too many windows");
  struct window* made = &windows[window_count];
  *made = (struct window){.begun = 0};
  MPI_Win_create(address, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &made->window);
  MPI_Win_lock_all(0, made->window);
  *key = window_count++;
  *offset = 0;
  return PEAL_OK;
}

static peal_error begin_in_window(uint32_t key, uint32_t other, peal_request** request) {
  if (key >= window_count) return fail(PEAL_ERR_BAD_KEY, "there is no such window");
  if (begin_message(request) != PEAL_OK) return PEAL_ERR_NO_MEMORY;
  (*request)->window = &windows[key];
  (*request)->other = other;
  (*request)->number = ++windows[key].begun;
  return PEAL_OK;
}

peal_error peal_put(peal_group* group, uint32_t to, const void* send, size_t bytes,
                    uint32_t remote_key, uint64_t remote_offset, peal_request** request) {
  (void)group;
  const peal_error error = begin_in_window(remote_key, to, request);
  if (error != PEAL_OK) return error;
  MPI_Put(send, (int)bytes, MPI_BYTE, (int)to, (MPI_Aint)remote_offset, (int)bytes, MPI_BYTE,
          windows[remote_key].window);
  return PEAL_OK;
}

peal_error peal_get(peal_group* group, uint32_t from, void* receive, size_t bytes,
                    uint32_t remote_key, uint64_t remote_offset, peal_request** request) {
  (void)group;
  const peal_error error = begin_in_window(remote_key, from, request);
  if (error != PEAL_OK) return error;
  MPI_Get(receive, (int)bytes, MPI_BYTE, (int)from, (MPI_Aint)remote_offset, (int)bytes, MPI_BYTE,
          windows[remote_key].window);
  return PEAL_OK;
}

/* A flush completes all that was begun before it, in that rank's memory. */
static void flush(const peal_request* request) {
  struct window* window = request->window;
  if (request->number <= window->flushed[request->other]) return;
  window->flushed[request->other] = window->begun;
  MPI_Win_flush((int)request->other, window->window);
}

peal_error peal_test(peal_request* request, int* done) {
  MPI_Test(&request->request, done, MPI_STATUS_IGNORE);
  return PEAL_OK;
}

peal_error peal_wait(peal_request* request) {
  if (request->window != NULL) flush(request);
  MPI_Wait(&request->request, MPI_STATUS_IGNORE);
  return PEAL_OK;
}

uint64_t peal_request_card_ns(peal_request* request) {
  (void)request;
  return 0;
}

peal_error peal_request_free(peal_request* request) {
  free(request->from);
  free(request->to);
  free(request);
  return PEAL_OK;
}
