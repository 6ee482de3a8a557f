// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * What is looked at a few times a second: does the card still beat, has it let go of channels, can closed contexts be
 * buried. A card that fell silent and beats again is reset; what belonged to the old epoch stays lost, new opens work.
 */
#include <linux/jiffies.h>
#include <linux/moduleparam.h>

#include "peal.h"

static unsigned int dead_ms = 5000;
module_param(dead_ms, uint, 0644);
MODULE_PARM_DESC(dead_ms, "A card that has not beaten for this long is dead (5000)");

#define LOOK_EVERY msecs_to_jiffies(250)
#define RETRY_CLOSING msecs_to_jiffies(10)

/* True when it has beaten since we looked last. */
static bool look_at_heart(struct peal_card *card)
{
	u64 beats = READ_ONCE(card->card_page->heartbeat.beats);
	unsigned long now = jiffies;
	/* A guest that was stopped has not listened to the silence. */
	unsigned long listened = min(now - card->looked, 2 * LOOK_EVERY);
	bool beaten = beats != card->beats;

	card->looked = now;
	card->beats = beats;
	card->silence = beaten ? 0 : card->silence + listened;
	return beaten;
}

/* The card has acknowledged a reset, but is not in use again: nobody has been given anything of the new epoch. */
void peal_epoch_ended(struct peal_card *card)
{
	/* A page fault that still saw the old epoch has put its page in place when this returns. */
	synchronize_srcu(&card->users);
	peal_unmap_windows(card);
	peal_forget_epochs(card);
}

static void revive(struct peal_card *card)
{
	if (!peal_same_card(card) || peal_reset(card, peal_command_timeout_ms))
		return;
	peal_epoch_ended(card);
	WRITE_ONCE(card->dead, false);
	dev_info(&card->pdev->dev, "the card is back\n");
}

void peal_housekeeping(struct work_struct *work)
{
	struct peal_card *card = container_of(work, struct peal_card, housekeeping.work);
	unsigned long next = LOOK_EVERY;
	bool beaten = look_at_heart(card);

	if (!READ_ONCE(card->dead) && card->silence > msecs_to_jiffies(dead_ms))
		peal_card_died(card, "no heartbeat");
	if (READ_ONCE(card->dead)) {
		if (beaten)
			revive(card);
	} else {
		if (READ_ONCE(card->card_page->channels_released) !=
		    READ_ONCE(card->channels_reaped))
			peal_reap_channels(card);
		peal_retry_closing(card);
		if (!peal_settle(card) || peal_has_closing(card))
			next = RETRY_CLOSING;
	}
	/* Not after removal has begun: it cancels this once. */
	if (!READ_ONCE(card->gone) && !READ_ONCE(card->asleep))
		queue_delayed_work(system_long_wq, &card->housekeeping, next);
}
