/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small out-of-band exchange for programs without MPI: every rank connects to one server
 * (pealrun runs it, or rank 0 does), which collects one block per rank and hands all of them to
 * all. It makes groups; it is not for data.
 */
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

/* `server` is "unix:PATH" or "tcp:HOST:PORT"; with ",serve" at its end rank 0 runs the server in a
 * thread of its own (HOST is then the address it listens on, and which the others dial). Null:
 * $PEAL_OOB. Tries for up to timeout_ms (0: 30 s).
 *
 * The ranks of a job know each other by $PEAL_OOB_TOKEN, 32 hexadecimal digits that nobody else
 * knows: pealrun makes them; without it make some yourself, the same for all ranks. Over tcp it
 * must be set. Rank and server prove it to each other without showing it. */
PEAL_API peal_error peal_oob_connect(const char* server, uint32_t rank, uint32_t size,
                                     unsigned timeout_ms, peal_oob** oob);
/* A peal_exchange_callback: `oob` is a peal_oob. Fails on all ranks when one of them is gone. Not
 * for a child of fork(): PEAL_ERR_FORKED. */
PEAL_API int peal_oob_exchange(void* oob, const void* send, void* receive, size_t bytes);
PEAL_API void peal_oob_close(peal_oob* oob);

/* Rank and size as the launcher set them ($PEAL_RANK, $PEAL_SIZE). PEAL_ERR_INVALID_ARGUMENT when
 * they are not set or senseless. */
PEAL_API peal_error peal_launch_rank(uint32_t* rank, uint32_t* size);

#ifdef __cplusplus
}
#endif

#endif
