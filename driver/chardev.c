// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * /dev/pealN: one per card. An open file is a context (context.c); what it can do is in ioctl.c and window.c.
 */
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/poll.h>

#include "peal.h"

#define CARDS_MAX 64

static dev_t first_device;
static struct class *peal_class;
static DEFINE_IDA(indices);

static int peal_open(struct inode *inode, struct file *file)
{
	struct peal_card *card = container_of(inode->i_cdev, struct peal_card, cdev);
	struct peal_context *context;
	int token;

	if (!peal_card_enter(card, &token))
		return -ENODEV;
	context = READ_ONCE(card->dead) ? ERR_PTR(-EIO) :
					  peal_context_open(card, file->f_mapping);
	if (!IS_ERR(context))
		file->private_data = context;
	peal_card_leave(card, token);
	return PTR_ERR_OR_ZERO(context);
}

static int peal_release(struct inode *inode, struct file *file)
{
	peal_context_close(file->private_data);
	return 0;
}

/* Never readable: completions are told by the eventfd. Only bad news comes this way. No lock: it never waits. */
static __poll_t peal_poll(struct file *file, poll_table *table)
{
	struct peal_context *context = file->private_data;
	struct peal_card *card = context->card;

	poll_wait(file, &card->state_wait, table);
	if (READ_ONCE(card->gone))
		return EPOLLHUP | EPOLLERR;
	return peal_context_check(context) ? EPOLLERR : 0;
}

static const struct file_operations peal_file_operations = {
	.owner = THIS_MODULE,
	.open = peal_open,
	.release = peal_release,
	.poll = peal_poll,
	.mmap = peal_mmap,
	.unlocked_ioctl = peal_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static void card_release(struct device *dev)
{
	struct peal_card *card = container_of(dev, struct peal_card, dev);

	cleanup_srcu_struct(&card->users);
	kfree(card);
}

/* From here on the card goes with its last reference. */
void peal_chardev_init(struct peal_card *card)
{
	device_initialize(&card->dev);
	card->dev.class = peal_class;
	card->dev.parent = &card->pdev->dev;
	card->dev.release = card_release;
	cdev_init(&card->cdev, &peal_file_operations);
	card->cdev.owner = THIS_MODULE;
}

int peal_chardev_add(struct peal_card *card)
{
	int error;

	card->index = ida_alloc_max(&indices, CARDS_MAX - 1, GFP_KERNEL);
	if (card->index < 0)
		return card->index;
	card->dev.devt = MKDEV(MAJOR(first_device), MINOR(first_device) + card->index);
	error = dev_set_name(&card->dev, "peal%d", card->index);
	if (!error)
		error = cdev_device_add(&card->cdev, &card->dev);
	if (error)
		ida_free(&indices, card->index);
	return error;
}

/* Open files go on; nobody can open it any more. */
void peal_chardev_remove(struct peal_card *card)
{
	cdev_device_del(&card->cdev, &card->dev);
	ida_free(&indices, card->index);
}

int peal_chardev_start(void)
{
	int error = alloc_chrdev_region(&first_device, 0, CARDS_MAX, "peal");

	if (error)
		return error;
	peal_class = class_create(THIS_MODULE, "peal");
	if (IS_ERR(peal_class)) {
		unregister_chrdev_region(first_device, CARDS_MAX);
		return PTR_ERR(peal_class);
	}
	return 0;
}

void peal_chardev_stop(void)
{
	class_destroy(peal_class);
	unregister_chrdev_region(first_device, CARDS_MAX);
	ida_destroy(&indices);
}
