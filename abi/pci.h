/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * The card as a PCI device: QEMU's ivshmem-doorbell (1af4:1110) behind which an emulator plays the card. BAR0 holds
 * the doorbell register, BAR1 the MSI-X table, BAR2 is plain RAM: one mailbox page pair, then one window per context.
 * Doorbells are hints: the card looks at every tail it owns when any of them rings.
 */
#ifndef PEAL_ABI_PCI_H
#define PEAL_ABI_PCI_H

#include "abi/admin.h"
#include "abi/types.h"
#include "abi/window.h"

#define PEAL_PCI_VENDOR 0x1af4
#define PEAL_PCI_DEVICE 0x1110

#define PEAL_PCI_BAR0_DOORBELL 12 /* write: peer << 16 | vector */
#define PEAL_PCI_CARD_PEER 1 /* ivshmem id of the card; the guest is 0 */
#define PEAL_PCI_VECTOR_ADMIN 0 /* both ways: mailbox has news */
#define PEAL_PCI_VECTOR_QUEUES 1 /* both ways: rings have news */
#define PEAL_PCI_VECTORS 2

/* BAR2, offset 0: written by the card only. */
struct peal_pci_card_page {
	uint32_t magic; /* PEAL_PCI_MAGIC, written last, once the card is ready */
	uint32_t abi_version;
	uint32_t context_count; /* windows in the BAR */
	uint32_t window_bytes; /* stride of the windows */
	uint64_t windows_offset; /* of window 0, bytes into the BAR */
	uint32_t reset_epoch; /* acknowledges peal_pci_host_page.reset_epoch */
	uint32_t reserved0;
	uint8_t reserved1[32];
	struct peal_device device; /* context is zero here */
	struct peal_heartbeat heartbeat;
	uint64_t reply_serial; /* equals command_serial once the reply is complete */
	uint64_t channels_released; /* grows by one with each that REAP_CHANNELS will name */
	uint8_t reserved2[48];
	uint8_t reserved3[256];
	struct peal_admin_reply reply;
	uint8_t reserved4[PEAL_PAGE_BYTES - 1024];
};

/* BAR2, offset 0x1000: written by the driver only. */
struct peal_pci_host_page {
	uint32_t reset_epoch; /* a new value asks the card to let go of everything */
	uint8_t reserved0[60];
	uint64_t command_serial; /* grows by one per command, written last */
	uint8_t reserved1[56];
	uint8_t reserved2[384];
	struct peal_admin_command command;
	uint8_t reserved3[PEAL_PAGE_BYTES - 1024];
};

#define PEAL_PCI_MAGIC 0x63706c70u /* "plpc" in memory order */
#define PEAL_PCI_CARD_PAGE 0x0000
#define PEAL_PCI_HOST_PAGE 0x1000
#define PEAL_PCI_WINDOWS 0x2000

PEAL_CHECK_FIELD(struct peal_pci_card_page, device, 64, 64);
PEAL_CHECK_FIELD(struct peal_pci_card_page, heartbeat, 128, 64);
PEAL_CHECK_FIELD(struct peal_pci_card_page, reply_serial, 192, 8);
PEAL_CHECK_FIELD(struct peal_pci_card_page, channels_released, 200, 8);
PEAL_CHECK_FIELD(struct peal_pci_card_page, reply, 512, 512);
PEAL_CHECK_SIZE(struct peal_pci_card_page, PEAL_PAGE_BYTES);
PEAL_CHECK_FIELD(struct peal_pci_host_page, command_serial, 64, 8);
PEAL_CHECK_FIELD(struct peal_pci_host_page, command, 512, 512);
PEAL_CHECK_SIZE(struct peal_pci_host_page, PEAL_PAGE_BYTES);

#endif
