// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/pci/page_list.h"

#include <cstring>

namespace peal::nic {

peal_status copy_page_list(const emulator::BusWindow& bus, const PageListRequest& request,
                           emulator::PageList* pages) {
  if (request.page_shift < 12 || request.page_shift > 30) return PEAL_STATUS_BAD_FLAGS;
  const uint64_t page_bytes = uint64_t{1} << request.page_shift;
  if (request.first_page_offset >= page_bytes) return PEAL_STATUS_BAD_FLAGS;
  // No sum below overflows once this holds; and a list is never longer than the guest's memory.
  if (request.bytes == 0 || request.bytes > bus.bytes) return PEAL_STATUS_BAD_LENGTH;
  const uint64_t span = request.first_page_offset + request.bytes;
  const uint64_t count = (span + page_bytes - 1) >> request.page_shift;
  const uint64_t list_bytes = count * sizeof(uint64_t);
  if (request.list_address % sizeof(uint64_t) != 0 || list_bytes > bus.bytes ||
      request.list_address > bus.bytes - list_bytes)
    return PEAL_STATUS_BAD_ADDRESS;
  pages->addresses.resize(count);
  std::memcpy(pages->addresses.data(), bus.base + request.list_address, list_bytes);
  pages->page_shift = request.page_shift;
  pages->first_page_offset = request.first_page_offset;
  return emulator::pages_fit(bus, *pages, request.bytes) ? PEAL_STATUS_OK : PEAL_STATUS_BAD_ADDRESS;
}

}  // namespace peal::nic
