/* SPDX-License-Identifier: BSD-2-Clause */
/* peal/oob.h as it was in version 2 of the API, without its comments. Frozen: programs built with
 * it must go on working. */
#ifndef PEAL_OOB_H
#define PEAL_OOB_H

#include <stddef.h>
#include <stdint.h>

#include "peal/peal.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct peal_oob peal_oob;

#define PEAL_OOB_BLOCK_BYTES_MAX (1u << 20)

PEAL_API peal_error peal_oob_connect(const char* server, uint32_t rank, uint32_t size,
                                     unsigned timeout_ms, peal_oob** oob);

PEAL_API int peal_oob_exchange(void* oob, const void* send, void* receive, size_t bytes);
PEAL_API void peal_oob_close(peal_oob* oob);

PEAL_API peal_error peal_launch_rank(uint32_t* rank, uint32_t* size);

#ifdef __cplusplus
}
#endif

#endif
