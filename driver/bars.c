// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * The BARs: are they a Peal card's, and what does the card say of itself there.
 */
#include <linux/io.h>

#include <asm/barrier.h>

#include "peal.h"

#define CHANNELS_MAX 64
#define CHANNEL_LIST_BYTES_MAX (1ULL << 30)
#define MEMBERS_MAX 4096

/*
 * Cacheable mappings of BAR2, here and in window.c, are right for memory only. That of ivshmem is the host's RAM, and so it
 * is prefetchable; a card on real PCI would need other ways.
 */
static bool bars_fit(struct pci_dev *pdev)
{
	unsigned long wanted = IORESOURCE_MEM | IORESOURCE_PREFETCH;

	return pci_resource_len(pdev, 0) >= PEAL_PCI_BAR0_DOORBELL + sizeof(u32) &&
	       (pci_resource_flags(pdev, 2) & wanted) == wanted &&
	       !(pci_resource_flags(pdev, 2) & IORESOURCE_UNSET) &&
	       pci_resource_len(pdev, 2) >= PEAL_PCI_WINDOWS;
}

/*
 * Any ivshmem device is offered to us. A stranger is looked at, no more: it is neither enabled nor written to nor spoken of,
 * and whoever it is for finds it as it was.
 */
bool peal_is_card(struct pci_dev *pdev)
{
	const struct peal_pci_card_page *page;
	bool is = false;
	u16 command;

	if (!bars_fit(pdev))
		return false;
	pci_read_config_word(pdev, PCI_COMMAND, &command);
	if (!(command & PCI_COMMAND_MEMORY))
		pci_write_config_word(pdev, PCI_COMMAND, command | PCI_COMMAND_MEMORY);
	page = memremap(pci_resource_start(pdev, 2), PEAL_PAGE_BYTES, MEMREMAP_WB);
	if (page) {
		/* Everything else on the page was written before the magic. */
		is = virt_load_acquire(&page->magic) == PEAL_PCI_MAGIC;
		memunmap((void *)page);
	}
	if (!(command & PCI_COMMAND_MEMORY))
		pci_write_config_word(pdev, PCI_COMMAND, command);
	return is;
}

int peal_bars_map(struct peal_card *card)
{
	struct pci_dev *pdev = card->pdev;

	card->bar_bytes = pci_resource_len(pdev, 2);
	card->registers = pci_iomap(pdev, 0, 0);
	if (!card->registers)
		return -ENOMEM;
	card->bar = memremap(pci_resource_start(pdev, 2), card->bar_bytes, MEMREMAP_WB);
	if (!card->bar) {
		pci_iounmap(pdev, card->registers);
		return -ENOMEM;
	}
	card->card_page = card->bar + PEAL_PCI_CARD_PAGE;
	card->host_page = card->bar + PEAL_PCI_HOST_PAGE;
	return 0;
}

void peal_bars_unmap(struct peal_card *card)
{
	memunmap(card->bar);
	pci_iounmap(card->pdev, card->registers);
}

static bool geometry_is_sane(const struct peal_card *card)
{
	const struct peal_device *device = &card->device;
	u64 windows = (u64)card->context_count * card->window_bytes;

	return card->window_bytes >= PEAL_WINDOW_BYTES(PEAL_RING_ENTRIES_MIN) &&
	       card->window_bytes <= PEAL_WINDOW_BYTES(PEAL_RING_ENTRIES_MAX) &&
	       IS_ALIGNED(card->window_bytes, PAGE_SIZE) &&
	       IS_ALIGNED(card->windows_offset, PAGE_SIZE) &&
	       card->windows_offset >= PEAL_PCI_WINDOWS && card->windows_offset <= card->bar_bytes &&
	       windows && windows <= card->bar_bytes - card->windows_offset &&
	       device->channels && device->channels <= CHANNELS_MAX && device->channel_bytes &&
	       (u64)device->channels * device->channel_bytes <= CHANNEL_LIST_BYTES_MAX &&
	       device->members_max && device->members_max <= MEMBERS_MAX;
}

/* What the card says of itself. It is copied once, then checked. */
int peal_bars_read(struct peal_card *card)
{
	const struct peal_pci_card_page *page = card->card_page;
	struct device *dev = &card->pdev->dev;

	/* Again, now that the whole BAR is mapped. Everything else was written before. */
	if (virt_load_acquire(&page->magic) != PEAL_PCI_MAGIC)
		return -ENODEV;
	if (page->abi_version != PEAL_ABI_VERSION) {
		dev_err(dev, "the card speaks ABI version %u, this driver %u\n", page->abi_version,
			PEAL_ABI_VERSION);
		return -ENODEV;
	}
	card->windows_offset = READ_ONCE(page->windows_offset);
	card->context_count = READ_ONCE(page->context_count);
	card->window_bytes = READ_ONCE(page->window_bytes);
	memcpy(&card->device, &page->device, sizeof(card->device));
	if (!geometry_is_sane(card)) {
		dev_err(dev, "the card describes itself with impossible sizes\n");
		return -ENODEV;
	}
	return 0;
}

/* A machine that was restored from disk may find another card. */
bool peal_same_card(struct peal_card *card)
{
	const struct peal_pci_card_page *page = card->card_page;
	const struct peal_device *device = &page->device;

	/* What the magic vouches for. */
	return virt_load_acquire(&page->magic) == PEAL_PCI_MAGIC &&
	       page->abi_version == PEAL_ABI_VERSION &&
	       READ_ONCE(page->windows_offset) == card->windows_offset &&
	       READ_ONCE(page->context_count) == card->context_count &&
	       READ_ONCE(page->window_bytes) == card->window_bytes &&
	       READ_ONCE(device->channels) == card->device.channels &&
	       READ_ONCE(device->channel_bytes) == card->device.channel_bytes;
}
