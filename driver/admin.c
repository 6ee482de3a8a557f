// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * The mailbox of the BAR: one command and one reply at a time (abi/admin.h), and the reset that starts an epoch.
 * Nobody waits for ever: a card that does not answer in time is dead, and only a reset that it
 * acknowledges brings it back.
 */
#include <linux/jiffies.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>

#include "peal.h"

unsigned int peal_command_timeout_ms = 10000;
module_param_named(command_timeout_ms, peal_command_timeout_ms, uint, 0644);
MODULE_PARM_DESC(command_timeout_ms, "A card that takes longer for a command is dead (10000)");

/* An interrupt may be lost with the emulator's process; the memory tells the truth. */
#define LOOK_AGAIN msecs_to_jiffies(20)

u64 peal_epoch(struct peal_card *card)
{
	u64 epoch;

	mutex_lock(&card->mailbox);
	epoch = card->epoch;
	mutex_unlock(&card->mailbox);
	return epoch;
}

static bool answered(struct peal_card *card)
{
	/* The reply is complete before its serial (the card's release). */
	return smp_load_acquire(&card->card_page->reply_serial) == card->serial;
}

static int wait_for_reply(struct peal_card *card)
{
	unsigned long end = jiffies + msecs_to_jiffies(peal_command_timeout_ms);

	while (!answered(card)) {
		if (READ_ONCE(card->gone) || READ_ONCE(card->dead))
			return -ETIMEDOUT;
		if (time_after(jiffies, end)) {
			peal_card_died(card, "a command was not answered");
			return -ETIMEDOUT;
		}
		wait_event_timeout(card->mailbox_wait,
				   answered(card) || READ_ONCE(card->gone) || READ_ONCE(card->dead),
				   LOOK_AGAIN);
	}
	return 0;
}

static int check_reply(struct peal_card *card, const struct peal_admin_command *command,
		       const struct peal_admin_reply *reply)
{
	if (reply->version == PEAL_ABI_VERSION && reply->bytes == PEAL_ADMIN_BYTES &&
	    reply->opcode == command->opcode && reply->tag == command->tag &&
	    reply->status < PEAL_STATUS_COUNT)
		return 0;
	peal_card_died(card, "a reply makes no sense");
	return -ETIMEDOUT;
}

/* Carries out one command; reply->status is the card's verdict. Sleeps, for command_timeout_ms at most. */
int peal_admin(struct peal_card *card, u64 epoch, struct peal_admin_command *command,
	       struct peal_admin_reply *reply)
{
	struct peal_pci_host_page *host = card->host_page;
	int error;

	mutex_lock(&card->mailbox);
	if (READ_ONCE(card->gone) || READ_ONCE(card->dead) || epoch != card->epoch) {
		error = peal_card_error(card);
		goto out;
	}
	card->serial++;
	command->version = PEAL_ABI_VERSION;
	command->bytes = PEAL_ADMIN_BYTES;
	command->tag = card->serial;
	memcpy(&host->command, command, sizeof(*command));
	/* The card reads the command after its serial. */
	smp_store_release(&host->command_serial, card->serial);
	peal_doorbell(card, PEAL_PCI_VECTOR_ADMIN);

	error = wait_for_reply(card);
	if (error)
		goto out;
	memcpy(reply, &card->card_page->reply, sizeof(*reply));
	error = check_reply(card, command, reply);
out:
	mutex_unlock(&card->mailbox);
	return error;
}

static bool acknowledged(struct peal_card *card, u32 epoch)
{
	/* What the card let go of, it let go of before. */
	return smp_load_acquire(&card->card_page->reset_epoch) == epoch;
}

/*
 * Asks the card to let go of everything: contexts, memory, channels. Works on dead cards (they may have come back) and
 * on those about to go. On success the card holds nothing of an earlier epoch.
 */
int peal_reset(struct peal_card *card, unsigned int timeout_ms)
{
	unsigned long end = jiffies + msecs_to_jiffies(timeout_ms);
	int error = 0;
	u32 epoch;

	mutex_lock(&card->mailbox);
	epoch = READ_ONCE(card->card_page->reset_epoch) + 1;
	if (!epoch)
		epoch = 1;
	WRITE_ONCE(card->host_page->reset_epoch, epoch);
	peal_doorbell(card, PEAL_PCI_VECTOR_ADMIN);
	while (!acknowledged(card, epoch)) {
		if (time_after(jiffies, end)) {
			error = -ETIMEDOUT;
			goto out;
		}
		wait_event_timeout(card->mailbox_wait, acknowledged(card, epoch), LOOK_AGAIN);
	}
	card->epoch++;
	card->serial = READ_ONCE(card->host_page->command_serial);
	WRITE_ONCE(card->channels_reaped, READ_ONCE(card->card_page->channels_released));
out:
	mutex_unlock(&card->mailbox);
	return error;
}
