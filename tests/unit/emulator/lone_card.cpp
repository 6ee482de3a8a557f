// SPDX-License-Identifier: BSD-2-Clause
#include "tests/unit/emulator/lone_card.h"

#include <unistd.h>

#include <new>

#include "firmware/channels.h"
#include "firmware/payload.h"

namespace peal::emulator::test {

// Header, payload and who else refers to the payload.
struct LonePort::Buffer {
  Packet packet;
  peal_wire_header header;
  std::shared_ptr<std::array<uint8_t, kPayloadBytes>> payload;
};

Packet* LonePort::allocate_packet() {
  auto* const buffer = new Buffer{};
  buffer->payload = std::make_shared<std::array<uint8_t, kPayloadBytes>>();
  buffer->packet.header = &buffer->header;
  buffer->packet.payload = buffer->payload->data();
  packets_out++;
  return &buffer->packet;
}

Packet* LonePort::share_packet(Packet* packet) {
  auto* const original = reinterpret_cast<Buffer*>(packet);
  auto* const buffer = new Buffer{};
  buffer->payload = original->payload;
  buffer->packet.header = &buffer->header;
  buffer->packet.payload = packet->payload;
  buffer->packet.payload_bytes = packet->payload_bytes;
  packets_out++;
  return &buffer->packet;
}

void LonePort::release_packet(Packet* packet) {
  packets_out--;
  delete reinterpret_cast<Buffer*>(packet);
}

void LonePort::send(Packet* packet, uint32_t) {
  sent++;
  release_packet(packet);
}

bool LonePort::dma_read(const DmaTransfer& transfer, DmaToken token) {
  done_.emplace_back(token, regions_.copy_in(transfer.host, transfer.card, transfer.bytes));
  return true;
}

bool LonePort::dma_write(const DmaTransfer& transfer, DmaToken token) {
  done_.emplace_back(token, regions_.copy_out(transfer.card, transfer.host, transfer.bytes));
  return true;
}

void LonePort::finish_dmas(Card& card, TimeNs now) {
  std::vector<std::pair<DmaToken, bool>> done;
  done.swap(done_);
  for (const auto& [token, ok] : done) card_on_dma_done(card, token, ok, now);
}

LoneCard::LoneCard() {
  memory_ = mmap(nullptr, card_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory_ == MAP_FAILED) throw std::bad_alloc();
  CardIdentity identity = {};
  identity.mac[5] = 3;
  identity.incarnation = 17;
  identity.index = 3;
  card_ = card_start(memory_, port, identity, default_timeouts());
  windows_ = std::make_unique<MappedWindows>(*card_);
  admin_ = std::make_unique<Admin>(*card_, regions, *windows_);
  port.windows = windows_.get();
}

LoneCard::~LoneCard() { munmap(memory_, card_bytes()); }

void LoneCard::run() {
  for (int turn = 0; turn < 100; turn++) {
    now += 1000;
    if (!port.hold_dmas) port.finish_dmas(*card_, now);
    windows_->poll(16, now);
    if (now >= card_next_deadline(*card_)) card_on_timer(*card_, now);
    windows_->flush();
    admin_->housekeeping();
  }
}

peal_status TestProvider::open_window(ContextId context, uint64_t* offset) {
  if (open_status != PEAL_STATUS_OK) return open_status;
  void* const window =
      mmap(nullptr, kWindowBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (window == MAP_FAILED) return PEAL_STATUS_NO_RESOURCES;
  std::memset(window, 0xa5, kWindowBytes);  // what another client left
  windows_.emplace_back(static_cast<uint8_t*>(window), Unmap{kWindowBytes});
  peal_host_ring_init(&ring, window, kRingEntries);
  card_windows_->open(context, window, 0x8, this);
  *offset = 0x7000;
  return PEAL_STATUS_OK;
}

peal_status TestProvider::make_memory(const peal_register_memory& request, RegionId* region) {
  if (memory_status != PEAL_STATUS_OK) return memory_status;
  if (request.kind != PEAL_MEMORY_ALLOCATE) return PEAL_STATUS_BAD_ADDRESS;
  if (process_address != 0) {
    *region = regions_->put_process(getpid(), -1, process_address, request.bytes,
                                    [count = released_count] { ++*count; });
    return PEAL_STATUS_OK;
  }
  memories_.emplace_back(request.bytes);
  last_memory = memories_.back().data();
  *region =
      regions_->put_mapped(last_memory, request.bytes, [count = released_count] { ++*count; });
  return *region == kNoRegion ? PEAL_STATUS_NO_RESOURCES : PEAL_STATUS_OK;
}

peal_status TestProvider::make_channels(const peal_reserve_group&, RegionId* region) {
  memories_.emplace_back(kChannelsBytes);
  *region = regions_->put_mapped(memories_.back().data(), kChannelsBytes,
                                 [count = released_count] { ++*count; });
  return *region == kNoRegion ? PEAL_STATUS_NO_RESOURCES : PEAL_STATUS_OK;
}

peal_admin_command make_command(peal_admin_opcode opcode) {
  peal_admin_command command = {};
  command.version = PEAL_ABI_VERSION;
  command.opcode = static_cast<uint16_t>(opcode);
  command.bytes = PEAL_ADMIN_BYTES;
  command.tag = 0x1234;
  return command;
}

}  // namespace peal::emulator::test
