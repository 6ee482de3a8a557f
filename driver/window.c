// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * mmap: the context's window (card page read-only, the rest read-write) and, where the platform gives BAR0 a page of
 * its own, the doorbell; and the count of departures, a page of the kernel's own. Pages come in by fault, so that removal and every reset can take them away at any time: afterwards
 * the card page reads as zeros and writes go to a scratch page, and the process lives to be told. After a reset the card
 * gives the same windows to others.
 *
 * Whoever maps the doorbell can write all of BAR0. That page reaches nothing but the card's doorbells and this
 * device's own interrupts, so a process can wake the card or make its own guest count interrupts, no more.
 */
#include <linux/fs.h>
#include <linux/mm.h>

#include "peal.h"

u32 peal_doorbell_page_bytes(struct peal_card *card)
{
	resource_size_t start = pci_resource_start(card->pdev, 0);

	if (!IS_ALIGNED(start, PAGE_SIZE) || pci_resource_len(card->pdev, 0) < PAGE_SIZE)
		return 0;
	return PAGE_SIZE;
}

/* False: the window is not the context's any more. Otherwise until peal_card_leave(), which a reset waits for too. */
static bool window_enter(struct peal_context *context, int *token)
{
	if (!peal_card_enter(context->card, token))
		return false;
	if (context->epoch == peal_epoch(context->card))
		return true;
	peal_card_leave(context->card, *token);
	return false;
}

static vm_fault_t window_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct peal_context *context = vma->vm_private_data;
	struct peal_card *card = context->card;
	u64 offset = (u64)vmf->pgoff << PAGE_SHIFT;
	unsigned long frame;
	vm_fault_t result;
	int token;

	if (offset == PEAL_WINDOW_CARD_PAGE && vmf->flags & FAULT_FLAG_WRITE)
		return VM_FAULT_SIGBUS;
	if (window_enter(context, &token)) {
		frame = PHYS_PFN(pci_resource_start(card->pdev, 2) + context->window + offset);
		result = vmf_insert_pfn(vma, vmf->address, frame);
		peal_card_leave(card, token);
		return result;
	}
	frame = offset == PEAL_WINDOW_CARD_PAGE ? page_to_pfn(ZERO_PAGE(0)) :
						  page_to_pfn(context->scratch);
	return vmf_insert_pfn(vma, vmf->address, frame);
}

static vm_fault_t doorbell_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct peal_context *context = vma->vm_private_data;
	struct peal_card *card = context->card;
	vm_fault_t result;
	int token;

	if (window_enter(context, &token)) {
		result = vmf_insert_pfn_prot(vma, vmf->address,
					     PHYS_PFN(pci_resource_start(card->pdev, 0)),
					     pgprot_noncached(vma->vm_page_prot));
		peal_card_leave(card, token);
		return result;
	}
	return vmf_insert_pfn(vma, vmf->address, page_to_pfn(context->scratch));
}

/* First write to a page: because of this function, every page comes in without write permission. */
static vm_fault_t window_write(struct vm_fault *vmf)
{
	return (u64)vmf->pgoff << PAGE_SHIFT == PEAL_WINDOW_CARD_PAGE ? VM_FAULT_SIGBUS : 0;
}

static const struct vm_operations_struct window_operations = {
	.fault = window_fault,
	.pfn_mkwrite = window_write,
};

static const struct vm_operations_struct doorbell_operations = {
	.fault = doorbell_fault,
};

static vm_fault_t departures_fault(struct vm_fault *vmf)
{
	struct peal_context *context = vmf->vma->vm_private_data;

	return vmf_insert_pfn(vmf->vma, vmf->address, page_to_pfn(context->departures));
}

static const struct vm_operations_struct departures_operations = {
	.fault = departures_fault,
};

static int map_departures(struct vm_area_struct *vma, u64 bytes)
{
	if (bytes != PAGE_SIZE)
		return -EINVAL;
	if (vma->vm_flags & VM_WRITE)
		return -EACCES;
	vma->vm_flags &= ~VM_MAYWRITE;
	vma->vm_ops = &departures_operations;
	return 0;
}

static int map_window(struct peal_context *context, struct vm_area_struct *vma, u64 offset,
		      u64 bytes)
{
	u32 window_bytes = context->card->window_bytes;

	if (offset > window_bytes || bytes > window_bytes - offset)
		return -EINVAL;
	if (offset == PEAL_WINDOW_CARD_PAGE && bytes == PEAL_PAGE_BYTES) {
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		vma->vm_flags &= ~VM_MAYWRITE;
	}
	vma->vm_ops = &window_operations;
	return 0;
}

static int map_doorbell(struct peal_context *context, struct vm_area_struct *vma, u64 bytes)
{
	u32 doorbell_bytes = peal_doorbell_page_bytes(context->card);

	if (!doorbell_bytes)
		return -ENXIO;
	if (bytes != doorbell_bytes)
		return -EINVAL;
	if (vma->vm_flags & VM_READ)
		return -EACCES;
	vma->vm_flags &= ~VM_MAYREAD;
	vma->vm_ops = &doorbell_operations;
	return 0;
}

int peal_mmap(struct file *file, struct vm_area_struct *vma)
{
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 bytes = vma->vm_end - vma->vm_start;
	struct peal_context *context;
	int error, token;

	if (!(vma->vm_flags & VM_SHARED) || vma->vm_flags & VM_EXEC)
		return -EACCES;
	context = peal_file_context(file->private_data);
	if (IS_ERR(context))
		return PTR_ERR(context);
	if (!peal_card_enter(context->card, &token))
		return -ENODEV;
	if (offset == PEAL_MMAP_DOORBELL)
		error = map_doorbell(context, vma, bytes);
	else if (offset == PEAL_MMAP_DEPARTURES)
		error = map_departures(vma, bytes);
	else
		error = map_window(context, vma, offset, bytes);
	peal_card_leave(context->card, token);
	if (error)
		return error;
	vma->vm_flags &= ~VM_MAYEXEC;
	vma->vm_flags |= VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY;
	vma->vm_private_data = context;
	return 0;
}

/* Takes all pages of the card out of all processes; what faults afterwards gets blank ones. */
void peal_unmap_windows(struct peal_card *card)
{
	struct peal_context *context;

	mutex_lock(&card->contexts_lock);
	list_for_each_entry(context, &card->contexts, link)
		unmap_mapping_range(context->mapping, 0, 0, 1);
	mutex_unlock(&card->contexts_lock);
}
