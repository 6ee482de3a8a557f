// SPDX-License-Identifier: BSD-2-Clause
// The card as a PCI device of one QEMU guest (abi/pci.h): greets the guest, lays out BAR2, carries
// out the commands of its mailbox, resets, and lets go of everything when the guest goes.
//
// A guest names its contexts by window, not by the firmware's context id: an id comes back into use
// as soon as the firmware is done with it, a window only when the driver has closed it, which it
// does after the last mapping is gone. So no process ever looks into the window of another.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "abi/pci.h"
#include "emulator/common/admin.h"
#include "emulator/nic/host_interface.h"
#include "emulator/nic/pci/guest_memory.h"
#include "emulator/nic/pci/ivshmem_server.h"
#include "emulator/nic/shared_memory.h"

namespace peal::nic {

struct PciCounts {
  uint64_t guests = 0;
  uint64_t guests_gone = 0;
  uint64_t guests_turned_away = 0;
  uint64_t greetings_failed = 0;
  uint64_t resets = 0;
  uint64_t commands = 0;
  uint64_t commands_refused = 0;
  uint64_t page_lists_refused = 0;
};

class PciInterface final : public HostInterface,
                           private emulator::MemoryProvider,
                           private emulator::HostWaker {
 public:
  PciInterface(CardHost card, LoopServices& services) : card_(card), services_(services) {}
  ~PciInterface() override;

  // Empty, or what was wrong.
  std::string start(const PciOptions& options);

  bool poll(TimeNs now) override;
  bool prepare_to_sleep() override { return true; }
  void awake(TimeNs now) override;
  void beat(uint64_t beats, uint32_t interval_us) override;
  void shut_down(TimeNs now) override;
  [[nodiscard]] nlohmann::ordered_json counters_json() const override;

 private:
  static constexpr uint32_t kWindows = emulator::kContexts;
  // The next power of two, as PCI wants it.
  static constexpr uint64_t bar_bytes();

  enum class Phase : uint8_t {
    kWaiting,    // for a guest
    kRunning,    // with a guest
    kResetting,  // the guest wants everything let go, and an acknowledgement
    kLeaving,    // the guest is gone; everything is being let go
  };
  enum class WindowUse : uint8_t {
    kFree,
    kOpen,
    kEnded,  // the card is done with it, the driver has not closed it yet
  };
  struct Window {
    WindowUse use = WindowUse::kFree;
    ContextId context = emulator::kNoContext;
  };
  // Channels that the card holds, by the address of their page list, and those it let go of. It
  // outlives us in the release functions of the region table.
  struct HeldChannels {
    uint64_t serial;
    uint64_t list_address;
    RegionId region;
  };
  struct Channels {
    std::vector<HeldChannels> held;
    std::vector<uint64_t> released;
    uint64_t serial = 0;
  };
  // So many times may a guest's registrations name all of its memory, by pages of 4 KiB.
  static constexpr uint64_t kListsOfAll = 4;

  // Guests
  bool look_at_socket(TimeNs now);
  bool welcome();
  bool open_bar();
  void close_bar();
  void let_go(Phase phase, TimeNs now);
  bool finish_letting_go();
  void finish_reset();

  // Mailbox
  bool poll_mailbox(TimeNs now);
  void carry_out(const peal_admin_command& command, TimeNs now, peal_admin_reply* reply);
  void for_window(const peal_admin_command& command, TimeNs now, peal_admin_reply* reply);
  void reap(const peal_admin_command& command, peal_admin_reply* reply);
  bool announce_released();

  // MemoryProvider
  peal_status open_window(ContextId context, uint64_t* offset) override;
  void context_gone(ContextId context) override;
  peal_status make_memory(const peal_register_memory& request, RegionId* region) override;
  peal_status make_channels(const peal_reserve_group& request, RegionId* region) override;
  // HostWaker
  void wake_host(emulator::ContextWindow& window) override;

  [[nodiscard]] peal_pci_card_page* card_page() const;
  [[nodiscard]] const peal_pci_host_page* host_page() const;

  CardHost card_;
  LoopServices& services_;
  std::unique_ptr<GuestMemory> memory_;
  IvshmemServer server_;
  Phase phase_ = Phase::kWaiting;
  TimeNs next_look_ns_ = 0;

  Mapping* bar_ = nullptr;
  int bar_fd_ = -1;
  std::array<int, PEAL_PCI_VECTORS> doorbell_fds_;
  std::array<int, PEAL_PCI_VECTORS> interrupt_fds_;
  std::array<WakeSlot, PEAL_PCI_VECTORS> interrupts_;

  std::array<Window, kWindows> windows_;
  uint32_t opening_ = kWindows;  // window that the OPEN_CONTEXT under way took
  uint64_t command_serial_ = 0;
  uint32_t reset_epoch_ = 0;
  uint32_t beat_interval_us_ = 0;
  std::shared_ptr<Channels> channels_ = std::make_shared<Channels>();
  // Entries of the page lists of all registrations; the table of regions may outlive us as well.
  std::shared_ptr<uint64_t> listed_ = std::make_shared<uint64_t>(0);
  size_t announced_ = 0;  // of channels_->released
  PciCounts counts_;
};

}  // namespace peal::nic
