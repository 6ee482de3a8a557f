// SPDX-License-Identifier: BSD-2-Clause
// One real card with a small real port over a RegionTable: enough for a group of one, whose
// operations need no wire.
#pragma once

#include <sys/mman.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "emulator/common/admin.h"
#include "emulator/common/mapped_windows.h"
#include "emulator/common/region_table.h"
#include "firmware/card.h"

namespace peal::emulator::test {

class LonePort final : public Port {
 public:
  explicit LonePort(RegionTable& regions) : regions_(regions) {}
  Windows* windows = nullptr;
  uint32_t packets_out = 0;
  uint32_t sent = 0;

  Packet* allocate_packet() override;
  Packet* share_packet(Packet* packet) override;
  void release_packet(Packet* packet) override;
  void send(Packet* packet, uint32_t engine) override;
  [[nodiscard]] uint32_t packet_buffers() const override { return CONFIG_PACKET_BUFFERS; }
  [[nodiscard]] uint32_t sent_packets() const override { return 0; }
  [[nodiscard]] uint32_t dma_batch() const override { return 1; }
  [[nodiscard]] Checksums checksums() const override { return Checksums::kSoftware; }
  bool dma_read(const DmaTransfer& transfer, DmaToken token) override;
  bool dma_write(const DmaTransfer& transfer, DmaToken token) override;
  void complete(ContextId context, const peal_completion& entry) override {
    windows->complete(context, entry);
  }
  // Hands over the DMA completions so far.
  void finish_dmas(Card& card, TimeNs now);
  bool hold_dmas = false;

 private:
  struct Buffer;
  RegionTable& regions_;
  std::vector<std::pair<DmaToken, bool>> done_;
};

class LoneCard {
 public:
  LoneCard();
  ~LoneCard();
  LoneCard(const LoneCard&) = delete;
  LoneCard& operator=(const LoneCard&) = delete;

  RegionTable regions{kRegionsPerCard};
  LonePort port{regions};
  TimeNs now = 1'000'000;

  Card& card() { return *card_; }
  Admin& admin() { return *admin_; }
  MappedWindows& windows() { return *windows_; }
  // Turns until nothing moves any more.
  void run();

 private:
  void* memory_;
  Card* card_;
  std::unique_ptr<MappedWindows> windows_;
  std::unique_ptr<Admin> admin_;
};

// Windows in plain memory, allocated regions in vectors; counts what it is asked and told.
class TestProvider final : public MemoryProvider, public HostWaker {
 public:
  TestProvider() = default;
  explicit TestProvider(LoneCard& card) { serve(card.regions, card.windows()); }
  // The card's tables that memory is put into.
  void serve(RegionTable& regions, MappedWindows& windows) {
    regions_ = &regions;
    card_windows_ = &windows;
  }

  peal_status open_window(ContextId context, uint64_t* offset) override;
  void context_gone(ContextId context) override { gone.push_back(context); }
  void context_ending(ContextId, EndReason reason) override { ended.push_back(reason); }
  peal_status make_memory(const peal_register_memory& request, RegionId* region) override;
  peal_status make_channels(const peal_reserve_group& request, RegionId* region) override;
  void wake_host(ContextWindow&) override { wakes++; }

  // The host's side of the window opened last.
  peal_host_ring ring{};
  std::vector<ContextId> gone;
  peal_status open_status = PEAL_STATUS_OK;
  peal_status memory_status = PEAL_STATUS_OK;
  uint64_t process_address = 0;  // where memory is registered from now on, in this process
  std::vector<EndReason> ended;
  uint32_t wakes = 0;
  // Regions may outlive their provider, so the count does too.
  std::shared_ptr<uint32_t> released_count = std::make_shared<uint32_t>(0);
  uint32_t& released = *released_count;
  uint8_t* last_memory = nullptr;

 private:
  struct Unmap {
    size_t bytes;
    void operator()(uint8_t* memory) const { munmap(memory, bytes); }
  };
  RegionTable* regions_ = nullptr;
  MappedWindows* card_windows_ = nullptr;
  std::vector<std::unique_ptr<uint8_t, Unmap>> windows_;
  std::vector<std::vector<uint8_t>> memories_;
};

peal_admin_command make_command(peal_admin_opcode opcode);

}  // namespace peal::emulator::test
