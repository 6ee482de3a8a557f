// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * A card's life, as everybody in the driver sees it: entering and leaving, its epoch, its death and who is told, and what is left to
 * housekeeping. Nothing here asks the card anything, or waits for it.
 */
#include <linux/eventfd.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "peal.h"

bool peal_card_enter(struct peal_card *card, int *token)
{
	*token = srcu_read_lock(&card->users);
	if (!READ_ONCE(card->gone))
		return true;
	srcu_read_unlock(&card->users, *token);
	return false;
}

void peal_card_leave(struct peal_card *card, int token)
{
	srcu_read_unlock(&card->users, token);
}

int peal_card_error(struct peal_card *card)
{
	return READ_ONCE(card->gone) ? -ENODEV : -EIO;
}

static void card_free(struct kref *references)
{
	struct peal_card *card = container_of(references, struct peal_card, references);

	cleanup_srcu_struct(&card->users);
	kfree(card);
}

void peal_card_put(struct peal_card *card)
{
	kref_put(&card->references, card_free);
}

static void context_release(struct kref *references)
{
	struct peal_context *context = container_of(references, struct peal_context, references);

	__free_page(context->departures);
	__free_page(context->scratch);
	mutex_destroy(&context->lock);
	kfree(context);
}

void peal_context_put(struct peal_context *context)
{
	kref_put(&context->references, context_release);
}

/* Without any lock: poll(2) and the doorbell want it. */
u64 peal_epoch(struct peal_card *card)
{
	return atomic64_read_acquire(&card->epoch);
}

/* The card is dead or gone: let everybody look, whether they sleep or not. */
void peal_wake_all(struct peal_card *card)
{
	struct peal_context *context;
	unsigned long flags;

	wake_up_all(&card->mailbox_wait);
	wake_up_all(&card->state_wait);
	spin_lock_irqsave(&card->events_lock, flags);
	list_for_each_entry(context, &card->listeners, listen)
		eventfd_signal(context->event, 1);
	spin_unlock_irqrestore(&card->events_lock, flags);
}

void peal_card_died(struct peal_card *card, const char *why)
{
	if (READ_ONCE(card->gone) || xchg(&card->dead, true))
		return;
	dev_err(&card->pdev->dev, "the card is dead: %s\n", why);
	peal_wake_all(card);
}

/* Safe in interrupts. */
void peal_housekeeping_now(struct peal_card *card)
{
	if (!READ_ONCE(card->gone) && !READ_ONCE(card->asleep))
		mod_delayed_work(system_long_wq, &card->housekeeping, 0);
}

/* The card does not answer for it now: housekeeping asks again, or a reset or removal ends it. */
void peal_context_give_up(struct peal_context *context)
{
	struct peal_card *card = context->card;

	spin_lock(&card->closing_lock);
	list_add_tail(&context->link, &card->closing);
	spin_unlock(&card->closing_lock);
}

/*
 * Before anything is done for a context, and without any lock. After a reset this fails for all older contexts, so that
 * whoever then has taken their locks once may free what they had.
 */
int peal_context_check(const struct peal_context *context)
{
	struct peal_card *card = context->card;

	if (READ_ONCE(card->dead) || context->epoch != peal_epoch(card))
		return -EIO;
	return 0;
}

int peal_context_enter(struct peal_context *context, int *token)
{
	int error;

	if (!peal_card_enter(context->card, token))
		return -ENODEV;
	error = peal_context_check(context);
	if (error)
		peal_card_leave(context->card, *token);
	return error;
}

/* No user memory is touched, nor unpinned, from here to peal_context_end(): a page of it may be as late as its owner likes. */
int peal_context_begin(struct peal_context *context, int *token)
{
	struct peal_card *card = context->card;
	int error;

	if (!peal_card_enter(card, token))
		return -ENODEV;
	error = mutex_lock_killable(&context->lock);
	if (error)
		goto leave;
	error = peal_context_check(context);
	if (error)
		goto unlock;
	return 0;

unlock:
	mutex_unlock(&context->lock);
leave:
	peal_card_leave(card, *token);
	return error;
}

void peal_context_end(struct peal_context *context, int token)
{
	mutex_unlock(&context->lock);
	peal_card_leave(context->card, token);
}
