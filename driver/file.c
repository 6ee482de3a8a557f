// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * An open file, and the context that it takes at its first use. Opening asks the card nothing (chardev.c); the first INFO,
 * ASK, EVENTFD or mmap does, and waits for the answer like any command. What fails then can be tried again: the file goes on
 * without a context, also where the card's answer comes after whoever asked was killed, for that context is the mailbox'
 * (admin.c), never the file's.
 *
 * A file is shared by threads, and after fork by processes. The first of them asks with file->lock held, the others wait
 * for that lock and find what it got. A context that the file has once, it has until it is closed.
 */
#include <linux/slab.h>

#include "peal.h"

struct peal_file *peal_file_make(struct peal_card *card, struct address_space *mapping)
{
	struct peal_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);

	if (!file)
		return NULL;
	mutex_init(&file->lock);
	file->mapping = mapping;
	file->card = card;
	kref_get(&card->references);
	return file;
}

/* Nobody uses the file any more, nor are there mappings of it. */
void peal_file_end(struct peal_file *file)
{
	if (file->context)
		peal_context_close(file->context);
	peal_card_put(file->card);
	mutex_destroy(&file->lock);
	kfree(file);
}

static struct peal_context *taken(const struct peal_file *file)
{
	/* What is seen is complete (take()). */
	return smp_load_acquire(&file->context);
}

static struct peal_context *take(struct peal_file *file)
{
	struct peal_context *context = file->context;

	lockdep_assert_held(&file->lock);
	if (context)
		return context;
	context = peal_context_open(file->card, file->mapping);
	if (!IS_ERR(context))
		/* After all that makes it one; taken() is the other side. */
		smp_store_release(&file->context, context);
	return context;
}

/* Between peal_card_enter() and peal_card_leave(), so that removal finds the context on the card's list, or none is made. */
static struct peal_context *first_use(struct peal_file *file)
{
	struct peal_context *context;
	int error = mutex_lock_killable(&file->lock);

	if (error)
		return ERR_PTR(error);
	context = take(file);
	mutex_unlock(&file->lock);
	return context;
}

/* Waits for the card at the file's first use: nothing may be held that others wait for. */
struct peal_context *peal_file_context(struct peal_file *file)
{
	struct peal_context *context = taken(file);
	int token;

	if (context)
		return context;
	if (!peal_card_enter(file->card, &token))
		return ERR_PTR(-ENODEV);
	context = first_use(file);
	peal_card_leave(file->card, token);
	return context;
}

/* For who needs no context, and does not wait for one. Without any lock. */
int peal_file_check(const struct peal_file *file)
{
	const struct peal_context *context = taken(file);

	if (context)
		return peal_context_check(context);
	return READ_ONCE(file->card->dead) ? -EIO : 0;
}
