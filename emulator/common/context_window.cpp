// SPDX-License-Identifier: BSD-2-Clause
// The card page is self-describing: a directory of blocks, each with type, version and place, and
// the magic number written last, so that a client that maps the page early sees nothing rather than
// half of it.
#include "emulator/common/context_window.h"

#include <cassert>
#include <cstring>

namespace peal::emulator {
namespace {

constexpr uint32_t kBlockVersion = 1;

peal_block block(peal_block_type type, uint32_t offset, uint32_t bytes) {
  peal_block result = {};
  result.type = static_cast<uint16_t>(type);
  result.version = kBlockVersion;
  result.offset = offset;
  result.bytes = bytes;
  result.home = PEAL_HOME_WINDOW;
  return result;
}

}  // namespace

void ContextWindow::open(void* memory, uint32_t entries, const Card& card, ContextId context,
                         uint32_t capabilities, HostWaker* waker, WindowMemory state) {
  assert(state_ == WindowState::kFree);
  assert(entries >= PEAL_RING_ENTRIES_MIN && entries <= PEAL_RING_ENTRIES_MAX &&
         (entries & (entries - 1)) == 0);
  if (state == WindowMemory::kUsed) std::memset(memory, 0, PEAL_WINDOW_BYTES(entries));
  memory_ = memory;
  waker_ = waker;
  context_ = context;
  reset_epoch_ = 0;
  reset_request_ = 0;
  dirty_ = false;
  waits_for_room_ = false;
  peal_card_ring_init(&ring_, memory, entries);
  peal_device& device = ring_.card->device;
  card_describe(card, &device);
  device.capabilities = capabilities;
  device.context = context;
  device.ring_entries = entries;
  lay_out(PEAL_WINDOW_BYTES(entries));
  state_ = WindowState::kRunning;
}

void ContextWindow::lay_out(uint32_t window_bytes) {
  peal_directory& directory = ring_.card->directory;
  const uint32_t ring_bytes = ring_.entries * 64;
  const peal_block blocks[] = {
      block(PEAL_BLOCK_DEVICE, offsetof(peal_card_page, device), sizeof(peal_device)),
      block(PEAL_BLOCK_HEARTBEAT, offsetof(peal_card_page, heartbeat), sizeof(peal_heartbeat)),
      block(PEAL_BLOCK_RESET, offsetof(peal_card_page, reset), sizeof(peal_reset_acknowledge)),
      block(PEAL_BLOCK_SUBMISSION, PEAL_WINDOW_SUBMISSIONS, ring_bytes),
      block(PEAL_BLOCK_COMPLETION, PEAL_WINDOW_COMPLETIONS(ring_.entries), ring_bytes),
  };
  static_assert(sizeof(blocks) <= sizeof(directory.blocks));
  std::memcpy(directory.blocks, blocks, sizeof(blocks));
  directory.abi_version = PEAL_ABI_VERSION;
  directory.window_bytes = window_bytes;
  directory.block_count = sizeof(blocks) / sizeof(blocks[0]);
  __atomic_store_n(&directory.magic, PEAL_WINDOW_MAGIC, __ATOMIC_RELEASE);
}

void ContextWindow::close() {
  state_ = WindowState::kFree;
  memory_ = nullptr;
  waker_ = nullptr;
  dirty_ = false;
  waits_for_room_ = false;
}

void ContextWindow::fault() {
  const uint64_t faults = ring_.card->indices.faults + 1;
  __atomic_store_n(&ring_.card->indices.faults, faults, __ATOMIC_RELEASE);
  state_ = WindowState::kBroken;
}

uint32_t ContextWindow::poll(Card& card, uint32_t limit, TimeNs now) {
  waits_for_room_ = false;
  reset_request_ = __atomic_load_n(&ring_.host->reset_epoch.value, __ATOMIC_ACQUIRE);
  if (reset_request_ != reset_epoch_) {
    state_ = WindowState::kReset;
    return 0;
  }
  uint32_t taken = 0;
  while (taken < limit) {
    const int64_t space = peal_card_ring_space(&ring_);
    if (space < 0) {
      fault();
      break;
    }
    // Every submission taken owes one completion, so only as many are taken as completions fit.
    if (space <= int64_t{card_outstanding(card, context_)}) {
      waits_for_room_ = true;
      break;
    }
    peal_submission entry;
    const peal_ring_poll result = peal_card_ring_poll(&ring_, &entry);
    if (result == PEAL_RING_WILD) {
      fault();
      break;
    }
    if (result == PEAL_RING_EMPTY) break;
    taken++;
    card_on_submission(card, context_, entry, now);
  }
  return taken;
}

void ContextWindow::complete(const peal_completion& entry) {
  if (state_ != WindowState::kRunning) return;
  peal_card_ring_complete(&ring_, &entry);
  dirty_ = true;
}

void ContextWindow::flush() {
  dirty_ = false;
  if (state_ == WindowState::kRunning && waker_ != nullptr && peal_card_ring_host_sleeps(&ring_))
    waker_->wake_host(*this);
}

void ContextWindow::set_card_sleeping(bool sleeping) {
  if (state_ == WindowState::kRunning) peal_card_ring_set_sleeping(&ring_, sleeping ? 1 : 0);
}

void ContextWindow::beat(uint64_t beats, uint32_t interval_us) {
  if (state_ != WindowState::kRunning) return;
  ring_.card->heartbeat.heartbeat_interval_us = interval_us;
  __atomic_store_n(&ring_.card->heartbeat.beats, beats, __ATOMIC_RELEASE);
}

void ContextWindow::acknowledge_reset() {
  assert(state_ == WindowState::kReset);
  __atomic_store_n(&ring_.card->reset.epoch, static_cast<uint32_t>(reset_request_),
                   __ATOMIC_RELEASE);
}

}  // namespace peal::emulator
