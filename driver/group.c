// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * Groups: the driver gives the card kernel memory for the channels of each member and keeps it until the card says that
 * the member is gone, which may be long after the process is (its neighbours may still ask for retained data).
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "checks.h"
#include "peal.h"

/* Living members, and as many of the dead that still answer. */
#define CHANNELS_PER_MEMBER 4

static void channels_free_pages(struct peal_pages *pages)
{
	while (pages->count)
		__free_page(pages->pages[--pages->count]);
	kvfree(pages->pages);
}

/* The card knows nothing of them (any more). */
static void channels_free(struct peal_card *card, struct peal_channels *channels)
{
	peal_pages_unmap(card, &channels->pages);
	channels_free_pages(&channels->pages);
	kfree(channels);
}

static int fill(struct peal_pages *pages, unsigned long count)
{
	while (pages->count < count) {
		struct page *page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);

		if (!page)
			return -ENOMEM;
		pages->pages[pages->count++] = page;
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

static struct peal_channels *channels_make(struct peal_card *card)
{
	u64 bytes = (u64)card->device.channels * card->device.channel_bytes;
	unsigned long count = PAGE_ALIGN(bytes) >> PAGE_SHIFT;
	struct peal_channels *channels;
	int error;

	channels = kzalloc(sizeof(*channels), GFP_KERNEL_ACCOUNT);
	if (!channels)
		return ERR_PTR(-ENOMEM);
	channels->pages.pages = kvcalloc(count, sizeof(struct page *), GFP_KERNEL_ACCOUNT);
	error = channels->pages.pages ? fill(&channels->pages, count) : -ENOMEM;
	if (!error)
		error = peal_pages_map(card, &channels->pages);
	if (error) {
		channels_free_pages(&channels->pages);
		kfree(channels);
		return ERR_PTR(error);
	}
	return channels;
}

/* Takes one place among the device's channels. */
static int channels_claim(struct peal_card *card)
{
	int error = 0;

	mutex_lock(&card->channels_lock);
	if (card->channel_count >= CHANNELS_PER_MEMBER * card->device.members_max)
		error = -ENOSPC;
	else
		card->channel_count++;
	mutex_unlock(&card->channels_lock);
	return error;
}

static void channels_unclaim(struct peal_card *card)
{
	mutex_lock(&card->channels_lock);
	card->channel_count--;
	mutex_unlock(&card->channels_lock);
}

/* Listed before the card hears of them, so that its word on them always finds them. */
static void channels_list(struct peal_card *card, struct peal_channels *channels)
{
	mutex_lock(&card->channels_lock);
	list_add_tail(&channels->link, &card->channels);
	mutex_unlock(&card->channels_lock);
}

static void channels_unlist(struct peal_card *card, struct peal_channels *channels)
{
	mutex_lock(&card->channels_lock);
	list_del(&channels->link);
	card->channel_count--;
	mutex_unlock(&card->channels_lock);
	channels_free(card, channels);
}

static void channels_released(struct peal_card *card, u64 list_address)
{
	struct peal_channels *channels;

	mutex_lock(&card->channels_lock);
	list_for_each_entry(channels, &card->channels, link) {
		if (channels->pages.list_address != list_address)
			continue;
		list_del(&channels->link);
		card->channel_count--;
		mutex_unlock(&card->channels_lock);
		channels_free(card, channels);
		return;
	}
	mutex_unlock(&card->channels_lock);
	dev_warn_ratelimited(&card->pdev->dev, "the card released channels it never had\n");
}

static void reap(struct peal_card *card)
{
	struct peal_admin_reply reply;
	u64 epoch = peal_epoch(card);
	/* What is released from here on is for the next time. */
	u64 released = READ_ONCE(card->card_page->channels_released);
	u32 i;

	do {
		struct peal_admin_command command = { .opcode = PEAL_ADMIN_REAP_CHANNELS };

		if (peal_admin(card, epoch, &command, &reply) || reply.status != PEAL_STATUS_OK)
			return;
		if (reply.u.reap.count > PEAL_CHANNELS_PER_REPLY) {
			peal_card_died(card, "a reply makes no sense");
			return;
		}
		for (i = 0; i < reply.u.reap.count; i++)
			channels_released(card, reply.u.reap.lists[i]);
	} while (reply.u.reap.more && reply.u.reap.count);
	WRITE_ONCE(card->channels_reaped, released);
}

void peal_reap_channels(struct peal_card *card)
{
	mutex_lock(&card->reaping);
	reap(card);
	mutex_unlock(&card->reaping);
}

int peal_group_reserve(struct peal_context *context, struct peal_ioctl_reserve_group *argument)
{
	struct peal_card *card = context->card;
	struct peal_admin_command command = {
		.opcode = PEAL_ADMIN_RESERVE_GROUP,
		.context = context->id,
	};
	struct peal_reserve_group *body = &command.u.reserve;
	struct peal_admin_reply reply;
	struct peal_channels *channels;
	int error;

	error = peal_check_reserve(argument);
	if (error)
		return error;
	error = channels_claim(card);
	if (error == -ENOSPC) {
		peal_reap_channels(card);
		error = channels_claim(card);
	}
	if (error)
		return error;
	channels = channels_make(card);
	if (IS_ERR(channels)) {
		channels_unclaim(card);
		return PTR_ERR(channels);
	}
	channels->epoch = context->epoch;
	channels_list(card, channels);
	body->ranks = argument->ranks;
	body->rank = argument->rank;
	body->channel_pages = channels->pages.list_address;
	body->channel_list_bytes = (u64)card->device.channels * card->device.channel_bytes;
	error = peal_admin(card, context->epoch, &command, &reply);
	if (error == -ETIMEDOUT)
		return peal_card_error(card);
	if (error) {
		channels_unlist(card, channels);
		return error;
	}
	argument->status = reply.status;
	if (reply.status == PEAL_STATUS_OK)
		argument->address = reply.u.reserve.address;
	else
		channels_unlist(card, channels);
	return 0;
}

int peal_group_connect(struct peal_context *context, struct peal_ioctl_connect_group *argument)
{
	struct peal_admin_command command = {
		.opcode = PEAL_ADMIN_CONNECT_GROUP,
		.context = context->id,
	};
	struct peal_connect_group *body = &command.u.connect;
	struct peal_admin_reply reply;
	int error;

	error = peal_check_connect(argument);
	if (error)
		return error;
	body->member = argument->member;
	body->group = argument->group;
	body->choice_hash = argument->choice_hash;
	body->peer_count = argument->peer_count;
	if (copy_from_user(body->peers, u64_to_user_ptr(argument->peers),
			   argument->peer_count * sizeof(body->peers[0])))
		return -EFAULT;
	error = peal_admin(context->card, context->epoch, &command, &reply);
	if (error)
		return peal_card_error(context->card);
	argument->status = reply.status;
	return 0;
}

int peal_group_abandon(struct peal_context *context, struct peal_ioctl_abandon_group *argument)
{
	struct peal_admin_command command = {
		.opcode = PEAL_ADMIN_ABANDON_GROUP,
		.context = context->id,
		.u.abandon.member = argument->member,
	};
	struct peal_admin_reply reply;
	int error;

	error = peal_admin(context->card, context->epoch, &command, &reply);
	if (error)
		return peal_card_error(context->card);
	argument->status = reply.status;
	return 0;
}

/* The card has acknowledged a reset: what is older is ours again. */
void peal_channels_free_epochs(struct peal_card *card, u64 current_epoch)
{
	struct peal_channels *channels, *next;
	LIST_HEAD(old);

	mutex_lock(&card->channels_lock);
	list_for_each_entry_safe(channels, next, &card->channels, link) {
		if (channels->epoch == current_epoch)
			continue;
		list_move(&channels->link, &old);
		card->channel_count--;
	}
	mutex_unlock(&card->channels_lock);
	list_for_each_entry_safe(channels, next, &old, link)
		channels_free(card, channels);
}

/* As with memory: the pages stay, our records of them go. Returns how many pages. */
unsigned long peal_channels_leak_all(struct peal_card *card)
{
	struct peal_channels *channels, *next;
	unsigned long count = 0;

	list_for_each_entry_safe(channels, next, &card->channels, link) {
		list_del(&channels->link);
		count += channels->pages.count;
		kvfree(channels->pages.pages);
		kfree(channels);
	}
	return count;
}
