/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * What can be said of an ioctl's argument, and of a process' command, before anything is touched: pure functions of the
 * structures in abi/, so that the fuzzer runs the very same code as the kernel. 0, or a negative errno.
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

/* What a process sends by PEAL_IOCTL_ASK, whatever it asks for. */
static inline int peal_check_command(const struct peal_admin_command *command)
{
	if (command->version != PEAL_ABI_VERSION)
		return -EINVAL;
	if (command->bytes != PEAL_ADMIN_BYTES)
		return -EMSGSIZE;
	if (command->context || command->tag || command->reserved)
		return -EINVAL;
	return command->opcode && command->opcode < PEAL_ADMIN_OPCODE_COUNT ? 0 : -EINVAL;
}

/* *pages is how many pages of that size the range touches. */
static inline int peal_check_register(const struct peal_register_memory *body, uint32_t page_shift,
				      uint64_t *pages)
{
	uint64_t page = 1ULL << page_shift;
	uint64_t last;

	if (body->kind == PEAL_MEMORY_ALLOCATE || body->kind == PEAL_MEMORY_PAGES)
		return -EPERM;
	if (body->kind != PEAL_MEMORY_PROCESS || body->first_page_offset || body->page_shift)
		return -EINVAL;
	if (!body->access || (body->access & ~PEAL_ACCESS_FLAGS))
		return -EINVAL;
	if (!body->bytes || body->address + body->bytes < body->address)
		return -EINVAL;
	if (body->bytes > PEAL_REGISTER_BYTES_MAX)
		return -EFBIG;
	last = body->address + body->bytes - 1;
	*pages = last / page - body->address / page + 1;
	return 0;
}

static inline int peal_check_reserve(const struct peal_reserve_group *body)
{
	return body->channel_pages || body->channel_list_bytes ? -EINVAL : 0;
}

static inline int peal_check_departed(const struct peal_ioctl_departed *argument)
{
	return argument->key || argument->found ? -EINVAL : 0;
}

static inline int peal_check_eventfd(const struct peal_ioctl_eventfd *argument)
{
	return argument->reserved || argument->fd < -1 ? -EINVAL : 0;
}

#endif
