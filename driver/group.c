// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * Groups: the driver gives the card kernel memory for the channels of each member and keeps it until the card says that
 * the member is gone, which may be long after the process is (its neighbours may still ask for retained data).
 *
 * A member's are megabytes, a card has hundreds of members, and root has no RLIMIT_MEMLOCK: so all channels of all cards together
 * are at most half of the machine's memory, and whoever asks for more is refused (-ENOMEM).
 */
#include <linux/atomic.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>

#include "checks.h"
#include "peal.h"

/* Living members, and as many of the dead that still answer. */
#define CHANNELS_PER_MEMBER 4

/* In all channels, those lost with a card among them. */
static atomic_long_t channel_pages;
/* Members that got none, for want of memory. */
static atomic_long_t channels_refused;

static int show_count(char *text, const struct kernel_param *parameter)
{
	return sysfs_emit(text, "%ld\n", atomic_long_read(parameter->arg));
}

static int refuse_count(const char *text, const struct kernel_param *parameter)
{
	return -EPERM;
}

static const struct kernel_param_ops count_operations = {
	.set = refuse_count,
	.get = show_count,
};

module_param_cb(channel_pages, &count_operations, &channel_pages, 0444);
MODULE_PARM_DESC(channel_pages, "Read-only: pages in the channels of all cards");
module_param_cb(channels_refused, &count_operations, &channels_refused, 0444);
MODULE_PARM_DESC(channels_refused, "Read-only: groups refused for want of memory for channels");

/* Half, that the machine goes on, whatever its processes ask for. */
static int take(unsigned long count)
{
	if (atomic_long_add_return(count, &channel_pages) <= totalram_pages() / 2)
		return 0;
	atomic_long_sub(count, &channel_pages);
	return -ENOMEM;
}

/* On the user's account, not on the process': channels outlive it. */
static int account(struct peal_channels *channels, unsigned long count)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct user_struct *user = get_uid(current_user());

	if (atomic_long_add_return(count, &user->locked_vm) > limit && !capable(CAP_IPC_LOCK)) {
		atomic_long_sub(count, &user->locked_vm);
		free_uid(user);
		return -ENOMEM;
	}
	channels->user = user;
	channels->charged = count;
	return 0;
}

static void unaccount(struct peal_channels *channels)
{
	atomic_long_sub(channels->charged, &channels->user->locked_vm);
	free_uid(channels->user);
}

static int charge(struct peal_channels *channels, unsigned long count)
{
	int error = take(count);

	if (error)
		return error;
	error = account(channels, count);
	if (error)
		atomic_long_sub(count, &channel_pages);
	return error;
}

static void uncharge(struct peal_channels *channels)
{
	atomic_long_sub(channels->charged, &channel_pages);
	unaccount(channels);
}

static void channels_free_pages(struct peal_channels *channels)
{
	struct peal_pages *pages = &channels->pages;

	while (pages->count)
		__free_page(pages->pages[--pages->count]);
	kvfree(pages->pages);
	uncharge(channels);
	kfree(channels);
}

/* The card knows nothing of them (any more). */
static void channels_free(struct peal_card *card, struct peal_channels *channels)
{
	peal_pages_unmap(card, &channels->pages);
	channels_free_pages(channels);
}

static int fill(struct peal_pages *pages, unsigned long count)
{
	while (pages->count < count) {
		struct page *page = alloc_page(PEAL_GFP_MUCH | __GFP_ZERO);

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
	channels->pages.direction = DMA_BIDIRECTIONAL;
	error = charge(channels, count);
	if (error) {
		kfree(channels);
		return ERR_PTR(error);
	}
	channels->pages.pages = kvcalloc(count, sizeof(struct page *), PEAL_GFP_MUCH);
	error = channels->pages.pages ? fill(&channels->pages, count) : -ENOMEM;
	if (!error)
		error = peal_pages_map(card, &channels->pages);
	if (error) {
		channels_free_pages(channels);
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

/* The card names each once, so that no reply may be lost. False: it makes no sense. */
static bool reaped(struct peal_card *card, const struct peal_reap_channels_reply *reply)
{
	u32 i;

	if (reply->count > PEAL_CHANNELS_PER_REPLY) {
		peal_card_died(card, "a reply makes no sense");
		return false;
	}
	for (i = 0; i < reply->count; i++)
		channels_released(card, reply->lists[i]);
	return true;
}

/* The answer to a REAP whose caller had to go. With card->mailbox held. */
static void reaped_late(struct peal_card *card, const struct peal_late *late,
			const struct peal_admin_reply *reply)
{
	lockdep_assert_held(&card->mailbox);
	if (reply->status == PEAL_STATUS_OK)
		reaped(card, &reply->u.reap);
}

static void reap(struct peal_card *card)
{
	static const struct peal_late late = { .answered = reaped_late };
	struct peal_admin_command command;
	struct peal_admin_reply reply;
	u64 epoch = peal_epoch(card);
	/* What is released from here on is for the next time. */
	u64 released = READ_ONCE(card->card_page->channels_released);

	do {
		peal_command_init(&command, PEAL_ADMIN_REAP_CHANNELS, 0);
		if (peal_admin(card, epoch, &command, &reply, &late) ||
		    reply.status != PEAL_STATUS_OK || !reaped(card, &reply.u.reap))
			return;
	} while (reply.u.reap.more && reply.u.reap.count);
	WRITE_ONCE(card->channels_reaped, released);
}

void peal_reap_channels(struct peal_card *card)
{
	if (peal_lock_impatiently(&card->reaping))
		return;
	reap(card);
	mutex_unlock(&card->reaping);
}

static struct peal_channels *channels_try(struct peal_card *card)
{
	struct peal_channels *channels;
	int error = channels_claim(card);

	if (error)
		return ERR_PTR(error);
	channels = channels_make(card);
	if (IS_ERR(channels))
		channels_unclaim(card);
	return channels;
}

/* What the card has let go of meanwhile may be what is short. */
static struct peal_channels *channels_get(struct peal_card *card)
{
	struct peal_channels *channels = channels_try(card);

	if (channels != ERR_PTR(-ENOSPC) && channels != ERR_PTR(-ENOMEM))
		return channels;
	peal_reap_channels(card);
	channels = channels_try(card);
	if (channels == ERR_PTR(-ENOMEM))
		atomic_long_inc(&channels_refused);
	return channels;
}

/*
 * The answer to a RESERVE whose caller had to go. With card->mailbox held. A member that was reserved goes with its context,
 * and its channels are reaped then.
 */
static void reserved_late(struct peal_card *card, const struct peal_late *late,
			  const struct peal_admin_reply *reply)
{
	lockdep_assert_held(&card->mailbox);
	if (reply->status != PEAL_STATUS_OK)
		channels_released(card, late->channel_list);
}

/* The channels are the driver's to give. */
int peal_reserve_before(struct peal_ask *ask)
{
	struct peal_reserve_group *body = &ask->command.u.reserve;
	struct peal_card *card = ask->context->card;
	struct peal_channels *channels;
	int error = peal_check_reserve(body);

	if (error)
		return error;
	channels = channels_get(card);
	if (IS_ERR(channels))
		return PTR_ERR(channels);
	channels->epoch = ask->context->epoch;
	channels_list(card, channels);
	body->channel_pages = channels->pages.list_address;
	body->channel_list_bytes = (u64)card->device.channels * card->device.channel_bytes;
	ask->late.answered = reserved_late;
	ask->late.channel_list = channels->pages.list_address;
	ask->channels = channels;
	return 0;
}

int peal_reserve_after(struct peal_ask *ask, int error)
{
	if (!ask->channels || error == -ETIMEDOUT)
		return error;
	if (error || ask->reply.status != PEAL_STATUS_OK)
		channels_unlist(ask->context->card, ask->channels);
	return error;
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
		peal_pages_leak(&channels->pages);
		kvfree(channels->pages.pages);
		unaccount(channels);
		kfree(channels);
	}
	return count;
}
