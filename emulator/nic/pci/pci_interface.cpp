// SPDX-License-Identifier: BSD-2-Clause
// Guests come and go, resets, and the heartbeat;
// the mailbox and the memory behind it are in pci_mailbox.cpp.
#include "emulator/nic/pci/pci_interface.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

namespace peal::nic {
namespace {

// How often the sockets are looked at while the loop is awake.
constexpr TimeNs kLookNs = 10'000'000;

}  // namespace

constexpr uint64_t PciInterface::bar_bytes() {
  return std::bit_ceil(uint64_t{PEAL_PCI_WINDOWS} + uint64_t{kWindows} * emulator::kWindowBytes);
}

std::unique_ptr<HostInterface> make_pci_interface(const PciOptions& options, CardHost card,
                                                  LoopServices& services, std::string* error) {
  auto interface = std::make_unique<PciInterface>(card, services);
  *error = interface->start(options);
  if (!error->empty()) return nullptr;
  return interface;
}

std::string PciInterface::start(const PciOptions& options) {
  doorbell_fds_.fill(-1);
  interrupt_fds_.fill(-1);
  interrupts_.fill(kNoWakeSlot);
  std::string error;
  memory_ = GuestMemory::create(options.ram_path, options.ram_bytes, &error);
  if (memory_ == nullptr) return error;
  // Last, because QEMU starts as soon as somebody listens.
  error = server_.listen(options.socket_path);
  if (error.empty() && !services_.watch(server_.listen_fd()))
    return "cannot watch the ivshmem socket";
  return error;
}

PciInterface::~PciInterface() {
  close_bar();
  server_.close();
}

peal_pci_card_page* PciInterface::card_page() const {
  return reinterpret_cast<peal_pci_card_page*>(static_cast<uint8_t*>(bar_->base) +
                                               PEAL_PCI_CARD_PAGE);
}

const peal_pci_host_page* PciInterface::host_page() const {
  return reinterpret_cast<const peal_pci_host_page*>(static_cast<uint8_t*>(bar_->base) +
                                                     PEAL_PCI_HOST_PAGE);
}

bool PciInterface::poll(TimeNs now) {
  bool any = false;
  if (now >= next_look_ns_) {
    next_look_ns_ = now + kLookNs;
    any |= look_at_socket(now);
  }
  switch (phase_) {
    case Phase::kWaiting:
      break;
    case Phase::kRunning:
      any |= poll_mailbox(now);
      any |= announce_released();
      break;
    case Phase::kResetting:
      if (finish_letting_go()) {
        finish_reset();
        any = true;
      }
      break;
    case Phase::kLeaving:
      if (finish_letting_go()) {
        close_bar();
        phase_ = Phase::kWaiting;
        any = true;
      }
      break;
  }
  return any;
}

void PciInterface::awake(TimeNs now) { next_look_ns_ = now; }

bool PciInterface::look_at_socket(TimeNs now) {
  if (phase_ == Phase::kLeaving) return false;
  if (phase_ == Phase::kWaiting) return server_.accept() && welcome();
  if (server_.guest_present()) {
    if (server_.turn_away()) counts_.guests_turned_away++;
    return false;
  }
  counts_.guests_gone++;
  services_.unwatch(server_.guest_fd());
  server_.hang_up();
  let_go(Phase::kLeaving, now);
  return true;
}

// A guest has connected: a BAR of its own, with nothing of an earlier guest in it.
bool PciInterface::welcome() {
  bool ok = open_bar() && services_.watch(server_.guest_fd());
  if (ok) {
    ok = server_.greet({bar_fd_, doorbell_fds_, interrupt_fds_});
    if (!ok) services_.unwatch(server_.guest_fd());
  }
  if (!ok) {
    counts_.greetings_failed++;
    server_.hang_up();
    close_bar();
    return true;
  }
  counts_.guests++;
  phase_ = Phase::kRunning;
  return true;
}

bool PciInterface::open_bar() {
  bar_ = create_shared("peal-bar2", bar_bytes(), Sharing::kReadWrite, &bar_fd_);
  if (bar_ == nullptr) return false;
  for (uint32_t vector = 0; vector < PEAL_PCI_VECTORS; vector++) {
    doorbell_fds_[vector] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    interrupt_fds_[vector] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (doorbell_fds_[vector] < 0 || interrupt_fds_[vector] < 0 ||
        !services_.watch(doorbell_fds_[vector]))
      return false;
    interrupts_[vector] = services_.add_wake_eventfd(interrupt_fds_[vector]);
    if (interrupts_[vector] == kNoWakeSlot) return false;
  }
  command_serial_ = 0;
  reset_epoch_ = 0;
  announced_ = 0;
  peal_pci_card_page* const page = card_page();
  page->abi_version = PEAL_ABI_VERSION;
  page->context_count = kWindows;
  page->window_bytes = emulator::kWindowBytes;
  page->windows_offset = PEAL_PCI_WINDOWS;
  card_describe(*card_.card, &page->device);
  page->device.capabilities = PEAL_CAPABILITY_PAGE_LISTS;
  page->device.ring_entries = emulator::kRingEntries;
  page->heartbeat.heartbeat_interval_us = beat_interval_us_;
  __atomic_store_n(&page->magic, PEAL_PCI_MAGIC, __ATOMIC_RELEASE);
  return true;
}

// Also after a half-way open_bar().
void PciInterface::close_bar() {
  for (uint32_t vector = 0; vector < PEAL_PCI_VECTORS; vector++) {
    if (interrupts_[vector] != kNoWakeSlot) services_.remove_wake(interrupts_[vector]);
    interrupts_[vector] = kNoWakeSlot;
    if (interrupt_fds_[vector] >= 0) close(interrupt_fds_[vector]);
    interrupt_fds_[vector] = -1;
    if (doorbell_fds_[vector] >= 0) {
      services_.unwatch(doorbell_fds_[vector]);
      close(doorbell_fds_[vector]);
    }
    doorbell_fds_[vector] = -1;
  }
  if (bar_fd_ >= 0) close(bar_fd_);
  bar_fd_ = -1;
  destroy(bar_);
  bar_ = nullptr;
}

// Begins to let go of everything the guest gave: contexts (whose members die, and the others are
// told), memory, channels. finish_letting_go() says when that is over.
void PciInterface::let_go(Phase phase, TimeNs now) {
  phase_ = phase;
  for (Window& window : windows_) {
    // Calls context_gone(), now or later.
    if (window.use == WindowUse::kOpen) card_.admin->close_context(window.context, now);
  }
}

bool PciInterface::finish_letting_go() {
  card_.admin->housekeeping();
  for (const Window& window : windows_) {
    if (window.use == WindowUse::kOpen) return false;
  }
  // Tombstones may still want to answer from their channels; they will find them gone, which a
  // card survives and a guest's memory would not.
  while (!channels_->held.empty()) {
    const RegionId region = channels_->held.back().region;
    // Freeing takes it out of the list.
    if (!card_.regions->free(region)) channels_->held.pop_back();
  }
  channels_->released.clear();
  announced_ = 0;
  windows_.fill(Window{});
  return true;
}

void PciInterface::finish_reset() {
  peal_pci_card_page* const page = card_page();
  counts_.resets++;
  phase_ = Phase::kRunning;
  command_serial_ = __atomic_load_n(&host_page()->command_serial, __ATOMIC_ACQUIRE);
  __atomic_store_n(&page->reply_serial, command_serial_, __ATOMIC_RELEASE);
  __atomic_store_n(&page->reset_epoch, reset_epoch_, __ATOMIC_RELEASE);
  services_.ring(interrupts_[PEAL_PCI_VECTOR_ADMIN]);
}

void PciInterface::beat(uint64_t beats, uint32_t interval_us) {
  beat_interval_us_ = interval_us;
  if (phase_ == Phase::kWaiting) return;
  peal_heartbeat& heartbeat = card_page()->heartbeat;
  heartbeat.heartbeat_interval_us = interval_us;
  __atomic_store_n(&heartbeat.beats, beats, __ATOMIC_RELEASE);
}

void PciInterface::shut_down(TimeNs now) {
  if (server_.guest_fd() >= 0) services_.unwatch(server_.guest_fd());
  if (server_.listen_fd() >= 0) services_.unwatch(server_.listen_fd());
  server_.close();
  if (phase_ != Phase::kWaiting) {
    let_go(Phase::kLeaving, now);
    finish_letting_go();
  }
  memory_->unlink_name();
}

nlohmann::ordered_json PciInterface::counters_json() const {
  return {{"guests", counts_.guests},
          {"guests_gone", counts_.guests_gone},
          {"guests_turned_away", counts_.guests_turned_away},
          {"greetings_failed", counts_.greetings_failed},
          {"resets", counts_.resets},
          {"commands", counts_.commands},
          {"commands_refused", counts_.commands_refused},
          {"page_lists_refused", counts_.page_lists_refused}};
}

}  // namespace peal::nic
