// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * A context is what an open file has of the card (file.c): a window of the BAR, memory keys and groups of its own. When the
 * file is closed the card is told; as long as it answers BUSY (a DMA is under way) or does not answer, the context waits in card->closing, with
 * its memory pinned.
 *
 * Who frees a context: while it is on card->contexts, its file; while it is on card->closing, housekeeping; while its OPEN or
 * CLOSE is unanswered, the mailbox. Removal owns both lists while it holds contexts_lock. A file that is closed
 * during removal looks, under that lock, whether removal has been here already: if not, it leaves the context to it, since the
 * card may still write into its pages; if so, nothing but the structure is left, and the file frees that.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "peal.h"

/* Never waits: what of its memory is still to be unpinned keeps the structure until then. */
static void context_free(struct peal_context *context)
{
	peal_memory_free_all(context);
	peal_context_put(context);
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
	context->departures = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!context->departures) {
		__free_page(context->scratch);
		kfree(context);
		return NULL;
	}
	kref_init(&context->references);
	INIT_LIST_HEAD(&context->link);
	INIT_LIST_HEAD(&context->memory);
	INIT_LIST_HEAD(&context->departed);
	INIT_LIST_HEAD(&context->let_go);
	INIT_WORK(&context->unpinning, peal_unpin_all);
	init_waitqueue_head(&context->unpinned_wait);
	spin_lock_init(&context->departing);
	INIT_LIST_HEAD(&context->listen);
	mutex_init(&context->lock);
	xa_init(&context->keys);
	context->card = card;
	return context;
}

static bool window_is_sane(struct peal_card *card, const struct peal_open_context_reply *reply)
{
	return reply->window_bytes == card->window_bytes &&
	       IS_ALIGNED(reply->window_offset, PAGE_SIZE) &&
	       reply->window_offset >= card->windows_offset &&
	       reply->window_offset <= card->bar_bytes - card->window_bytes;
}

static bool let_go(const struct peal_admin_reply *reply)
{
	return reply->status == PEAL_STATUS_OK || reply->status == PEAL_STATUS_CLOSED;
}

/* The answer to an OPEN or CLOSE whose caller had to go. With card->mailbox held. */
static void answered_late(struct peal_card *card, const struct peal_late *late,
			  const struct peal_admin_reply *reply)
{
	struct peal_context *context = late->context;
	bool opened = reply->opcode == PEAL_ADMIN_OPEN_CONTEXT;

	lockdep_assert_held(&card->mailbox);
	if (opened && reply->status == PEAL_STATUS_OK) {
		context->id = reply->u.open.context;
		peal_context_give_up(context);
	} else if (opened || let_go(reply)) {
		context_free(context);
	} else {
		peal_context_give_up(context);
	}
}

/* On -ETIMEDOUT the mailbox has the context. */
static noinline_for_stack int tell_open(struct peal_context *context)
{
	struct peal_card *card = context->card;
	struct peal_late late = { .answered = answered_late, .context = context };
	struct peal_admin_command command;
	struct peal_admin_reply reply;
	int error;

	peal_command_init(&command, PEAL_ADMIN_OPEN_CONTEXT, 0);
	context->epoch = peal_epoch(card);
	error = peal_admin(card, context->epoch, &command, &reply, &late);
	if (error)
		return error;
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

struct peal_context *peal_context_open(struct peal_card *card, struct address_space *mapping)
{
	struct peal_context *context = context_make(card);
	int error;

	if (!context)
		return ERR_PTR(-ENOMEM);
	context->mapping = mapping;
	error = tell_open(context);
	if (error == -ETIMEDOUT)
		return ERR_PTR(peal_card_error(card));
	if (error) {
		context_free(context);
		return ERR_PTR(error);
	}
	mutex_lock(&card->contexts_lock);
	list_add_tail(&context->link, &card->contexts);
	mutex_unlock(&card->contexts_lock);
	return context;
}

/* False: the card still refers to the context, or may do so. True: it is freed, or the mailbox has it. */
static bool bury(struct peal_context *context)
{
	struct peal_card *card = context->card;
	struct peal_late late = { .answered = answered_late, .context = context };
	struct peal_admin_command command;
	struct peal_admin_reply reply;
	int error;

	if (context->epoch == peal_epoch(card)) {
		peal_command_init(&command, PEAL_ADMIN_CLOSE_CONTEXT, context->id);
		error = peal_admin(card, context->epoch, &command, &reply, &late);
		if (error == -ETIMEDOUT)
			return true;
		if (error || !let_go(&reply))
			return false;
	}
	context_free(context);
	return true;
}

/* Removal has begun. */
static void close_gone(struct peal_context *context)
{
	struct peal_card *card = context->card;
	bool mine;

	mutex_lock(&card->contexts_lock);
	mine = list_empty(&context->link);
	if (!mine) {
		list_del_init(&context->link);
		peal_context_give_up(context);
	}
	mutex_unlock(&card->contexts_lock);
	if (mine)
		context_free(context);
}

/* Nobody uses the context any more: its file is closed and its mappings are gone. */
void peal_context_close(struct peal_context *context)
{
	struct peal_card *card = context->card;
	int token;

	peal_clear_event(context);
	if (!peal_card_enter(card, &token)) {
		close_gone(context);
		return;
	}
	mutex_lock(&card->contexts_lock);
	list_del_init(&context->link);
	mutex_unlock(&card->contexts_lock);
	if (!bury(context)) {
		peal_context_give_up(context);
		peal_housekeeping_now(card);
	}
	peal_card_leave(card, token);
}

bool peal_has_closing(struct peal_card *card)
{
	bool has;

	spin_lock(&card->closing_lock);
	has = !list_empty(&card->closing);
	spin_unlock(&card->closing_lock);
	return has;
}

static void take_closing(struct peal_card *card, struct list_head *list)
{
	spin_lock(&card->closing_lock);
	list_splice_init(&card->closing, list);
	spin_unlock(&card->closing_lock);
}

void peal_retry_closing(struct peal_card *card)
{
	struct peal_context *context, *next;
	LIST_HEAD(waiting);

	take_closing(card, &waiting);
	list_for_each_entry_safe(context, next, &waiting, link) {
		list_del_init(&context->link);
		if (!bury(context))
			peal_context_give_up(context);
		/* A card that does not answer is waited for once, not for each of them: its heart is to be listened to. */
		if (READ_ONCE(card->unanswered.opcode))
			break;
	}
	spin_lock(&card->closing_lock);
	list_splice(&waiting, &card->closing);
	spin_unlock(&card->closing_lock);
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

/*
 * The card is being removed and nobody is inside any more; files may still be closed. Returns how many pages had to be
 * leaked. Afterwards a context has neither memory nor a place on a list.
 */
unsigned long peal_forget_all(struct peal_card *card, bool card_let_go)
{
	struct peal_context *context, *next;
	unsigned long leaked = 0;
	LIST_HEAD(closing);

	mutex_lock(&card->contexts_lock);
	list_for_each_entry_safe(context, next, &card->contexts, link) {
		list_del_init(&context->link);
		if (card_let_go)
			peal_memory_free_all(context);
		else
			leaked += peal_memory_leak_all(context);
	}
	take_closing(card, &closing);
	mutex_unlock(&card->contexts_lock);
	list_for_each_entry_safe(context, next, &closing, link) {
		list_del_init(&context->link);
		if (!card_let_go)
			leaked += peal_memory_leak_all(context);
		context_free(context);
	}
	if (card_let_go)
		peal_channels_free_epochs(card, peal_epoch(card));
	else
		leaked += peal_channels_leak_all(card);
	return leaked;
}
