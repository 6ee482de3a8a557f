// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * /dev/pealN: a misc device per card. What an open file can do is in ioctl.c and window.c, what it has in file.c.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>

#include "peal.h"

#define CARDS_MAX 64

static DEFINE_IDA(indices);

/*
 * With misc_mtx held, the one lock of all misc devices: nothing here waits, least of all for the card. It also keeps the
 * card from going before the file has it.
 */
static int peal_open(struct inode *inode, struct file *file)
{
	struct peal_card *card = container_of(file->private_data, struct peal_card, misc);
	struct peal_file *opened;

	if (READ_ONCE(card->gone) || READ_ONCE(card->dead))
		return peal_card_error(card);
	opened = peal_file_make(card, file->f_mapping);
	if (!opened)
		return -ENOMEM;
	file->private_data = opened;
	return 0;
}

static int peal_release(struct inode *inode, struct file *file)
{
	peal_file_end(file->private_data);
	return 0;
}

/* Never readable: completions are told by the eventfd. Only bad news comes this way. No lock: it never waits. */
static __poll_t peal_poll(struct file *file, poll_table *table)
{
	struct peal_file *opened = file->private_data;
	struct peal_card *card = opened->card;

	poll_wait(file, &card->state_wait, table);
	if (READ_ONCE(card->gone))
		return EPOLLHUP | EPOLLERR;
	return peal_file_check(opened) ? EPOLLERR : 0;
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

int peal_chardev_add(struct peal_card *card)
{
	int error;

	card->index = ida_alloc_max(&indices, CARDS_MAX - 1, GFP_KERNEL);
	if (card->index < 0)
		return card->index;
	snprintf(card->name, sizeof(card->name), "peal%d", card->index);
	card->misc.minor = MISC_DYNAMIC_MINOR;
	card->misc.name = card->name;
	card->misc.fops = &peal_file_operations;
	card->misc.parent = &card->pdev->dev;
	error = misc_register(&card->misc);
	if (error)
		ida_free(&indices, card->index);
	return error;
}

/* Open files go on; nobody can open it any more, nor is anybody about to. */
void peal_chardev_remove(struct peal_card *card)
{
	misc_deregister(&card->misc);
	ida_free(&indices, card->index);
}
