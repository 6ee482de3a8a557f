// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * The PCI function: finding out that it is a Peal card (other ivshmem devices have the same ids), bringing it to a known
 * state by an acknowledged reset, and taking it away while processes still use it.
 */
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/pm.h>
#include <linux/slab.h>

#include <asm/barrier.h>

#include "peal.h"

#define CHANNELS_MAX 64
#define CHANNEL_LIST_BYTES_MAX (1ULL << 30)
#define MEMBERS_MAX 4096
/* A silent card is asked once more before its pages are leaked. */
#define LAST_WORDS_MS 1000

bool peal_card_enter(struct peal_card *card, int *token)
{
	*token = srcu_read_lock(&card->users);
	if (!READ_ONCE(card->gone))
		return true;
	srcu_read_unlock(&card->users, *token);
	return false;
}

void peal_card_leave(struct peal_card *card, int token)
{
	srcu_read_unlock(&card->users, token);
}

int peal_card_error(struct peal_card *card)
{
	return READ_ONCE(card->gone) ? -ENODEV : -EIO;
}

void peal_card_died(struct peal_card *card, const char *why)
{
	if (READ_ONCE(card->gone) || xchg(&card->dead, true))
		return;
	dev_err(&card->pdev->dev, "the card is dead: %s\n", why);
	peal_wake_all(card);
}

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
static bool is_peal_card(struct pci_dev *pdev)
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

static int map_bars(struct peal_card *card)
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

static void unmap_bars(struct peal_card *card)
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
static int read_card_page(struct peal_card *card)
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

static struct peal_card *card_make(struct pci_dev *pdev)
{
	struct peal_card *card = kzalloc(sizeof(*card), GFP_KERNEL);

	if (!card)
		return NULL;
	if (init_srcu_struct(&card->users)) {
		kfree(card);
		return NULL;
	}
	card->pdev = pdev;
	init_waitqueue_head(&card->state_wait);
	init_waitqueue_head(&card->mailbox_wait);
	mutex_init(&card->mailbox);
	mutex_init(&card->contexts_lock);
	mutex_init(&card->channels_lock);
	mutex_init(&card->reaping);
	spin_lock_init(&card->events_lock);
	spin_lock_init(&card->closing_lock);
	atomic64_set(&card->epoch, 0);
	INIT_LIST_HEAD(&card->contexts);
	INIT_LIST_HEAD(&card->closing);
	INIT_LIST_HEAD(&card->channels);
	INIT_LIST_HEAD(&card->listeners);
	INIT_DELAYED_WORK(&card->housekeeping, peal_housekeeping);
	peal_chardev_init(card);
	return card;
}

/* The device is enabled and its regions are ours. */
static int card_start(struct peal_card *card)
{
	struct pci_dev *pdev = card->pdev;
	int error;

	error = map_bars(card);
	if (error)
		return error;
	error = read_card_page(card);
	if (error)
		goto unmap;
	error = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (error)
		goto unmap;
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	pci_set_master(pdev);
	error = peal_interrupts_start(card);
	if (error)
		goto clear_master;
	error = peal_reset(card, peal_command_timeout_ms);
	if (error) {
		dev_err(&pdev->dev, "the card does not acknowledge a reset\n");
		goto stop;
	}
	card->looked = jiffies;
	card->beats = READ_ONCE(card->card_page->heartbeat.beats);
	queue_delayed_work(system_long_wq, &card->housekeeping, 0);
	error = peal_chardev_add(card);
	if (error)
		goto stop;
	return 0;

stop:
	/* Interrupts may have asked for housekeeping before it was begun here. */
	WRITE_ONCE(card->gone, true);
	peal_interrupts_stop(card);
	cancel_delayed_work_sync(&card->housekeeping);
clear_master:
	pci_clear_master(pdev);
unmap:
	unmap_bars(card);
	return error;
}

static int peal_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct peal_card *card;
	int error;

	if (!is_peal_card(pdev))
		return -ENODEV;
	error = pci_enable_device_mem(pdev);
	if (error)
		return error;
	error = pci_request_mem_regions(pdev, "peal");
	if (error)
		goto disable;
	card = card_make(pdev);
	if (!card) {
		error = -ENOMEM;
		goto release;
	}
	error = card_start(card);
	if (error)
		goto put;
	pci_set_drvdata(pdev, card);
	dev_info(&pdev->dev, "peal%d: card %pM, %u contexts, %u channels of %u bytes\n", card->index,
		 card->device.mac, card->context_count, card->device.channels,
		 card->device.channel_bytes);
	return 0;

put:
	put_device(&card->dev);
release:
	pci_release_mem_regions(pdev);
disable:
	pci_disable_device(pdev);
	return error;
}

/* Nobody new gets in, those inside are sent home, and mapped windows turn blank. */
static void card_stop(struct peal_card *card)
{
	WRITE_ONCE(card->gone, true);
	peal_wake_all(card);
	synchronize_srcu(&card->users);
	peal_interrupts_stop(card);
	cancel_delayed_work_sync(&card->housekeeping);
	peal_unmap_windows(card);
}

/*
 * May come at any time, with files open, windows mapped and commands under way. First everybody is sent away, then the
 * card is asked to let go, and only then memory is given back.
 */
static void peal_remove(struct pci_dev *pdev)
{
	struct peal_card *card = pci_get_drvdata(pdev);
	unsigned int patience_ms;
	unsigned long leaked;

	if (!card)
		return;
	patience_ms = READ_ONCE(card->dead) ? LAST_WORDS_MS : peal_command_timeout_ms;
	pci_set_drvdata(pdev, NULL);
	peal_chardev_remove(card);
	card_stop(card);
	leaked = peal_forget_all(card, !peal_reset(card, patience_ms));
	if (leaked)
		dev_err(&pdev->dev, "the card did not let go: %lu pages are lost\n", leaked);
	pci_clear_master(pdev);
	unmap_bars(card);
	pci_release_mem_regions(pdev);
	pci_disable_device(pdev);
	put_device(&card->dev);
}

/*
 * Before another kernel takes over: the card must not write into its memory. Processes may still run, so they are sent away
 * first; what they had stays pinned for the rest of this kernel's life.
 */
static void peal_shutdown(struct pci_dev *pdev)
{
	struct peal_card *card = pci_get_drvdata(pdev);

	if (!card)
		return;
	pci_set_drvdata(pdev, NULL);
	card_stop(card);
	if (peal_reset(card, LAST_WORDS_MS))
		dev_err(&pdev->dev, "the card did not let go\n");
	pci_clear_master(pdev);
	pci_disable_device(pdev);
}

/*
 * Suspend and hibernation: the card must not write into memory that is saved, nor into what is restored. For processes the card
 * dies; when the machine wakes, housekeeping finds it alive and begins a new epoch. A card that does not let go keeps
 * the machine awake.
 */
static int peal_suspend(struct device *dev)
{
	struct peal_card *card = dev_get_drvdata(dev);
	int error;

	WRITE_ONCE(card->asleep, true);
	cancel_delayed_work_sync(&card->housekeeping);
	WRITE_ONCE(card->dead, true);
	peal_wake_all(card);
	error = peal_reset(card, LAST_WORDS_MS);
	if (error) {
		dev_err(dev, "the card does not let go, so the machine cannot sleep\n");
		WRITE_ONCE(card->asleep, false);
		peal_housekeeping_now(card);
		return error;
	}
	peal_epoch_ended(card);
	pci_clear_master(card->pdev);
	return 0;
}

static int peal_resume(struct device *dev)
{
	struct peal_card *card = dev_get_drvdata(dev);

	pci_set_master(card->pdev);
	WRITE_ONCE(card->asleep, false);
	peal_housekeeping_now(card);
	return 0;
}

static DEFINE_SIMPLE_DEV_PM_OPS(peal_pm_operations, peal_suspend, peal_resume);

static const struct pci_device_id peal_ids[] = {
	{ PCI_DEVICE(PEAL_PCI_VENDOR, PEAL_PCI_DEVICE) },
	{}
};
MODULE_DEVICE_TABLE(pci, peal_ids);

static struct pci_driver peal_driver = {
	.name = "peal",
	.id_table = peal_ids,
	.probe = peal_probe,
	.remove = peal_remove,
	.shutdown = peal_shutdown,
	.driver.pm = pm_sleep_ptr(&peal_pm_operations),
};

static int __init peal_init(void)
{
	int error;

	/* Windows and channels are handed over in pages of this size. */
	BUILD_BUG_ON(PAGE_SIZE != PEAL_PAGE_BYTES);
	error = peal_chardev_start();
	if (error)
		return error;
	error = pci_register_driver(&peal_driver);
	if (error)
		peal_chardev_stop();
	return error;
}

static void __exit peal_exit(void)
{
	pci_unregister_driver(&peal_driver);
	peal_chardev_stop();
}

module_init(peal_init);
module_exit(peal_exit);
MODULE_DESCRIPTION("Peal: collective communication on the network card");
MODULE_LICENSE("Dual BSD/GPL");
