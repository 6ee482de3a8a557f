// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * The end of a registration, when the card has let go: its pages are unpinned, and its process is not watched any more. Both may
 * wait for as long as somebody else likes:
 *  - A page that the card may have written to is marked dirty with the page locked (unpin_user_pages_dirty_lock()). Whoever
 *    maps a file of a FUSE or network file system lets its server hold that lock: while a dirty page is written back to be
 *    invalidated, for example because the file is opened once more, it stays locked until the server has answered.
 *  - The notifier goes when no invalidation is under way in the process (mmu_interval_notifier_remove()). One may be waiting in
 *    another driver's notifier, for that driver's device, or for a processor, of which the process has used up its share.
 *
 * So nobody does that with anything held, nor for anybody else: each context has a work item of its own, which touches neither
 * the card nor what another lock than context->departing guards. Memory that is stuck holds up what its own context gives back
 * after it, and the unloading of the module. Until it is unpinned it stays on its process' account.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "peal.h"

static struct workqueue_struct *unpinning;

/*
 * Not freezable: the machine may sleep while memory is stuck. As many contexts as may be at it: a stuck one has its place until
 * its memory is not stuck any more.
 */
int peal_unpinning_start(void)
{
	unpinning = alloc_workqueue("peal", WQ_UNBOUND, WQ_MAX_ACTIVE);
	return unpinning ? 0 : -ENOMEM;
}

/* Waits for all memory that is still to be unpinned: there is no card and no file any more. */
void peal_unpinning_stop(void)
{
	destroy_workqueue(unpinning);
}

static void unpin(struct peal_memory *memory)
{
	struct peal_context *context = memory->context;
	struct peal_pages *pages = &memory->pages;

	unpin_user_pages_dirty_lock(pages->pages, pages->count, memory->written);
	atomic64_sub(pages->count, &memory->mm->pinned_vm);
	mmu_interval_notifier_remove(&memory->notifier);
	spin_lock(&context->departing);
	list_del(&memory->departed);
	context->unpinned++;
	spin_unlock(&context->departing);
	wake_up_all(&context->unpinned_wait);
	mmdrop(memory->mm);
	kvfree(pages->pages);
	kfree(memory);
}

static struct peal_memory *next_let_go(struct peal_context *context)
{
	struct peal_memory *memory;

	spin_lock(&context->departing);
	memory = list_first_entry_or_null(&context->let_go, struct peal_memory, link);
	if (memory)
		list_del(&memory->link);
	spin_unlock(&context->departing);
	return memory;
}

void peal_unpin_all(struct work_struct *work)
{
	struct peal_context *context = container_of(work, struct peal_context, unpinning);
	struct peal_memory *memory;

	while ((memory = next_let_go(context)))
		unpin(memory);
	peal_context_put(context);
}

/* From here on the process is told nothing of it. */
void peal_unpin(struct peal_memory *memory)
{
	struct peal_context *context = memory->context;

	spin_lock(&context->departing);
	memory->key = 0;
	list_move_tail(&memory->link, &context->let_go);
	context->to_unpin++;
	spin_unlock(&context->departing);
	/* Each run that is queued has a reference. One that has not begun yet will find this memory too. */
	kref_get(&context->references);
	if (!queue_work(unpinning, &context->unpinning))
		peal_context_put(context);
}

void peal_wait_unpinned(struct peal_context *context)
{
	unsigned long wanted = READ_ONCE(context->to_unpin);

	wait_event_killable(context->unpinned_wait,
			    (long)(READ_ONCE(context->unpinned) - wanted) >= 0);
}
