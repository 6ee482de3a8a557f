#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The first and only service of a test guest: carries out the lines that come over a virtio port and answers with what they
# print, then a line with their exit status. (A UART loses characters when the machine is busy; it has the console.)
/bin/busybox --install -s /bin
export PATH=/bin HOME=/
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
# Only the debug kernel has it.
mount -t debugfs debug /sys/kernel/debug 2>/dev/null
mkdir -p /dev/pts /dev/shm
mount -t tmpfs shm /dev/shm
for module in /modules/*; do
  # These are the tests' to load.
  case $module in *peal.ko | *lost.ko) ;; *) insmod "$module" || echo "init: $module failed" ;; esac
done
ifconfig lo 127.0.0.1 up
# The one port of the one virtio-serial device.
exec <>/dev/vport0p1 >&0 2>&1
echo "@@ready"
while read -r line; do
  (eval "$line") </dev/null
  printf '\n@@status %d\n' $?
done
poweroff -f
