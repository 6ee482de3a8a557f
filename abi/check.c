/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/* Compiles every header of the seam as C, so that its layout assertions run on every target. */
#include "abi/admin.h"
#include "abi/counters.h"
#include "abi/ioctl.h"
#include "abi/pci.h"
#include "abi/queue.h"
#include "abi/ring.h"
#include "abi/status.h"
#include "abi/window.h"
#include "abi/wire.h"
