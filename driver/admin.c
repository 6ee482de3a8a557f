// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * The mailbox of the BAR: one command and one reply at a time (abi/admin.h), and the reset that starts an epoch.
 * Nobody waits for ever: a card that does not answer in time is dead, and only a reset that it
 * acknowledges brings it back.
 *
 * Nor has a process that is killed to wait. It leaves its command behind in card->unanswered, together with what the
 * answer is about; whoever comes next takes the answer first, and passes it to the function that was left there: it
 * sees to what the command could have created or ended.
 */
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include <asm/barrier.h>

#include "peal.h"

unsigned int peal_command_timeout_ms = 10000;
module_param_named(command_timeout_ms, peal_command_timeout_ms, uint, 0644);
MODULE_PARM_DESC(command_timeout_ms, "A card that takes longer for a command is dead (10000)");

/* An interrupt may be lost with the emulator's process; the memory tells the truth. */
#define LOOK_AGAIN msecs_to_jiffies(20)
/*
 * Who wait only this long for the card, and leave the rest to housekeeping: a process that ends, for it has lost its signals; and
 * housekeeping itself, for it has the heart to listen to.
 */
#define HURRIED (PF_EXITING | PF_WQ_WORKER)
#define HURRIED_PATIENCE msecs_to_jiffies(200)

void peal_command_init(struct peal_admin_command *command, u16 opcode, u32 context)
{
	/* All of it, the union's tail too: it goes to the card. */
	memset(command, 0, sizeof(*command));
	command->version = PEAL_ABI_VERSION;
	command->bytes = PEAL_ADMIN_BYTES;
	command->opcode = opcode;
	command->context = context;
}

static bool answered(struct peal_card *card)
{
	/* The reply is complete before its serial (the card's release). */
	return virt_load_acquire(&card->card_page->reply_serial) == card->serial;
}

static bool impatient(unsigned long since)
{
	return fatal_signal_pending(current) ||
	       (current->flags & HURRIED && time_after(jiffies, since + HURRIED_PATIENCE));
}

/* A lock that is held while somebody waits for the card. -EINTR: not taken. */
int peal_lock_impatiently(struct mutex *lock)
{
	if (current->flags & HURRIED)
		return mutex_trylock(lock) ? 0 : -EINTR;
	return mutex_lock_killable(lock) ? -EINTR : 0;
}

/* -EINTR: who waits is to go. -ETIMEDOUT: the card is dead or gone. */
static int wait_for_reply(struct peal_card *card)
{
	unsigned long since = jiffies;

	while (!answered(card)) {
		if (READ_ONCE(card->gone) || READ_ONCE(card->dead))
			return -ETIMEDOUT;
		if (time_after(jiffies, card->command_end)) {
			peal_card_died(card, "a command was not answered");
			return -ETIMEDOUT;
		}
		if (impatient(since))
			return -EINTR;
		wait_event_killable_timeout(card->mailbox_wait,
					    answered(card) || READ_ONCE(card->gone) ||
						    READ_ONCE(card->dead),
					    LOOK_AGAIN);
	}
	return 0;
}

static int take_reply(struct peal_card *card, u16 opcode, struct peal_admin_reply *reply)
{
	memcpy(reply, &card->card_page->reply, sizeof(*reply));
	if (reply->version == PEAL_ABI_VERSION && reply->bytes == PEAL_ADMIN_BYTES &&
	    reply->opcode == opcode && reply->tag == card->serial &&
	    reply->status < PEAL_STATUS_COUNT)
		return 0;
	peal_card_died(card, "a reply makes no sense");
	return -ETIMEDOUT;
}

static noinline_for_stack int settle(struct peal_card *card)
{
	struct peal_unanswered unanswered = card->unanswered;
	struct peal_admin_reply reply;
	int error;

	lockdep_assert_held(&card->mailbox);
	if (!unanswered.opcode)
		return 0;
	error = wait_for_reply(card);
	if (!error)
		error = take_reply(card, unanswered.opcode, &reply);
	if (error)
		return error;
	memset(&card->unanswered, 0, sizeof(card->unanswered));
	if (unanswered.late.answered)
		unanswered.late.answered(card, &unanswered.late, &reply);
	return 0;
}

static void give(struct peal_card *card, struct peal_admin_command *command)
{
	struct peal_pci_host_page *host = card->host_page;

	lockdep_assert_held(&card->mailbox);
	card->serial++;
	card->command_end = jiffies + msecs_to_jiffies(peal_command_timeout_ms);
	command->tag = card->serial;
	memcpy(&host->command, command, sizeof(*command));
	/* The card reads the command after its serial. */
	virt_store_release(&host->command_serial, card->serial);
	peal_doorbell(card, PEAL_PCI_VECTOR_ADMIN);
}

/*
 * Carries out one command; reply->status is the card's verdict. Sleeps, for command_timeout_ms at most.
 * -EINTR, -EIO, -ENODEV: the card has not heard of it. -ETIMEDOUT: it has, and never said what became of it; the context
 * of an OPEN_CONTEXT or CLOSE_CONTEXT then belongs to the card's mailbox, its caller forgets it.
 */
int peal_admin(struct peal_card *card, u64 epoch, struct peal_admin_command *command,
	       struct peal_admin_reply *reply, const struct peal_late *late)
{
	int error = peal_lock_impatiently(&card->mailbox);

	if (error)
		return error;
	if (READ_ONCE(card->gone) || READ_ONCE(card->dead) || epoch != peal_epoch(card)) {
		error = peal_card_error(card);
		goto out;
	}
	error = settle(card);
	if (error) {
		error = error == -EINTR ? -EINTR : peal_card_error(card);
		goto out;
	}
	give(card, command);
	error = wait_for_reply(card);
	if (!error)
		error = take_reply(card, command->opcode, reply);
	if (error) {
		card->unanswered.opcode = command->opcode;
		if (late)
			card->unanswered.late = *late;
		error = -ETIMEDOUT;
	}
out:
	mutex_unlock(&card->mailbox);
	return error;
}

/* Takes the answer to a command that nobody waits for any more. False: it has not come yet, or somebody is about to do that. */
bool peal_settle(struct peal_card *card)
{
	bool settled;

	if (!mutex_trylock(&card->mailbox))
		return false;
	if (card->unanswered.opcode && !READ_ONCE(card->dead) &&
	    (answered(card) || time_after(jiffies, card->command_end)))
		settle(card);
	settled = !card->unanswered.opcode;
	mutex_unlock(&card->mailbox);
	return settled;
}

static bool acknowledged(struct peal_card *card, u32 epoch)
{
	/* What the card let go of, it let go of before. */
	return virt_load_acquire(&card->card_page->reset_epoch) == epoch;
}

static int reset(struct peal_card *card, unsigned int timeout_ms)
{
	unsigned long end = jiffies + msecs_to_jiffies(timeout_ms);
	u32 epoch = READ_ONCE(card->card_page->reset_epoch) + 1;

	if (!epoch)
		epoch = 1;
	WRITE_ONCE(card->host_page->reset_epoch, epoch);
	peal_doorbell(card, PEAL_PCI_VECTOR_ADMIN);
	while (!acknowledged(card, epoch)) {
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		wait_event_timeout(card->mailbox_wait, acknowledged(card, epoch), LOOK_AGAIN);
	}
	return 0;
}

/*
 * Asks the card to let go of everything: contexts, memory, channels. Works on dead cards (they may have come back) and
 * on those about to go. On success the card holds nothing of an earlier epoch.
 */
int peal_reset(struct peal_card *card, unsigned int timeout_ms)
{
	struct peal_context *orphan;
	int error;

	mutex_lock(&card->mailbox);
	/* No answer will be looked at any more: a context that waits for one is the card's like any closed one. */
	orphan = card->unanswered.late.context;
	memset(&card->unanswered, 0, sizeof(card->unanswered));
	if (orphan)
		peal_context_give_up(orphan);
	error = reset(card, timeout_ms);
	if (!error) {
		atomic64_inc(&card->epoch);
		card->serial = READ_ONCE(card->host_page->command_serial);
		WRITE_ONCE(card->channels_reaped, READ_ONCE(card->card_page->channels_released));
	}
	mutex_unlock(&card->mailbox);
	return error;
}
