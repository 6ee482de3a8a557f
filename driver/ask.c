// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * The administrative commands of a process (PEAL_IOCTL_ASK). Each goes to the card as it came, in the name of the file's
 * context. The driver looks inside only where memory must be pinned (memory.c) or the card is to have some of the kernel's
 * (group.c); what concerns the file itself, or the card as a whole, is not a process' to ask for.
 *
 * A command is copied in once, and all memory of the process is touched, and pinned, before anything is held: its pages may
 * be as late as the process likes (userfaultfd), and neither removal nor another thread waits for them. Nor is anything held
 * when at the end it is waited for what the command unpins (unpin.c).
 */
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "checks.h"
#include "peal.h"

static const struct command {
	bool allowed; /* for a process */
	/* Takes the process' memory. Nothing is held. */
	int (*pin)(struct peal_ask *ask);
	/* Writes into the command what the card is to read. With context->lock. */
	int (*before)(struct peal_ask *ask);
	/*
	 * Takes note of what became of it, which may be that the card never heard of it (peal_admin()). With context->lock,
	 * where there is something to note.
	 */
	int (*after)(struct peal_ask *ask, int error);
} commands[PEAL_ADMIN_OPCODE_COUNT] = {
	[PEAL_ADMIN_OPEN_CONTEXT] = { .allowed = false },
	[PEAL_ADMIN_CLOSE_CONTEXT] = { .allowed = false },
	[PEAL_ADMIN_REGISTER_MEMORY] = {
		.allowed = true,
		.pin = peal_register_pin,
		.before = peal_register_before,
		.after = peal_register_after,
	},
	[PEAL_ADMIN_UNREGISTER_MEMORY] = { .allowed = true, .after = peal_unregister_after },
	[PEAL_ADMIN_RESERVE_GROUP] = {
		.allowed = true,
		.before = peal_reserve_before,
		.after = peal_reserve_after,
	},
	[PEAL_ADMIN_CONNECT_GROUP] = { .allowed = true },
	[PEAL_ADMIN_ABANDON_GROUP] = { .allowed = true },
	[PEAL_ADMIN_ADD_PEERS] = { .allowed = true },
	[PEAL_ADMIN_READ_COUNTERS] = { .allowed = true },
	[PEAL_ADMIN_REAP_CHANNELS] = { .allowed = false },
	[PEAL_ADMIN_COMMIT_PROGRAM] = { .allowed = true },
	[PEAL_ADMIN_FREE_PROGRAM] = { .allowed = true },
};

static int tell(struct peal_ask *ask, const struct command *command)
{
	struct peal_context *context = ask->context;
	int error, token;

	error = peal_context_begin(context, &token);
	if (error)
		return command->after ? command->after(ask, error) : error;
	ask->command.context = context->id;
	error = command->before ? command->before(ask) : 0;
	if (!error)
		error = peal_admin(context->card, context->epoch, &ask->command, &ask->reply,
				   &ask->late);
	if (command->after)
		error = command->after(ask, error);
	peal_context_end(context, token);
	return error == -ETIMEDOUT ? peal_card_error(context->card) : error;
}

static int copy_in(struct peal_ask *ask, const void __user *command, void __user *reply)
{
	int error;

	if (copy_from_user(&ask->command, command, sizeof(ask->command)))
		return -EFAULT;
	error = peal_check_command(&ask->command);
	if (error)
		return error;
	if (!commands[array_index_nospec(ask->command.opcode, PEAL_ADMIN_OPCODE_COUNT)].allowed)
		return -EPERM;
	/* The same bytes back: where the reply cannot be written, nothing is to be done that it would tell of. */
	if (copy_from_user(&ask->reply, reply, sizeof(ask->reply)) ||
	    copy_to_user(reply, &ask->reply, sizeof(ask->reply)))
		return -EFAULT;
	return 0;
}

noinline_for_stack int peal_ask_card(struct peal_file *file, const void __user *command,
				     void __user *reply)
{
	struct peal_ask ask = {};
	const struct command *row;
	int error;

	error = copy_in(&ask, command, reply);
	if (error)
		return error;
	ask.context = peal_file_context(file);
	if (IS_ERR(ask.context))
		return PTR_ERR(ask.context);
	row = &commands[array_index_nospec(ask.command.opcode, PEAL_ADMIN_OPCODE_COUNT)];
	error = row->pin ? row->pin(&ask) : 0;
	if (!error)
		error = tell(&ask, row);
	if (ask.unpins)
		peal_wait_unpinned(ask.context);
	if (error)
		return error;
	ask.reply.tag = 0; /* was the driver's own */
	return copy_to_user(reply, &ask.reply, sizeof(ask.reply)) ? -EFAULT : 0;
}
