// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * The ioctls (abi/ioctl.h), whose structures grow at their end. Each is copied in once, checked, carried out, and copied out. All
 * memory of the process is touched outside of peal_card_enter() and without the context's lock (ask.c).
 */
#include <linux/fs.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "checks.h"
#include "peal.h"

union argument {
	struct peal_ioctl_header header;
	struct peal_ioctl_info info;
	struct peal_ioctl_ask ask;
	struct peal_ioctl_eventfd event;
	struct peal_ioctl_departed departed;
};

static int on_info(struct peal_file *file, union argument *argument)
{
	struct peal_context *context = peal_file_context(file);
	struct peal_ioctl_info *info = &argument->info;
	int error, token;

	if (IS_ERR(context))
		return PTR_ERR(context);
	error = peal_context_enter(context, &token);
	if (error)
		return error;
	info->window_bytes = context->card->window_bytes;
	info->doorbell_bytes = peal_doorbell_page_bytes(context->card);
	info->doorbell_offset = PEAL_PCI_BAR0_DOORBELL;
	info->doorbell_value = peal_doorbell_value(PEAL_PCI_VECTOR_QUEUES);
	peal_card_leave(context->card, token);
	return 0;
}

static int on_ask(struct peal_file *file, union argument *argument)
{
	return peal_ask_card(file, u64_to_user_ptr(argument->ask.command),
			     u64_to_user_ptr(argument->ask.reply));
}

static int on_eventfd(struct peal_file *file, union argument *argument)
{
	struct peal_context *context;
	int token;
	int error = peal_check_eventfd(&argument->event);

	if (error)
		return error;
	context = peal_file_context(file);
	if (IS_ERR(context))
		return PTR_ERR(context);
	error = peal_context_enter(context, &token);
	if (error)
		return error;
	error = peal_set_event(context, argument->event.fd);
	if (!error) {
		/* Who listens is told that the card dies or goes, and this one may have begun to behind that. */
		error = READ_ONCE(context->card->gone) ? -ENODEV : peal_context_check(context);
		if (error)
			peal_clear_event(context);
	}
	peal_card_leave(context->card, token);
	return error;
}

/* Takes neither lock nor context: a doorbell never waits for what is asked of the card. */
static int on_kick(struct peal_file *file, union argument *argument)
{
	int error, token;

	if (!peal_card_enter(file->card, &token))
		return -ENODEV;
	error = peal_file_check(file);
	if (!error)
		peal_doorbell(file->card, PEAL_PCI_VECTOR_QUEUES);
	peal_card_leave(file->card, token);
	return error;
}

static int on_departed(struct peal_file *file, union argument *argument)
{
	struct peal_context *context;
	int error = peal_check_departed(&argument->departed);
	int token;

	if (error)
		return error;
	context = peal_file_context(file);
	if (IS_ERR(context))
		return PTR_ERR(context);
	/* Of a card that is dead as well: what has left has left. */
	if (!peal_card_enter(context->card, &token))
		return -ENODEV;
	argument->departed.found = peal_next_departed(context, &argument->departed.key);
	peal_card_leave(context->card, token);
	return 0;
}

static const struct {
	unsigned int command; /* with the size that the structure has by now */
	unsigned int first_bytes; /* that it had at first */
	int (*carry_out)(struct peal_file *file, union argument *argument);
} ioctls[] = {
	{ PEAL_IOCTL_INFO, 24, on_info },
	{ PEAL_IOCTL_EVENTFD, 16, on_eventfd },
	{ PEAL_IOCTL_KICK, 8, on_kick },
	{ PEAL_IOCTL_ASK, 24, on_ask },
	{ PEAL_IOCTL_DEPARTED, 16, on_departed },
};

static bool same_but_for_size(unsigned int command, unsigned int known)
{
	return !((command ^ known) & ~(_IOC_SIZEMASK << _IOC_SIZESHIFT));
}

long peal_ioctl(struct file *file, unsigned int command, unsigned long pointer)
{
	void __user *user = (void __user *)pointer;
	unsigned int bytes = _IOC_SIZE(command);
	union argument argument;
	unsigned int known, nr;
	int error;

	/* An initializer would leave what lies behind the first member to the compiler. */
	memset(&argument, 0, sizeof(argument));

	for (nr = 0; nr < ARRAY_SIZE(ioctls); nr++) {
		if (same_but_for_size(command, ioctls[nr].command))
			break;
	}
	if (nr == ARRAY_SIZE(ioctls))
		return -ENOTTY;
	if (bytes < ioctls[nr].first_bytes)
		return -EINVAL;
	known = _IOC_SIZE(ioctls[nr].command);
	error = copy_struct_from_user(&argument, known, user, bytes);
	if (error)
		return error;
	error = peal_check_header(&argument.header, bytes);
	if (error)
		return error;
	known = min(known, bytes);
	/* The same bytes back: where a result cannot be written, nothing is to be done that it would name. */
	if (copy_to_user(user, &argument, known))
		return -EFAULT;
	error = ioctls[nr].carry_out(file->private_data, &argument);
	if (error)
		return error;
	return copy_to_user(user, &argument, known) ? -EFAULT : 0;
}
