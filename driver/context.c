// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * A context is an open file: a window of the BAR, memory keys and groups of its own. When the file is closed the card is
 * told; as long as it answers BUSY (a DMA is under way) or does not answer, the context waits in card->closing, with
 * its memory pinned.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "peal.h"

static void context_free(struct peal_context *context)
{
	struct peal_card *card = context->card;

	peal_memory_free_all(context);
	__free_page(context->scratch);
	mutex_destroy(&context->lock);
	kfree(context);
	put_device(&card->dev);
}

static struct peal_context *context_make(struct peal_card *card)
{
	struct peal_context *context = kzalloc(sizeof(*context), GFP_KERNEL_ACCOUNT);

	if (!context)
		return NULL;
	context->scratch = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!context->scratch) {
		kfree(context);
		return NULL;
	}
	INIT_LIST_HEAD(&context->link);
	INIT_LIST_HEAD(&context->memory);
	INIT_LIST_HEAD(&context->listen);
	mutex_init(&context->lock);
	xa_init(&context->keys);
	context->card = card;
	get_device(&card->dev);
	return context;
}

static bool window_is_sane(struct peal_card *card, const struct peal_open_context_reply *reply)
{
	return reply->window_bytes == card->window_bytes &&
	       IS_ALIGNED(reply->window_offset, PAGE_SIZE) &&
	       reply->window_offset >= card->windows_offset &&
	       reply->window_offset <= card->bar_bytes - card->window_bytes;
}

static noinline_for_stack int tell_open(struct peal_context *context)
{
	struct peal_card *card = context->card;
	struct peal_admin_command command = { .opcode = PEAL_ADMIN_OPEN_CONTEXT };
	struct peal_admin_reply reply;
	int error;

	context->epoch = peal_epoch(card);
	error = peal_admin(card, context->epoch, &command, &reply);
	if (error)
		return peal_card_error(card);
	if (reply.status != PEAL_STATUS_OK)
		return reply.status == PEAL_STATUS_NO_RESOURCES ? -EBUSY : -EIO;
	if (!window_is_sane(card, &reply.u.open)) {
		peal_card_died(card, "a window lies outside the BAR");
		return -EIO;
	}
	context->id = reply.u.open.context;
	context->window = reply.u.open.window_offset;
	return 0;
}

struct peal_context *peal_context_open(struct peal_card *card)
{
	struct peal_context *context = context_make(card);
	int error;

	if (!context)
		return ERR_PTR(-ENOMEM);
	error = tell_open(context);
	if (error) {
		context_free(context);
		return ERR_PTR(error);
	}
	mutex_lock(&card->contexts_lock);
	list_add_tail(&context->link, &card->contexts);
	mutex_unlock(&card->contexts_lock);
	return context;
}

/*
 * Before anything is done for a context. After a reset this fails for all older contexts, so that whoever then has
 * taken their locks once may free what they had.
 */
int peal_context_check(struct peal_context *context)
{
	struct peal_card *card = context->card;

	if (READ_ONCE(card->dead) || context->epoch != peal_epoch(card))
		return -EIO;
	return 0;
}

/* True when the card does not refer to the context any more, and so it is freed. */
static bool bury(struct peal_context *context)
{
	struct peal_card *card = context->card;
	struct peal_admin_command command = {
		.opcode = PEAL_ADMIN_CLOSE_CONTEXT,
		.context = context->id,
	};
	struct peal_admin_reply reply;

	if (context->epoch == peal_epoch(card)) {
		if (peal_admin(card, context->epoch, &command, &reply))
			return false;
		if (reply.status != PEAL_STATUS_OK && reply.status != PEAL_STATUS_CLOSED)
			return false;
	}
	context_free(context);
	return true;
}

/* Nobody uses the context any more: its file is closed and its mappings are gone. */
void peal_context_close(struct peal_context *context)
{
	struct peal_card *card = context->card;
	int token;

	peal_clear_event(context);
	if (!peal_card_enter(card, &token)) {
		/* Removal has taken or leaked its memory. */
		context_free(context);
		return;
	}
	mutex_lock(&card->contexts_lock);
	list_del_init(&context->link);
	mutex_unlock(&card->contexts_lock);
	if (!bury(context)) {
		mutex_lock(&card->contexts_lock);
		list_add_tail(&context->link, &card->closing);
		mutex_unlock(&card->contexts_lock);
		peal_housekeeping_now(card);
	}
	peal_card_leave(card, token);
}

bool peal_has_closing(struct peal_card *card)
{
	bool has;

	mutex_lock(&card->contexts_lock);
	has = !list_empty(&card->closing);
	mutex_unlock(&card->contexts_lock);
	return has;
}

void peal_retry_closing(struct peal_card *card)
{
	struct peal_context *context, *next;
	LIST_HEAD(waiting);

	mutex_lock(&card->contexts_lock);
	list_splice_init(&card->closing, &waiting);
	mutex_unlock(&card->contexts_lock);
	list_for_each_entry_safe(context, next, &waiting, link) {
		list_del_init(&context->link);
		if (bury(context))
			continue;
		mutex_lock(&card->contexts_lock);
		list_add_tail(&context->link, &card->closing);
		mutex_unlock(&card->contexts_lock);
	}
}

/*
 * The card has acknowledged a reset. Older contexts that are still open lose their memory now; those in card->closing
 * are buried next time. Channels come last: by then no older context is in the middle of a RESERVE_GROUP.
 */
void peal_forget_epochs(struct peal_card *card)
{
	u64 epoch = peal_epoch(card);
	struct peal_context *context;

	mutex_lock(&card->contexts_lock);
	list_for_each_entry(context, &card->contexts, link) {
		if (context->epoch == epoch)
			continue;
		mutex_lock(&context->lock);
		peal_memory_free_all(context);
		mutex_unlock(&context->lock);
	}
	mutex_unlock(&card->contexts_lock);
	peal_channels_free_epochs(card, epoch);
}

/* The card is being removed and nobody is inside any more. Returns how many pages had to be leaked. */
unsigned long peal_forget_all(struct peal_card *card, bool let_go)
{
	struct peal_context *context, *next;
	unsigned long leaked = 0;

	list_for_each_entry_safe(context, next, &card->contexts, link) {
		list_del_init(&context->link);
		if (let_go)
			peal_memory_free_all(context);
		else
			leaked += peal_memory_leak_all(context);
	}
	list_for_each_entry_safe(context, next, &card->closing, link) {
		list_del_init(&context->link);
		if (!let_go)
			leaked += peal_memory_leak_all(context);
		context_free(context);
	}
	if (let_go)
		peal_channels_free_epochs(card, card->epoch);
	else
		leaked += peal_channels_leak_all(card);
	return leaked;
}
