// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * Making pages reachable for the card: DMA addresses, and the list of them that the card copies. Whose pages they
 * are is memory.c's (pinned from a process) or group.c's (the kernel's own) business.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "peal.h"

/*
 * Memory may be registered twice, and then the same cache line is mapped twice. That is in order where nothing is ever
 * copied or flushed for the card, which is the only memory that is taken (bounced()).
 */
#define ATTRIBUTES DMA_ATTR_SKIP_CPU_SYNC

/* The card would write into a copy that nobody brings back. */
static bool bounced(struct device *dev, struct sg_table *table)
{
	struct scatterlist *entry;
	int i;

	for_each_sgtable_dma_sg(table, entry, i) {
		if (dma_need_sync(dev, sg_dma_address(entry)))
			return true;
	}
	return false;
}

static int make_list(struct peal_card *card, struct peal_pages *pages)
{
	struct sg_dma_page_iter iter;
	unsigned long n = 0;

	pages->list_bytes = pages->count * sizeof(*pages->list);
	pages->list = dma_alloc_coherent(&card->pdev->dev, pages->list_bytes, &pages->list_address,
					 PEAL_GFP_MUCH);
	if (!pages->list)
		return -ENOMEM;
	for_each_sgtable_dma_page(&pages->table, &iter, 0) {
		if (n == pages->count)
			return -EIO;
		pages->list[n++] = cpu_to_le64(sg_page_iter_dma_address(&iter));
	}
	return n == pages->count ? 0 : -EIO;
}

/* On failure nothing is left mapped; the pages stay the caller's. */
int peal_pages_map(struct peal_card *card, struct peal_pages *pages)
{
	struct device *dev = &card->pdev->dev;
	int error;

	error = sg_alloc_table_from_pages(&pages->table, pages->pages, pages->count, 0,
					  pages->count << PAGE_SHIFT, PEAL_GFP_MUCH);
	if (error)
		return error;
	error = dma_map_sgtable(dev, &pages->table, pages->direction, ATTRIBUTES);
	if (error) {
		sg_free_table(&pages->table);
		return error;
	}
	pages->mapped = true;
	error = bounced(dev, &pages->table) ? -EOPNOTSUPP : make_list(card, pages);
	if (error)
		peal_pages_unmap(card, pages);
	return error;
}

void peal_pages_drop_list(struct peal_card *card, struct peal_pages *pages)
{
	if (!pages->list)
		return;
	dma_free_coherent(&card->pdev->dev, pages->list_bytes, pages->list, pages->list_address);
	pages->list = NULL;
}

/* The card may still use these addresses: they stay mapped for ever, and our record of them goes. No page is left to give back. */
void peal_pages_leak(struct peal_pages *pages)
{
	if (pages->mapped)
		sg_free_table(&pages->table);
	pages->mapped = false;
	pages->count = 0;
}

void peal_pages_unmap(struct peal_card *card, struct peal_pages *pages)
{
	peal_pages_drop_list(card, pages);
	if (!pages->mapped)
		return;
	dma_unmap_sgtable(&card->pdev->dev, &pages->table, pages->direction, ATTRIBUTES);
	sg_free_table(&pages->table);
	pages->mapped = false;
}
