/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * peal.ko: the kernel's part of a Peal card on PCI. It hands out windows of the card's BAR, pins memory and
 * tells the card where it lies; it never touches a ring, so that no message passes through the kernel.
 *
 * Who may use what, and when:
 *  - A card is alive, dead (no heartbeat, or a command without an answer) or gone (removed). Whoever touches the
 *    card does so between peal_card_enter() and peal_card_leave(); removal waits for all of them, so that nothing in
 *    between may touch a process' memory or wait for ever.
 *  - Memory is unpinned with nothing held, by a work item of its context (unpin.c): that, too, may take for ever.
 *  - An epoch ends when the card acknowledges a reset. A context, memory or channel of an earlier epoch is nothing
 *    to the card any more; only then may its pages go without the card's word on them. Its windows are taken out of
 *    all processes before the card gives them to others.
 *  - Locks, outermost first: file->lock, card->contexts_lock, context->lock, card->reaping, card->mailbox,
 *    card->channels_lock, card->closing_lock. card->events_lock is taken by interrupts and holds nothing else, nor
 *    does context->departing, which is taken where memory is unmapped.
 *    poll(2), page faults and the doorbell take none of them.
 */
#ifndef PEAL_DRIVER_PEAL_H
#define PEAL_DRIVER_PEAL_H

#include <linux/dma-direction.h>
#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#ifndef CONFIG_MMU_NOTIFIER
#error "peal.ko needs a kernel with CONFIG_MMU_NOTIFIER, which CONFIG_KVM selects"
#endif

#include "abi/ioctl.h"
#include "abi/pci.h"

/*
 * For what a process may ask for much of: an allocation that fails where the kernel would have to end somebody for it, in a control
 * group as in the whole machine.
 */
#define PEAL_GFP_MUCH (GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

struct eventfd_ctx;
struct mm_struct;
struct user_struct;
struct peal_card;
struct peal_context;

/* Who sees to the answer of a command whose caller had to go; called with card->mailbox held. */
struct peal_late {
	void (*answered)(struct peal_card *card, const struct peal_late *late,
			 const struct peal_admin_reply *reply);
	struct peal_context *context; /* of OPEN_CONTEXT and CLOSE_CONTEXT: the mailbox' own then */
	u64 channel_list; /* of RESERVE_GROUP */
};

/* A command whose caller was killed, or whose card died: opcode is 0 when there is none. */
struct peal_unanswered {
	u16 opcode;
	struct peal_late late;
};

struct peal_card {
	struct kref references; /* probe's until removal, and each open file's */
	struct miscdevice misc;
	char name[16]; /* of the device */
	struct pci_dev *pdev; /* not used any more once gone */
	int index;

	void __iomem *registers; /* BAR0 */
	void *bar; /* BAR2: plain memory, shared with the card */
	u64 bar_bytes;
	const struct peal_pci_card_page *card_page;
	struct peal_pci_host_page *host_page;
	u64 windows_offset;
	u32 context_count;
	u32 window_bytes;
	struct peal_device device; /* a copy from probe */

	struct srcu_struct users;
	bool gone;
	bool dead;
	bool asleep; /* not started yet, or the machine sleeps: no housekeeping */
	wait_queue_head_t state_wait; /* poll() */

	struct mutex mailbox; /* one command at a time, down to epoch */
	wait_queue_head_t mailbox_wait;
	u64 serial;
	unsigned long command_end; /* jiffies: the card is dead then */
	struct peal_unanswered unanswered;
	atomic64_t epoch; /* of the driver: acknowledged resets; read without the lock */

	struct mutex contexts_lock;
	struct list_head contexts; /* of open files */
	spinlock_t closing_lock;
	struct list_head closing; /* closed files that the card, or a late DMA, still refers to */

	struct mutex channels_lock;
	struct list_head channels;
	u32 channel_count;
	u64 channels_reaped; /* of card_page->channels_released */
	struct mutex reaping;

	spinlock_t events_lock; /* also each context's event */
	struct list_head listeners;

	struct delayed_work housekeeping;
	u64 beats;
	unsigned long looked; /* jiffies */
	unsigned long silence; /* jiffies without a beat, while we looked */
};

/* An open file. */
struct peal_file {
	struct peal_card *card;
	struct address_space *mapping; /* of the device node, for taking mappings away */
	struct mutex lock; /* who takes the context */
	struct peal_context *context; /* set once, with lock held; read without it */
};

struct peal_context {
	struct kref references; /* its owner's (context.c), and its unpinning's while that is queued or runs */
	struct peal_card *card;
	struct list_head link; /* contexts or closing */
	u64 epoch;
	u32 id; /* the card's */
	u64 window; /* offset into BAR2 */
	struct address_space *mapping; /* the file's */
	struct page *scratch; /* what a window shows where it may be written, when its card is gone */

	spinlock_t departing; /* the next five */
	struct list_head departed; /* memory that has left its process, and of which that has not been told */
	struct page *departures; /* how often that happened, for the process to look at */
	struct list_head let_go; /* memory that the card has let go of, to be unpinned */
	unsigned long to_unpin; /* how often there was some, */
	unsigned long unpinned; /* and how often that was done: read without the lock */
	struct work_struct unpinning;
	wait_queue_head_t unpinned_wait;

	struct mutex lock; /* everything below */
	struct xarray keys; /* of memory the card has acknowledged */
	struct list_head memory; /* that, and what the card never answered about */

	struct list_head listen; /* events_lock */
	struct eventfd_ctx *event; /* events_lock */
};

/* Pages that the card can reach, and their list in the form the card copies. */
struct peal_pages {
	struct page **pages;
	unsigned long count;
	struct sg_table table;
	enum dma_data_direction direction; /* of the mapping */
	bool mapped;
	__le64 *list;
	dma_addr_t list_address;
	size_t list_bytes;
};

/* A stretch of a process' memory, pinned. */
struct peal_memory {
	struct list_head link; /* context->memory, then context->let_go */
	struct mmu_interval_notifier notifier;
	struct peal_context *context;
	struct list_head departed; /* context->departed; empty where it is not on it */
	struct peal_pages pages;
	struct mm_struct *mm; /* whose account the pages are on, until they are unpinned */
	u32 key; /* 0: not known yet, or not any more */
	bool written; /* by the card */
};

/* The channels of one group member: kernel memory that outlives the context. */
struct peal_channels {
	struct list_head link;
	struct peal_pages pages;
	u64 epoch;
	struct user_struct *user; /* whose account the pages are on */
	unsigned long charged;
};

/* An administrative command of a process, on its way to the card and back. */
struct peal_ask {
	struct peal_context *context;
	struct peal_admin_command command; /* the process', and then the card's */
	struct peal_admin_reply reply;
	struct peal_late late; /* answered: NULL where nobody has to see to it */
	struct peal_memory *memory; /* of REGISTER_MEMORY */
	struct peal_channels *channels; /* of RESERVE_GROUP */
	bool unpins; /* gives memory back: the caller waits until that is unpinned */
};

/* card.c: life and death */
bool peal_card_enter(struct peal_card *card, int *token); /* false: the card is gone */
void peal_card_leave(struct peal_card *card, int token);
void peal_card_put(struct peal_card *card); /* the last one frees it */
int peal_card_error(struct peal_card *card); /* -ENODEV when gone, else -EIO */
void peal_card_died(struct peal_card *card, const char *why);
void peal_wake_all(struct peal_card *card);
u64 peal_epoch(struct peal_card *card);
void peal_housekeeping_now(struct peal_card *card);
int peal_context_check(const struct peal_context *context); /* -EIO: the card knows nothing of it */
int peal_context_enter(struct peal_context *context, int *token); /* to peal_card_leave() */
int peal_context_begin(struct peal_context *context, int *token); /* the same, with context->lock */
void peal_context_end(struct peal_context *context, int token);
void peal_context_give_up(struct peal_context *context); /* to card->closing */
void peal_context_put(struct peal_context *context); /* the last one frees it */

/* bars.c */
bool peal_is_card(struct pci_dev *pdev);
int peal_bars_map(struct peal_card *card);
void peal_bars_unmap(struct peal_card *card);
int peal_bars_read(struct peal_card *card);
bool peal_same_card(struct peal_card *card);

/* admin.c: the mailbox. -ETIMEDOUT: the command was given and the card never said what became of it. */
void peal_command_init(struct peal_admin_command *command, u16 opcode, u32 context);
int peal_admin(struct peal_card *card, u64 epoch, struct peal_admin_command *command,
	       struct peal_admin_reply *reply, const struct peal_late *late); /* late: may be NULL */
bool peal_settle(struct peal_card *card);
int peal_lock_impatiently(struct mutex *lock);
int peal_reset(struct peal_card *card, unsigned int timeout_ms); /* a new epoch */
extern unsigned int peal_command_timeout_ms;

/* heartbeat.c */
void peal_housekeeping(struct work_struct *work);
void peal_epoch_ended(struct peal_card *card);

/* interrupt.c */
int peal_interrupts_start(struct peal_card *card);
void peal_interrupts_stop(struct peal_card *card);
void peal_doorbell(struct peal_card *card, u32 vector);
u32 peal_doorbell_value(u32 vector);
int peal_set_event(struct peal_context *context, int fd);
void peal_clear_event(struct peal_context *context);

/* context.c */
struct peal_context *peal_context_open(struct peal_card *card, struct address_space *mapping);
void peal_context_close(struct peal_context *context);
void peal_retry_closing(struct peal_card *card);
bool peal_has_closing(struct peal_card *card);
void peal_forget_epochs(struct peal_card *card); /* of which the card has let go */
unsigned long peal_forget_all(struct peal_card *card, bool let_go); /* how many pages leaked */

/* file.c */
struct peal_file *peal_file_make(struct peal_card *card, struct address_space *mapping);
void peal_file_end(struct peal_file *file);
struct peal_context *peal_file_context(struct peal_file *file);
int peal_file_check(const struct peal_file *file);

/* ask.c: PEAL_IOCTL_ASK */
int peal_ask_card(struct peal_file *file, const void __user *command, void __user *reply);

/* chardev.c, ioctl.c, window.c */
int peal_chardev_add(struct peal_card *card);
void peal_chardev_remove(struct peal_card *card);
long peal_ioctl(struct file *file, unsigned int command, unsigned long argument);
int peal_mmap(struct file *file, struct vm_area_struct *vma);
void peal_unmap_windows(struct peal_card *card);
u32 peal_doorbell_page_bytes(struct peal_card *card);

/* pages.c */
int peal_pages_map(struct peal_card *card, struct peal_pages *pages);
void peal_pages_drop_list(struct peal_card *card, struct peal_pages *pages);
void peal_pages_unmap(struct peal_card *card, struct peal_pages *pages);
void peal_pages_leak(struct peal_pages *pages);

/* memory.c */
int peal_register_pin(struct peal_ask *ask);
int peal_register_before(struct peal_ask *ask);
int peal_register_after(struct peal_ask *ask, int error);
int peal_unregister_after(struct peal_ask *ask, int error);
bool peal_next_departed(struct peal_context *context, u32 *key); /* false: there is none */
/* With context->lock held, or when nobody else has the context. */
void peal_memory_free_all(struct peal_context *context);
unsigned long peal_memory_leak_all(struct peal_context *context); /* how many pages */

/* unpin.c */
int peal_unpinning_start(void);
void peal_unpinning_stop(void);
void peal_unpin_all(struct work_struct *work);
void peal_unpin(struct peal_memory *memory); /* soon, and frees it then; the card has nothing of it any more */
/* Until what is to be unpinned by now is, or the caller is killed. With nothing held. */
void peal_wait_unpinned(struct peal_context *context);

/* group.c */
int peal_reserve_before(struct peal_ask *ask);
int peal_reserve_after(struct peal_ask *ask, int error);
void peal_reap_channels(struct peal_card *card);
void peal_channels_free_epochs(struct peal_card *card, u64 current_epoch);
unsigned long peal_channels_leak_all(struct peal_card *card);

#endif
