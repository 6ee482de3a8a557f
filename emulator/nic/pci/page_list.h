// SPDX-License-Identifier: BSD-2-Clause
// Page lists that a guest's driver leaves in its memory (abi/admin.h): copied once, then checked,
// because the guest may change them at any time.
#pragma once

#include <cstdint>

#include "abi/status.h"
#include "emulator/common/region_table.h"

namespace peal::nic {

struct PageListRequest {
  uint64_t list_address;  // bus address of the list
  uint64_t bytes;         // of the region
  uint32_t first_page_offset;
  uint32_t page_shift;
};

// OK and a list whose pages all lie within `bus` and hold the bytes; else what was wrong:
// BAD_ADDRESS (list or a page outside the guest's memory, or not aligned), BAD_LENGTH (zero, or
// more than the guest has), BAD_FLAGS (page size or offset).
peal_status copy_page_list(const emulator::BusWindow& bus, const PageListRequest& request,
                           emulator::PageList* pages);

}  // namespace peal::nic
