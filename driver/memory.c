// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * Memory of a process, pinned so that the card may reach it at any time. It is unpinned in one of three ways only: the card
 * has acknowledged UNREGISTER or CLOSE, the card has acknowledged a reset, or the card never heard of it. While a
 * silent card might still write, the pages stay pinned: lost memory is better than corrupted memory. How it is unpinned: unpin.c.
 */
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "checks.h"
#include "peal.h"

static int charge(struct mm_struct *mm, unsigned long count)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;

	if (atomic64_add_return(count, &mm->pinned_vm) > limit && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(count, &mm->pinned_vm);
		return -ENOMEM;
	}
	return 0;
}

/*
 * FOLL_WRITE for read-only use as well: a page of the process that was never written to is the shared zero page, and
 * after the first write the card would go on reading zeros. FOLL_FORCE lets that break copy-on-write in private
 * mappings without write permission.
 */
static int pin(struct peal_memory *memory, u64 address, unsigned long count)
{
	unsigned int flags = FOLL_LONGTERM | FOLL_WRITE | (memory->written ? 0 : FOLL_FORCE);
	struct peal_pages *pages = &memory->pages;

	while (pages->count < count) {
		int got;

		if (fatal_signal_pending(current))
			return -EINTR;
		got = pin_user_pages_fast(address + (pages->count << PAGE_SHIFT),
					  min(count - pages->count, 4096UL), flags,
					  pages->pages + pages->count);
		if (got < 0)
			return got;
		if (!got)
			return -EFAULT;
		pages->count += got;
		cond_resched();
	}
	return 0;
}

/*
 * The process unmaps some of it, moves it, or throws its pages away: what the card reaches is not what the process sees there any
 * more. That is the process' to know (its library keeps registrations for buffers that come again); the pages stay
 * pinned, and whatever is under way goes on. (What only changes protection, or copies what is pinned on write, leaves pinned pages
 * where they are. Where the kernel says more, as when a page is copied to be pinned, they are told of for nothing.)
 */
static bool memory_departs(struct mmu_interval_notifier *notifier,
			   const struct mmu_notifier_range *range, unsigned long sequence)
{
	struct peal_memory *memory = container_of(notifier, struct peal_memory, notifier);
	struct peal_context *context = memory->context;
	u64 *count = page_address(context->departures);

	spin_lock(&context->departing);
	mmu_interval_set_seq(notifier, sequence);
	if (range->event == MMU_NOTIFY_UNMAP || range->event == MMU_NOTIFY_CLEAR) {
		if (list_empty(&memory->departed))
			list_add_tail(&memory->departed, &context->departed);
		WRITE_ONCE(*count, *count + 1);
	}
	spin_unlock(&context->departing);
	return true;
}

static const struct mmu_interval_notifier_ops departures = {
	.invalidate = memory_departs,
};

bool peal_next_departed(struct peal_context *context, u32 *key)
{
	struct peal_memory *memory;
	bool found = false;

	spin_lock(&context->departing);
	list_for_each_entry(memory, &context->departed, departed) {
		if (!memory->key)
			continue; /* the card has not given it one yet: told later */
		*key = memory->key;
		list_del_init(&memory->departed);
		found = true;
		break;
	}
	spin_unlock(&context->departing);
	return found;
}

/* The card knows nothing of it (any more). */
static void memory_free(struct peal_memory *memory)
{
	peal_pages_unmap(memory->context->card, &memory->pages);
	peal_unpin(memory);
}

/* Waits for the process' pages as long as that takes: nothing that removal waits for may be held. */
static struct peal_memory *memory_pin(struct peal_context *context, u64 address,
				      unsigned long count, bool written)
{
	u64 first = untagged_addr(address) & PAGE_MASK;
	struct peal_memory *memory;
	int error = -ENOMEM;

	memory = kzalloc(sizeof(*memory), GFP_KERNEL_ACCOUNT);
	if (!memory)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&memory->link);
	INIT_LIST_HEAD(&memory->departed);
	memory->context = context;
	memory->written = written;
	memory->pages.direction = written ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
	memory->pages.pages = kvcalloc(count, sizeof(struct page *), GFP_KERNEL_ACCOUNT);
	if (!memory->pages.pages)
		goto free_memory;
	memory->mm = current->mm;
	mmgrab(memory->mm);
	error = charge(memory->mm, count);
	if (error)
		goto drop_mm;
	/* Before the pages are looked up, so that none of them leaves in between unseen. */
	error = mmu_interval_notifier_insert(&memory->notifier, memory->mm, first,
					     count << PAGE_SHIFT, &departures);
	if (error)
		goto uncharge;
	/* While something else of the process' is being thrown away, it is told of nothing yet. */
	mmu_interval_read_begin(&memory->notifier);
	error = pin(memory, first, count);
	if (error) {
		atomic64_sub(count - memory->pages.count, &memory->mm->pinned_vm);
		peal_unpin(memory);
		peal_wait_unpinned(context);
		return ERR_PTR(error);
	}
	return memory;

uncharge:
	atomic64_sub(count, &memory->mm->pinned_vm);
drop_mm:
	mmdrop(memory->mm);
	kvfree(memory->pages.pages);
free_memory:
	kfree(memory);
	return ERR_PTR(error);
}

static noinline_for_stack int tell_unregister(struct peal_context *context, u32 key, u32 *status)
{
	struct peal_admin_command command;
	struct peal_admin_reply reply;
	int error;

	peal_command_init(&command, PEAL_ADMIN_UNREGISTER_MEMORY, context->id);
	command.u.unregister_memory.key = key;
	error = peal_admin(context->card, context->epoch, &command, &reply, NULL);
	if (!error)
		*status = reply.status;
	return error;
}

/* The command leaves nothing of the memory to the card. */
static void give_back(struct peal_ask *ask, struct peal_memory *memory)
{
	memory_free(memory);
	ask->unpins = true;
}

/* The card has given the memory a key. */
static int keep(struct peal_ask *ask, struct peal_memory *memory)
{
	struct peal_context *context = ask->context;
	u32 status = PEAL_STATUS_BUSY;
	int error;

	lockdep_assert_held(&context->lock);
	list_add_tail(&memory->link, &context->memory);
	error = xa_insert(&context->keys, memory->key, memory, GFP_KERNEL_ACCOUNT);
	if (!error)
		return 0;
	if (error == -EBUSY) {
		peal_card_died(context->card, "a memory key was given twice");
		return peal_card_error(context->card);
	}
	if (!tell_unregister(context, memory->key, &status) && status == PEAL_STATUS_OK)
		give_back(ask, memory);
	return error;
}

/* Takes and pins the memory; it is ask->memory then. */
int peal_register_pin(struct peal_ask *ask)
{
	const struct peal_register_memory *body = &ask->command.u.register_memory;
	struct peal_memory *memory;
	u64 count;
	int error;

	error = peal_check_register(body, PAGE_SHIFT, &count);
	if (error)
		return error;
	if (!access_ok((void __user *)(uintptr_t)body->address, body->bytes))
		return -EFAULT;
	memory = memory_pin(ask->context, body->address, count, body->access & PEAL_ACCESS_WRITE);
	if (IS_ERR(memory))
		return PTR_ERR(memory);
	ask->memory = memory;
	return 0;
}

/* To the card it is pages. */
int peal_register_before(struct peal_ask *ask)
{
	struct peal_register_memory *body = &ask->command.u.register_memory;
	struct peal_pages *pages = &ask->memory->pages;
	int error = peal_pages_map(ask->context->card, pages);

	if (error)
		return error;
	body->kind = PEAL_MEMORY_PAGES;
	body->first_page_offset = offset_in_page(body->address);
	body->page_shift = PAGE_SHIFT;
	body->address = pages->list_address;
	return 0;
}

/* Ends with the memory on the context's list, or freed. */
int peal_register_after(struct peal_ask *ask, int error)
{
	struct peal_context *context = ask->context;
	struct peal_memory *memory = ask->memory;

	if (error == -ETIMEDOUT) {
		lockdep_assert_held(&context->lock);
		list_add_tail(&memory->link, &context->memory);
		return error;
	}
	if (error || ask->reply.status != PEAL_STATUS_OK) {
		give_back(ask, memory);
		return error;
	}
	peal_pages_drop_list(context->card, &memory->pages);
	spin_lock(&context->departing);
	memory->key = ask->reply.u.register_memory.key;
	spin_unlock(&context->departing);
	return keep(ask, memory);
}

int peal_unregister_after(struct peal_ask *ask, int error)
{
	struct peal_context *context = ask->context;
	struct peal_memory *memory;

	if (error != -ETIMEDOUT && (error || ask->reply.status != PEAL_STATUS_OK))
		return error;
	lockdep_assert_held(&context->lock);
	memory = xa_erase(&context->keys, ask->command.u.unregister_memory.key);
	if (memory && error) {
		/* The card may have let go, and give the key again: it is nobody's, and the pages stay until the context ends. */
		spin_lock(&context->departing);
		memory->key = 0;
		spin_unlock(&context->departing);
	} else if (memory) {
		give_back(ask, memory);
	}
	return error;
}

void peal_memory_free_all(struct peal_context *context)
{
	struct peal_memory *memory, *next;

	xa_destroy(&context->keys);
	list_for_each_entry_safe(memory, next, &context->memory, link)
		memory_free(memory);
}

/* The card is going and has not let go: the pages stay pinned for ever, only our records of them go. */
unsigned long peal_memory_leak_all(struct peal_context *context)
{
	struct peal_memory *memory, *next;
	unsigned long count = 0;

	xa_destroy(&context->keys);
	list_for_each_entry_safe(memory, next, &context->memory, link) {
		count += memory->pages.count;
		peal_pages_leak(&memory->pages);
		peal_unpin(memory);
	}
	return count;
}
