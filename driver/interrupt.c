// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * Doorbells in both directions. The card's MSI-X says that some ring or the mailbox has news; whoever sleeps on a window
 * has set its flag there, and gets its eventfd signalled. Nothing is lost when an interrupt comes twice.
 */
#include <linux/eventfd.h>
#include <linux/interrupt.h>
#include <linux/io.h>

#include "peal.h"

u32 peal_doorbell_value(u32 vector)
{
	return PEAL_PCI_CARD_PEER << 16 | vector;
}

void peal_doorbell(struct peal_card *card, u32 vector)
{
	/*
	 * iowrite32 orders it after all earlier writes of this processor to the BAR's memory, on arm64 too (dma_wmb);
	 * those of the process that rings by PEAL_IOCTL_KICK are among them.
	 */
	iowrite32(peal_doorbell_value(vector), card->registers + PEAL_PCI_BAR0_DOORBELL);
}

static irqreturn_t on_admin(int irq, void *data)
{
	struct peal_card *card = data;

	wake_up_all(&card->mailbox_wait);
	if (READ_ONCE(card->card_page->channels_released) != READ_ONCE(card->channels_reaped))
		peal_housekeeping_now(card);
	return IRQ_HANDLED;
}

static bool sleeps(const struct peal_context *context)
{
	const struct peal_host_page *page = context->card->bar + context->window +
					    PEAL_WINDOW_HOST_PAGE;

	return READ_ONCE(page->sleeping.value) != 0;
}

static irqreturn_t on_queues(int irq, void *data)
{
	struct peal_card *card = data;
	struct peal_context *context;
	unsigned long flags;

	spin_lock_irqsave(&card->events_lock, flags);
	list_for_each_entry(context, &card->listeners, listen) {
		if (sleeps(context))
			eventfd_signal(context->event, 1);
	}
	spin_unlock_irqrestore(&card->events_lock, flags);
	return IRQ_HANDLED;
}

static struct eventfd_ctx *swap_event(struct peal_context *context, struct eventfd_ctx *event)
{
	struct peal_card *card = context->card;
	struct eventfd_ctx *old;
	unsigned long flags;

	spin_lock_irqsave(&card->events_lock, flags);
	old = context->event;
	context->event = event;
	if (event && !old)
		list_add_tail(&context->listen, &card->listeners);
	else if (!event && old)
		list_del_init(&context->listen);
	spin_unlock_irqrestore(&card->events_lock, flags);
	return old;
}

int peal_set_event(struct peal_context *context, int fd)
{
	struct eventfd_ctx *event = NULL;
	struct eventfd_ctx *old;

	if (fd < -1)
		return -EINVAL;
	if (fd >= 0) {
		event = eventfd_ctx_fdget(fd);
		if (IS_ERR(event))
			return PTR_ERR(event);
	}
	old = swap_event(context, event);
	if (old)
		eventfd_ctx_put(old);
	return 0;
}

void peal_clear_event(struct peal_context *context)
{
	struct eventfd_ctx *old = swap_event(context, NULL);

	if (old)
		eventfd_ctx_put(old);
}

int peal_interrupts_start(struct peal_card *card)
{
	struct pci_dev *pdev = card->pdev;
	int error;

	error = pci_alloc_irq_vectors(pdev, PEAL_PCI_VECTORS, PEAL_PCI_VECTORS, PCI_IRQ_MSIX);
	if (error < 0)
		return error;
	error = request_irq(pci_irq_vector(pdev, PEAL_PCI_VECTOR_ADMIN), on_admin, 0, "peal-admin",
			    card);
	if (error)
		goto free_vectors;
	error = request_irq(pci_irq_vector(pdev, PEAL_PCI_VECTOR_QUEUES), on_queues, 0,
			    "peal-queues", card);
	if (error)
		goto free_admin;
	return 0;

free_admin:
	free_irq(pci_irq_vector(pdev, PEAL_PCI_VECTOR_ADMIN), card);
free_vectors:
	pci_free_irq_vectors(pdev);
	return error;
}

void peal_interrupts_stop(struct peal_card *card)
{
	free_irq(pci_irq_vector(card->pdev, PEAL_PCI_VECTOR_QUEUES), card);
	free_irq(pci_irq_vector(card->pdev, PEAL_PCI_VECTOR_ADMIN), card);
	pci_free_irq_vectors(card->pdev);
}
