// SPDX-License-Identifier: BSD-2-Clause
// The mailbox: one command at a time, copied once, checked, carried out by the card's Admin; and
// what a guest's memory means to it. Windows stand for contexts (see pci_interface.h).
#include <algorithm>
#include <cstring>
#include <utility>

#include "emulator/nic/pci/page_list.h"
#include "emulator/nic/pci/pci_interface.h"
#include "firmware/channels.h"

namespace peal::nic {
namespace {

// A guest that never asks which channels were let go of gets no more.
constexpr size_t kChannelsMax = emulator::kRegionsPerCard;

}  // namespace

bool PciInterface::poll_mailbox(TimeNs now) {
  const peal_pci_host_page* const host = host_page();
  const uint32_t epoch = __atomic_load_n(&host->reset_epoch, __ATOMIC_ACQUIRE);
  if (epoch != reset_epoch_) {
    reset_epoch_ = epoch;
    let_go(Phase::kResetting, now);
    return true;
  }
  const uint64_t serial = __atomic_load_n(&host->command_serial, __ATOMIC_ACQUIRE);
  if (serial == command_serial_) return false;
  command_serial_ = serial;
  peal_admin_command command;
  std::memcpy(&command, &host->command, sizeof(command));
  peal_admin_reply reply = {};
  counts_.commands++;
  carry_out(command, now, &reply);
  if (reply.status != PEAL_STATUS_OK) counts_.commands_refused++;
  peal_pci_card_page* const page = card_page();
  std::memcpy(&page->reply, &reply, sizeof(reply));
  __atomic_store_n(&page->reply_serial, serial, __ATOMIC_RELEASE);
  services_.ring(interrupts_[PEAL_PCI_VECTOR_ADMIN]);
  return true;
}

void PciInterface::carry_out(const peal_admin_command& command, TimeNs now,
                             peal_admin_reply* reply) {
  switch (command.opcode) {
    case PEAL_ADMIN_OPEN_CONTEXT:
      if (command.context != 0) {
        emulator::Admin::refuse(command, PEAL_STATUS_BAD_FLAGS, reply);
        return;
      }
      opening_ = kWindows;
      card_.admin->execute(command, PEAL_ADMIN_BYTES, emulator::kNoContext, *this, now, reply);
      if (reply->status == PEAL_STATUS_OK) reply->u.open.context = opening_;
      return;
    case PEAL_ADMIN_REAP_CHANNELS:
      reap(command, reply);
      return;
    default:
      for_window(command, now, reply);
  }
}

void PciInterface::for_window(const peal_admin_command& command, TimeNs now,
                              peal_admin_reply* reply) {
  if (command.context >= kWindows || windows_[command.context].use == WindowUse::kFree) {
    emulator::Admin::refuse(command, PEAL_STATUS_CLOSED, reply);
    return;
  }
  Window& window = windows_[command.context];
  const bool closes = command.opcode == PEAL_ADMIN_CLOSE_CONTEXT;
  if (window.use == WindowUse::kEnded) {
    emulator::Admin::refuse(command, closes ? PEAL_STATUS_OK : PEAL_STATUS_CLOSED, reply);
    if (closes) window = Window{};
    return;
  }
  const uint64_t list_address = command.u.reserve.channel_pages;
  card_.admin->execute(command, PEAL_ADMIN_BYTES, window.context, *this, now, reply);
  if (closes && reply->status == PEAL_STATUS_OK) window = Window{};
  // Refused channels are the driver's again by that very answer; make_channels() may have had them.
  if (command.opcode == PEAL_ADMIN_RESERVE_GROUP && reply->status != PEAL_STATUS_OK)
    std::erase(channels_->released, list_address);
}

void PciInterface::reap(const peal_admin_command& command, peal_admin_reply* reply) {
  static constexpr uint8_t kZeros[sizeof(command.u.bytes_)] = {};
  peal_status status = PEAL_STATUS_OK;
  if (command.version != PEAL_ABI_VERSION || command.bytes != PEAL_ADMIN_BYTES)
    status = PEAL_STATUS_BAD_VERSION;
  else if (command.context != 0 || command.reserved != 0 ||
           std::memcmp(command.u.bytes_, kZeros, sizeof(kZeros)) != 0)
    status = PEAL_STATUS_BAD_FLAGS;
  emulator::Admin::refuse(command, status, reply);
  if (status != PEAL_STATUS_OK) return;
  announce_released();  // so that the count in the card page covers all that are named here
  std::vector<uint64_t>& released = channels_->released;
  const size_t count = std::min<size_t>(released.size(), PEAL_CHANNELS_PER_REPLY);
  std::copy_n(released.begin(), count, reply->u.reap.lists);
  released.erase(released.begin(), released.begin() + static_cast<ptrdiff_t>(count));
  reply->u.reap.count = static_cast<uint32_t>(count);
  reply->u.reap.more = static_cast<uint32_t>(released.size());
  announced_ = released.size();
}

// Tells the driver that there is something to reap.
bool PciInterface::announce_released() {
  const size_t waiting = channels_->released.size();
  if (waiting <= announced_) return false;
  const uint64_t total = card_page()->channels_released + (waiting - announced_);
  announced_ = waiting;
  __atomic_store_n(&card_page()->channels_released, total, __ATOMIC_RELEASE);
  services_.ring(interrupts_[PEAL_PCI_VECTOR_ADMIN]);
  return true;
}

peal_status PciInterface::open_window(ContextId context, uint64_t* offset) {
  for (uint32_t i = 0; i < kWindows; i++) {
    if (windows_[i].use != WindowUse::kFree) continue;
    windows_[i] = {WindowUse::kOpen, context};
    opening_ = i;
    *offset = PEAL_PCI_WINDOWS + uint64_t{i} * emulator::kWindowBytes;
    card_.windows->open(context, static_cast<uint8_t*>(bar_->base) + *offset,
                        PEAL_CAPABILITY_PAGE_LISTS, this);
    return PEAL_STATUS_OK;
  }
  return PEAL_STATUS_NO_RESOURCES;
}

void PciInterface::context_gone(ContextId context) {
  for (Window& window : windows_) {
    if (window.use == WindowUse::kOpen && window.context == context)
      window = {WindowUse::kEnded, emulator::kNoContext};
  }
}

peal_status PciInterface::make_memory(const peal_register_memory& request, RegionId* region) {
  if (request.kind != PEAL_MEMORY_PAGES) return PEAL_STATUS_BAD_FLAGS;
  emulator::PageList pages;
  const peal_status status = copy_page_list(
      memory_->bus(),
      {request.address, request.bytes, request.first_page_offset, request.page_shift}, &pages);
  if (status != PEAL_STATUS_OK) {
    counts_.page_lists_refused++;
    return status;
  }
  // A guest that names the same pages in all of its keys would have us keep lists without end.
  const uint64_t entries = pages.addresses.size();
  if (*listed_ + entries > kListsOfAll * (memory_->bus().bytes >> 12)) {
    return PEAL_STATUS_NO_RESOURCES;
  }
  *listed_ += entries;  // before: without a region it is released at once
  auto release = [listed = listed_, entries] { *listed -= entries; };
  *region = card_.regions->put_pages(memory_->bus(), std::move(pages), request.bytes, release);
  return *region == emulator::kNoRegion ? PEAL_STATUS_NO_RESOURCES : PEAL_STATUS_OK;
}

peal_status PciInterface::make_channels(const peal_reserve_group& request, RegionId* region) {
  if (request.channel_list_bytes != kChannelsBytes) return PEAL_STATUS_BAD_LENGTH;
  if (channels_->held.size() + channels_->released.size() >= kChannelsMax)
    return PEAL_STATUS_NO_RESOURCES;
  emulator::PageList pages;
  const peal_status status =
      copy_page_list(memory_->bus(), {request.channel_pages, kChannelsBytes, 0, 12}, &pages);
  if (status != PEAL_STATUS_OK) {
    counts_.page_lists_refused++;
    return status;
  }
  // The region table may outlive us, so the function holds the list and not us.
  auto release = [channels = channels_, serial = ++channels_->serial] {
    const auto found =
        std::find_if(channels->held.begin(), channels->held.end(),
                     [serial](const HeldChannels& held) { return held.serial == serial; });
    if (found == channels->held.end()) return;
    channels->released.push_back(found->list_address);
    channels->held.erase(found);
  };
  *region = card_.regions->put_pages(memory_->bus(), std::move(pages), kChannelsBytes, release);
  if (*region == emulator::kNoRegion) return PEAL_STATUS_NO_RESOURCES;
  channels_->held.push_back({channels_->serial, request.channel_pages, *region});
  return PEAL_STATUS_OK;
}

void PciInterface::wake_host(emulator::ContextWindow& /*window*/) {
  services_.ring(interrupts_[PEAL_PCI_VECTOR_QUEUES]);
}

}  // namespace peal::nic
