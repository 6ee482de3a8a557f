/* SPDX-License-Identifier: BSD-2-Clause */
/* peal/peal.h as it was in version 2 of the API, without its comments. Frozen: programs built with
 * it must go on working. */
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

#define PEAL_API_VERSION 2u

typedef enum peal_error {
  PEAL_OK = 0,

  PEAL_ERR_PEER_DEAD = 1,

  PEAL_ERR_MISMATCH = 2,
  PEAL_ERR_BAD_OPCODE = 3,
  PEAL_ERR_BAD_ALGORITHM = 4,
  PEAL_ERR_BAD_FLAGS = 5,
  PEAL_ERR_BAD_GROUP = 6,
  PEAL_ERR_BAD_SEQUENCE = 7,
  PEAL_ERR_BAD_KEY = 8,
  PEAL_ERR_BAD_BOUNDS = 9,
  PEAL_ERR_BAD_ACCESS = 10,
  PEAL_ERR_BAD_LENGTH = 11,
  PEAL_ERR_BAD_ROOT = 12,
  PEAL_ERR_TOO_MANY = 13,
  PEAL_ERR_NO_RESOURCES = 14,
  PEAL_ERR_BUSY = 15,
  PEAL_ERR_CLOSED = 16,
  PEAL_ERR_DMA_FAULT = 17,
  PEAL_ERR_BAD_VERSION = 18,
  PEAL_ERR_BAD_ADDRESS = 19,
  PEAL_ERR_BAD_RANK = 20,

  PEAL_ERR_INVALID_ARGUMENT = 64,

  PEAL_ERR_NOT_REGISTERED = 65,
  PEAL_ERR_NO_MEMORY = 66,
  PEAL_ERR_SYSTEM = 67,
  PEAL_ERR_NO_CARD = 68,
  PEAL_ERR_CARD_GONE = 69,
  PEAL_ERR_CARD_ANSWER = 70,
  PEAL_ERR_OUT_OF_BAND = 71,
  PEAL_ERR_PEER_REFUSED = 72,
  PEAL_ERR_TIMED_OUT = 74,
  PEAL_ERR_FORKED = 75
} peal_error;

PEAL_API const char* peal_strerror(peal_error error);

PEAL_API const char* peal_last_error_text(void);

PEAL_API const char* peal_version(void);

typedef struct peal_context peal_context;

PEAL_API peal_error peal_open_version(uint32_t api_version, const char* card,
                                      peal_context** context);

static inline peal_error peal_open(const char* card, peal_context** context) {
  return peal_open_version(PEAL_API_VERSION, card, context);
}

PEAL_API void peal_close(peal_context* context);

typedef struct peal_card_info {
  size_t struct_bytes;
  uint8_t mac[6];
  uint16_t card_index;
  uint32_t incarnation;
  uint32_t ranks_max;
  uint32_t channels;
  uint32_t parked_max;
  uint32_t mtu_bytes;
  uint32_t ring_entries;
  uint32_t dead_timeout_us;

  uint32_t channel_bytes;
  uint32_t geometry;
} peal_card_info;

PEAL_API peal_error peal_card_query(peal_context* context, peal_card_info* info);

PEAL_API peal_error peal_counters(peal_context* context, uint64_t* values, size_t capacity,
                                  size_t* count);

PEAL_API const char* peal_counter_name(size_t index);

#define PEAL_READ 1u
#define PEAL_WRITE 2u

PEAL_API peal_error peal_alloc(peal_context* context, size_t bytes, void** memory);

PEAL_API peal_error peal_free(peal_context* context, void* memory);

typedef struct peal_memory peal_memory;

PEAL_API peal_error peal_register(peal_context* context, void* address, size_t bytes,
                                  unsigned access, peal_memory** memory);

PEAL_API peal_error peal_unregister(peal_memory* memory);

typedef struct peal_group peal_group;

typedef int (*peal_exchange_callback)(void* argument, const void* send, void* receive,
                                      size_t bytes);

typedef enum peal_allgather_algorithm {
  PEAL_ALLGATHER_AUTO = 0,
  PEAL_ALLGATHER_ALL_TO_ALL_BROADCAST = 1,
  PEAL_ALLGATHER_RECURSIVE_DOUBLING = 2
} peal_allgather_algorithm;

#define PEAL_GROUP_REGISTER 1u

typedef struct peal_group_params {
  size_t struct_bytes;
  unsigned flags;

  peal_allgather_algorithm allgather_algorithm;
} peal_group_params;

PEAL_API peal_error peal_group_create(peal_context* context, uint32_t rank, uint32_t size,
                                      peal_exchange_callback exchange, void* argument,
                                      const peal_group_params* params, peal_group** group);

PEAL_API peal_error peal_group_destroy(peal_group* group);

PEAL_API peal_error peal_group_abort(peal_group* group);

PEAL_API peal_error peal_group_wait(peal_group* group);
PEAL_API uint32_t peal_group_rank(const peal_group* group);
PEAL_API uint32_t peal_group_size(const peal_group* group);

PEAL_API int peal_group_failed_rank(peal_group* group);

#define PEAL_GROUP_RECORD_BYTES 64u

typedef struct peal_group_builder peal_group_builder;

PEAL_API peal_error peal_group_begin(peal_context* context, uint32_t rank, uint32_t size,
                                     const peal_group_params* params, peal_group_builder** builder);

PEAL_API const void* peal_group_record(const peal_group_builder* builder);

PEAL_API peal_error peal_group_advance(peal_group_builder* builder, const void* records,
                                       peal_group** group);

PEAL_API void peal_group_cancel(peal_group_builder* builder);

typedef struct peal_request peal_request;

#define PEAL_IN_PLACE ((const void*)-1)

PEAL_API peal_error peal_barrier(peal_group* group);
PEAL_API peal_error peal_ibarrier(peal_group* group, peal_request** request);

PEAL_API peal_error peal_allgather(peal_group* group, const void* send, void* receive,
                                   size_t block_bytes);
PEAL_API peal_error peal_iallgather(peal_group* group, const void* send, void* receive,
                                    size_t block_bytes, peal_request** request);

PEAL_API peal_error peal_test(peal_request* request, int* done);

PEAL_API peal_error peal_wait(peal_request* request);

PEAL_API peal_error peal_wait_for(peal_request* request, uint64_t timeout_ns);

#define PEAL_NO_INDEX SIZE_MAX
PEAL_API peal_error peal_test_any(peal_request* const* requests, size_t count, size_t* index);

PEAL_API peal_error peal_wait_any(peal_request* const* requests, size_t count, uint64_t timeout_ns,
                                  size_t* index);

PEAL_API peal_error peal_wait_all(peal_request* const* requests, size_t count);

PEAL_API peal_error peal_request_free(peal_request* request);

PEAL_API int peal_request_failed_rank(peal_request* request);

PEAL_API uint64_t peal_request_card_ns(peal_request* request);

typedef struct peal_statistics {
  size_t struct_bytes;
  uint64_t posted;
  uint64_t completed;
  uint64_t failed;
  uint64_t doorbells;
  uint64_t sleeps;
  uint64_t card_ns;
  uint32_t groups;
  uint32_t requests;
  uint32_t regions;
  uint64_t region_bytes;
} peal_statistics;

PEAL_API peal_error peal_read_statistics(peal_context* context, peal_statistics* statistics);

PEAL_API peal_error peal_completion_fd(peal_context* context, int* fd);
PEAL_API peal_error peal_arm(peal_context* context, int* ready);

#ifdef __cplusplus
}
#endif

#endif
