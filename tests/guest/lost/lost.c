/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * Loses memory on purpose: kmemleak is silent about what is younger than some seconds, and what it
 * says of these (guest_vm.py knows them by their text) says that it has judged all that is older.
 */
#include <linux/module.h>
#include <linux/slab.h>

/* A word on some stack may still look like the address of one or two. */
#define LOST 8

static int __init lost_init(void) {
  int i;

  for (i = 0; i < LOST; i++) {
    char* lost = kmalloc(64, GFP_KERNEL);

    if (!lost) return -ENOMEM;
    strscpy(lost, "lost on purpose", 64);
  }
  /* Nothing stays but what is lost. */
  return -EAGAIN;
}

module_init(lost_init);
MODULE_DESCRIPTION("Loses memory on purpose");
MODULE_LICENSE("Dual BSD/GPL");
