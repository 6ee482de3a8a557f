/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that the public headers stand alone, in C99, in this order and twice. */
#include "peal/oob.h"
#include "peal/peal.h"
/* again, to see the guards work */
#include "peal/oob.h"
#include "peal/peal.h"

peal_error peal_header_check(void);
peal_error peal_header_check(void) { return PEAL_OK; }
