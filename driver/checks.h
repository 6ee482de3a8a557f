/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * What can be said of an ioctl's argument before anything is touched: pure functions of the structures in abi/ioctl.h, so that
 * the fuzzer runs the very same code as the kernel. 0, or a negative errno.
 */
#ifndef PEAL_DRIVER_CHECKS_H
#define PEAL_DRIVER_CHECKS_H

#include "abi/admin.h"
#include "abi/ioctl.h"
#ifdef __KERNEL__
#include <linux/errno.h>
#endif /* user space includes its own <errno.h> first */

/* The page list must be contiguous, and the largest contiguous piece is a few MiB. */
#define PEAL_REGISTER_BYTES_MAX (1ULL << 30)

static inline int peal_check_header(const struct peal_ioctl_header *header, uint32_t bytes)
{
	if (header->version != PEAL_ABI_VERSION)
		return -EINVAL;
	return header->bytes == bytes ? 0 : -EMSGSIZE;
}

/* *pages is how many pages of that size the range touches. */
static inline int peal_check_register(const struct peal_ioctl_register *argument,
				      uint32_t page_shift, uint64_t *pages)
{
	uint64_t page = 1ULL << page_shift;
	uint64_t last;

	if (argument->reserved || (argument->access & ~PEAL_ACCESS_FLAGS) || !argument->access)
		return -EINVAL;
	if (!argument->bytes_ || argument->address + argument->bytes_ < argument->address)
		return -EINVAL;
	if (argument->bytes_ > PEAL_REGISTER_BYTES_MAX)
		return -EFBIG;
	last = argument->address + argument->bytes_ - 1;
	*pages = last / page - argument->address / page + 1;
	return 0;
}

static inline int peal_check_reserve(const struct peal_ioctl_reserve_group *argument)
{
	return argument->reserved ? -EINVAL : 0;
}

static inline int peal_check_connect(const struct peal_ioctl_connect_group *argument)
{
	return argument->reserved || argument->peer_count > PEAL_PEERS_MAX ? -EINVAL : 0;
}

static inline int peal_check_eventfd(const struct peal_ioctl_eventfd *argument)
{
	return argument->reserved || argument->fd < -1 ? -EINVAL : 0;
}

static inline int peal_check_counters(const struct peal_ioctl_counters *argument)
{
	return argument->values + 8ULL * argument->capacity < argument->values ? -EFAULT : 0;
}

#endif
