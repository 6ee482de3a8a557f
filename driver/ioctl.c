// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * The ioctls (abi/ioctl.h). Each structure is copied in once, checked, carried out under the context's lock, and copied out.
 */
#include <linux/fs.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "checks.h"
#include "peal.h"

union argument {
	struct peal_ioctl_header header;
	struct peal_ioctl_info info;
	struct peal_ioctl_register register_memory;
	struct peal_ioctl_unregister unregister_memory;
	struct peal_ioctl_reserve_group reserve;
	struct peal_ioctl_connect_group connect;
	struct peal_ioctl_abandon_group abandon;
	struct peal_ioctl_eventfd event;
	struct peal_ioctl_counters counters;
};

static int on_info(struct peal_context *context, union argument *argument)
{
	struct peal_ioctl_info *info = &argument->info;

	info->window_bytes = context->card->window_bytes;
	info->doorbell_bytes = peal_doorbell_page_bytes(context->card);
	info->doorbell_offset = PEAL_PCI_BAR0_DOORBELL;
	info->doorbell_value = peal_doorbell_value(PEAL_PCI_VECTOR_QUEUES);
	return 0;
}

static int on_register(struct peal_context *context, union argument *argument)
{
	return peal_memory_register(context, &argument->register_memory);
}

static int on_unregister(struct peal_context *context, union argument *argument)
{
	return peal_memory_unregister(context, &argument->unregister_memory);
}

static int on_reserve(struct peal_context *context, union argument *argument)
{
	return peal_group_reserve(context, &argument->reserve);
}

static int on_connect(struct peal_context *context, union argument *argument)
{
	return peal_group_connect(context, &argument->connect);
}

static int on_abandon(struct peal_context *context, union argument *argument)
{
	return peal_group_abandon(context, &argument->abandon);
}

static int on_eventfd(struct peal_context *context, union argument *argument)
{
	int error = peal_check_eventfd(&argument->event);

	return error ? error : peal_set_event(context, argument->event.fd);
}

static int on_kick(struct peal_context *context, union argument *argument)
{
	peal_doorbell(context->card, PEAL_PCI_VECTOR_QUEUES);
	return 0;
}

/* One reply's worth. */
static int read_counters(struct peal_context *context, u32 first,
			 struct peal_read_counters_reply *values)
{
	struct peal_admin_command command = {
		.opcode = PEAL_ADMIN_READ_COUNTERS,
		.context = context->id,
		.u.counters.first = first,
	};
	struct peal_admin_reply reply;

	if (peal_admin(context->card, context->epoch, &command, &reply))
		return peal_card_error(context->card);
	if (reply.status != PEAL_STATUS_OK)
		return reply.status == PEAL_STATUS_BAD_BOUNDS ? -EINVAL : -EIO;
	if (reply.u.counters.count > PEAL_COUNTERS_PER_REPLY)
		return -EIO;
	*values = reply.u.counters;
	return 0;
}

static int on_counters(struct peal_context *context, union argument *argument)
{
	struct peal_ioctl_counters *counters = &argument->counters;
	u64 __user *values = u64_to_user_ptr(counters->values);
	struct peal_read_counters_reply part;
	u32 count = 0;
	int error = peal_check_counters(counters);

	if (error)
		return error;
	do {
		/* Cannot wrap: the card refuses a first beyond its total. */
		error = read_counters(context, counters->first + count, &part);
		if (error)
			return error;
		part.count = min(part.count, counters->capacity - count);
		if (copy_to_user(values + count, part.values, part.count * sizeof(u64)))
			return -EFAULT;
		count += part.count;
	} while (part.count && count < counters->capacity);
	counters->count = count;
	counters->total = part.total;
	return 0;
}

static const struct {
	unsigned int command;
	int (*carry_out)(struct peal_context *context, union argument *argument);
} ioctls[] = {
	{ PEAL_IOCTL_INFO, on_info },
	{ PEAL_IOCTL_REGISTER, on_register },
	{ PEAL_IOCTL_UNREGISTER, on_unregister },
	{ PEAL_IOCTL_RESERVE_GROUP, on_reserve },
	{ PEAL_IOCTL_CONNECT_GROUP, on_connect },
	{ PEAL_IOCTL_ABANDON_GROUP, on_abandon },
	{ PEAL_IOCTL_EVENTFD, on_eventfd },
	{ PEAL_IOCTL_KICK, on_kick },
	{ PEAL_IOCTL_COUNTERS, on_counters },
};

static int carry_out(struct peal_context *context, unsigned int nr, union argument *argument)
{
	struct peal_card *card = context->card;
	int error, token;

	if (!peal_card_enter(card, &token))
		return -ENODEV;
	mutex_lock(&context->lock);
	error = peal_context_check(context);
	if (!error)
		error = ioctls[nr].carry_out(context, argument);
	mutex_unlock(&context->lock);
	peal_card_leave(card, token);
	return error;
}

long peal_ioctl(struct file *file, unsigned int command, unsigned long pointer)
{
	void __user *user = (void __user *)pointer;
	unsigned int bytes = _IOC_SIZE(command);
	union argument argument = {};
	unsigned int nr;
	int error;

	for (nr = 0; nr < ARRAY_SIZE(ioctls); nr++) {
		if (ioctls[nr].command == command)
			break;
	}
	if (nr == ARRAY_SIZE(ioctls))
		return -ENOTTY;
	if (copy_from_user(&argument, user, bytes))
		return -EFAULT;
	error = peal_check_header(&argument.header, bytes);
	if (error)
		return error;
	/* The same bytes back: where a result cannot be written, nothing is to be done that it would name. */
	if (copy_to_user(user, &argument, bytes))
		return -EFAULT;
	error = carry_out(file->private_data, nr, &argument);
	if (error)
		return error;
	return copy_to_user(user, &argument, bytes) ? -EFAULT : 0;
}
