// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * Memory of a process, pinned so that the card may reach it at any time. It is unpinned in one of three ways only: the card
 * has acknowledged UNREGISTER or CLOSE, the card has acknowledged a reset, or the card never heard of it. While a
 * silent card might still write, the pages stay pinned: lost memory is better than corrupted memory.
 */
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

/* The card knows nothing of it (any more). */
static void memory_free(struct peal_card *card, struct peal_memory *memory, unsigned long charged)
{
	peal_pages_unmap(card, &memory->pages);
	unpin_user_pages_dirty_lock(memory->pages.pages, memory->pages.count, memory->written);
	atomic64_sub(charged, &memory->mm->pinned_vm);
	mmdrop(memory->mm);
	kvfree(memory->pages.pages);
	kfree(memory);
}

/* Waits for the process' pages as long as that takes: nothing that removal waits for may be held. */
static struct peal_memory *memory_pin(struct peal_card *card, u64 address, unsigned long count,
				      bool written)
{
	u64 first = address & PAGE_MASK;
	struct peal_memory *memory;
	int error = -ENOMEM;

	memory = kzalloc(sizeof(*memory), GFP_KERNEL_ACCOUNT);
	if (!memory)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&memory->link);
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
	error = pin(memory, first, count);
	if (error) {
		memory_free(card, memory, count);
		return ERR_PTR(error);
	}
	return memory;

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

/* The card has given the memory a key. */
static int keep(struct peal_context *context, struct peal_memory *memory)
{
	u32 status = PEAL_STATUS_BUSY;
	int error;

	list_add_tail(&memory->link, &context->memory);
	error = xa_insert(&context->keys, memory->key, memory, GFP_KERNEL_ACCOUNT);
	if (!error)
		return 0;
	if (error == -EBUSY) {
		peal_card_died(context->card, "a memory key was given twice");
		return peal_card_error(context->card);
	}
	if (!tell_unregister(context, memory->key, &status) && status == PEAL_STATUS_OK) {
		list_del(&memory->link);
		memory_free(context->card, memory, memory->pages.count);
	}
	return error;
}

/* Ends with the memory on the context's list, or freed. */
static noinline_for_stack int register_pinned(struct peal_context *context,
					      struct peal_memory *memory,
					      struct peal_ioctl_register *argument)
{
	struct peal_card *card = context->card;
	struct peal_admin_command command;
	struct peal_register_memory *body = &command.u.register_memory;
	struct peal_admin_reply reply;
	int error;

	error = peal_pages_map(card, &memory->pages);
	if (error)
		goto free;
	peal_command_init(&command, PEAL_ADMIN_REGISTER_MEMORY, context->id);
	body->kind = PEAL_MEMORY_PAGES;
	body->access = argument->access;
	body->address = memory->pages.list_address;
	body->bytes = argument->bytes_;
	body->first_page_offset = offset_in_page(argument->address);
	body->page_shift = PAGE_SHIFT;
	error = peal_admin(card, context->epoch, &command, &reply, NULL);
	if (error == -ETIMEDOUT) {
		list_add_tail(&memory->link, &context->memory);
		return peal_card_error(card);
	}
	if (error)
		goto free;
	argument->status = reply.status;
	if (reply.status != PEAL_STATUS_OK)
		goto free;
	peal_pages_drop_list(card, &memory->pages);
	memory->key = reply.u.register_memory.key;
	error = keep(context, memory);
	if (!error)
		argument->key = memory->key;
	return error;

free:
	memory_free(card, memory, memory->pages.count);
	return error;
}

int peal_memory_register(struct peal_context *context, struct peal_ioctl_register *argument)
{
	struct peal_card *card = context->card;
	struct peal_memory *memory;
	int error, token;
	u64 count;

	error = peal_check_register(argument, PAGE_SHIFT, &count);
	if (error)
		return error;
	if (!access_ok((void __user *)(uintptr_t)argument->address, argument->bytes_))
		return -EFAULT;
	memory = memory_pin(card, argument->address, count, argument->access & PEAL_ACCESS_WRITE);
	if (IS_ERR(memory))
		return PTR_ERR(memory);
	error = peal_context_begin(context, &token);
	if (error) {
		memory_free(card, memory, memory->pages.count);
		return error;
	}
	error = register_pinned(context, memory, argument);
	peal_context_end(context, token);
	return error;
}

static int unregister(struct peal_context *context, struct peal_ioctl_unregister *argument)
{
	struct peal_memory *memory = xa_load(&context->keys, argument->key);
	u32 status;
	int error;

	if (!memory) {
		argument->status = PEAL_STATUS_BAD_KEY;
		return 0;
	}
	error = tell_unregister(context, argument->key, &status);
	if (error)
		return peal_card_error(context->card);
	argument->status = status;
	if (status == PEAL_STATUS_OK) {
		xa_erase(&context->keys, memory->key);
		list_del(&memory->link);
		memory_free(context->card, memory, memory->pages.count);
	}
	return 0;
}

int peal_memory_unregister(struct peal_context *context, struct peal_ioctl_unregister *argument)
{
	int error, token;

	error = peal_context_begin(context, &token);
	if (error)
		return error;
	error = unregister(context, argument);
	peal_context_end(context, token);
	return error;
}

void peal_memory_free_all(struct peal_context *context)
{
	struct peal_memory *memory, *next;

	xa_destroy(&context->keys);
	list_for_each_entry_safe(memory, next, &context->memory, link) {
		list_del(&memory->link);
		memory_free(context->card, memory, memory->pages.count);
	}
}

/* The card is going and has not let go: the pages stay pinned for ever, only our records of them go. */
unsigned long peal_memory_leak_all(struct peal_context *context)
{
	struct peal_memory *memory, *next;
	unsigned long count = 0;

	xa_destroy(&context->keys);
	list_for_each_entry_safe(memory, next, &context->memory, link) {
		list_del(&memory->link);
		count += memory->pages.count;
		mmdrop(memory->mm);
		kvfree(memory->pages.pages);
		kfree(memory);
	}
	return count;
}
