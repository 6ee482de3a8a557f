// SPDX-License-Identifier: BSD-2-Clause
// Mapping and checking of context windows; see window.h.
#include "hostlib/window.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

#include "abi/window.h"

namespace peal::host {
namespace {

// The directory's entry of that type, or null.
// A second one of the same type is another version's business.
const peal_block* find_block(const peal_directory& directory, uint16_t type) {
  const uint32_t count = std::min<uint32_t>(directory.block_count, std::size(directory.blocks));
  for (uint32_t i = 0; i < count; i++) {
    if (directory.blocks[i].type == type && directory.blocks[i].version == 1) {
      return &directory.blocks[i];
    }
  }
  return nullptr;
}

peal_error check_block(const peal_directory& directory, uint16_t type, const char* name,
                       uint32_t offset, uint32_t bytes) {
  const peal_block* block = find_block(directory, type);
  if (block == nullptr) {
    return fail(PEAL_ERR_BAD_VERSION, "the card's directory has no %s block of version 1", name);
  }
  if (block->offset != offset || block->bytes < bytes) {
    return fail(PEAL_ERR_BAD_VERSION,
                "the card's %s block is at 0x%x with %u bytes; this library needs 0x%x and %u",
                name, block->offset, block->bytes, offset, bytes);
  }
  return PEAL_OK;
}

}  // namespace

peal_error map_window(int fd, uint64_t offset, size_t bytes, Window* window) {
  if (bytes < PEAL_WINDOW_BYTES(PEAL_RING_ENTRIES_MIN) ||
      bytes > PEAL_WINDOW_BYTES(PEAL_RING_ENTRIES_MAX) || bytes % PEAL_PAGE_BYTES != 0) {
    return fail(PEAL_ERR_CARD_ANSWER, "the card offers a window of %zu bytes", bytes);
  }
  // One stretch of addresses, two protections: reserve it, then lay both mappings over it.
  void* base = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return fail_errno(PEAL_ERR_SYSTEM, "mmap of %zu bytes", bytes);
  auto* start = static_cast<uint8_t*>(base);
  const bool mapped =
      mmap(start, PEAL_PAGE_BYTES, PROT_READ, MAP_SHARED | MAP_FIXED, fd,
           static_cast<off_t>(offset)) != MAP_FAILED &&
      mmap(start + PEAL_PAGE_BYTES, bytes - PEAL_PAGE_BYTES, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_FIXED, fd, static_cast<off_t>(offset + PEAL_PAGE_BYTES)) != MAP_FAILED;
  if (!mapped) {
    const peal_error error = fail_errno(PEAL_ERR_SYSTEM, "mmap of the card's window");
    munmap(base, bytes);
    return error;
  }
  *window = Window{start, bytes, 0};
  return PEAL_OK;
}

peal_error check_window(Window* window) {
  const auto* page = reinterpret_cast<const peal_card_page*>(window->base);
  const peal_directory& directory = page->directory;
  if (__atomic_load_n(&directory.magic, __ATOMIC_ACQUIRE) != PEAL_WINDOW_MAGIC) {
    return fail(PEAL_ERR_BAD_VERSION, "the window's magic is 0x%08x, not 0x%08x", directory.magic,
                PEAL_WINDOW_MAGIC);
  }
  if (directory.abi_version != PEAL_ABI_VERSION) {
    return fail(PEAL_ERR_BAD_VERSION, "the card speaks ABI version %u, this library %u",
                directory.abi_version, PEAL_ABI_VERSION);
  }
  peal_error error = check_block(directory, PEAL_BLOCK_DEVICE, "device",
                                 offsetof(peal_card_page, device), sizeof(peal_device));
  if (error != PEAL_OK) return error;
  error = check_block(directory, PEAL_BLOCK_HEARTBEAT, "heartbeat",
                      offsetof(peal_card_page, heartbeat), sizeof(peal_heartbeat));
  if (error != PEAL_OK) return error;

  const uint32_t entries = page->device.ring_entries;
  if (entries < PEAL_RING_ENTRIES_MIN || entries > PEAL_RING_ENTRIES_MAX ||
      (entries & (entries - 1)) != 0 || PEAL_WINDOW_BYTES(entries) > window->bytes) {
    return fail(PEAL_ERR_CARD_ANSWER, "rings of %u entries in a window of %zu bytes", entries,
                window->bytes);
  }
  error = check_block(directory, PEAL_BLOCK_SUBMISSION, "submission ring", PEAL_WINDOW_SUBMISSIONS,
                      entries * 64);
  if (error != PEAL_OK) return error;
  error = check_block(directory, PEAL_BLOCK_COMPLETION, "completion ring",
                      PEAL_WINDOW_COMPLETIONS(entries), entries * 64);
  if (error != PEAL_OK) return error;
  window->entries = entries;
  return PEAL_OK;
}

void unmap_window(Window* window) {
  if (window->base != nullptr) munmap(window->base, window->bytes);
  *window = Window{};
}

}  // namespace peal::host
