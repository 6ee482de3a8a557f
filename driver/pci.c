// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * The PCI function: finding out that it is a Peal card (other ivshmem devices have the same ids), bringing it to a known
 * state by an acknowledged reset, and taking it away while processes still use it.
 */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/pm.h>
#include <linux/slab.h>

#include "peal.h"

/* A silent card is asked once more before its pages are leaked. */
#define LAST_WORDS_MS 1000

static struct peal_card *card_make(struct pci_dev *pdev)
{
	struct peal_card *card = kzalloc(sizeof(*card), GFP_KERNEL);

	if (!card)
		return NULL;
	if (init_srcu_struct(&card->users)) {
		kfree(card);
		return NULL;
	}
	kref_init(&card->references);
	card->pdev = pdev;
	card->asleep = true;
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
	return card;
}

/* The device is enabled and its regions are ours. */
static int card_start(struct peal_card *card)
{
	struct pci_dev *pdev = card->pdev;
	int error;

	error = peal_bars_map(card);
	if (error)
		return error;
	error = peal_bars_read(card);
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
	WRITE_ONCE(card->asleep, false);
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
	peal_bars_unmap(card);
	return error;
}

static int peal_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct peal_card *card;
	int error;

	if (!peal_is_card(pdev))
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
	peal_card_put(card);
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
	peal_bars_unmap(card);
	pci_release_mem_regions(pdev);
	pci_disable_device(pdev);
	peal_card_put(card);
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

/* Windows and channels are handed over in pages of this size. */
static_assert(PAGE_SIZE == PEAL_PAGE_BYTES);

static int __init peal_init(void)
{
	int error = peal_unpinning_start();

	if (error)
		return error;
	error = pci_register_driver(&peal_driver);
	if (error)
		peal_unpinning_stop();
	return error;
}

static void __exit peal_exit(void)
{
	pci_unregister_driver(&peal_driver);
	peal_unpinning_stop();
}

module_init(peal_init);
module_exit(peal_exit);
MODULE_DESCRIPTION("Peal: collective communication on the network card");
MODULE_LICENSE("Dual BSD/GPL");
