/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * Fixed-width types and compile-time layout checks, for user space, the card and the kernel alike.
 * Every multi-byte field that two sides share is little-endian, except where a line says otherwise.
 */
#ifndef PEAL_ABI_TYPES_H
#define PEAL_ABI_TYPES_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <linux/types.h>
#else
#include <stddef.h>
#include <stdint.h>
#endif

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Peal's shared structures are little-endian; this target is not"
#endif

#ifdef __cplusplus
#define PEAL_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define PEAL_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

/* One line per field keeps layout readable: offset and size are checked together. */
#define PEAL_CHECK_FIELD(type, field, at, bytes)                          \
	PEAL_STATIC_ASSERT(offsetof(type, field) == (at) &&               \
				   sizeof(((type *)0)->field) == (bytes), \
			   #type "." #field " moved")
#define PEAL_CHECK_SIZE(type, bytes) \
	PEAL_STATIC_ASSERT(sizeof(type) == (bytes), #type " changed its size or has padding")

#define PEAL_CACHE_LINE_BYTES 64
#define PEAL_PAGE_BYTES 4096

/* Version of everything in abi/. Bumped whenever a layout or a meaning changes. */
#define PEAL_ABI_VERSION 9

#define PEAL_RANKS_MAX 65536 /* ranks themselves fit 16 bits */
#define PEAL_PEERS_MAX 32 /* 2 * ceil(log2(PEAL_RANKS_MAX)) */

#endif
