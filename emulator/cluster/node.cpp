// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/node.h"

#include <cstring>
#include <utility>

#include "emulator/cluster/mix.h"
#include "emulator/cluster/spare_memory.h"
#include "emulator/common/packet_text.h"
#include "firmware/channels.h"

namespace peal::sim {

Node::Node(uint32_t card_index, const NodeOptions& options, Surroundings& surroundings,
           PacketPool& pool, HostMemory& memory)
    : index(card_index),
      options_(options),
      surroundings_(surroundings),
      pool_(pool),
      memory_(memory) {
  boot();
}

// What lived to the end is kept for the thread's next node.
Node::~Node() {
  stop();
  give_memory(std::move(card_memory), emulator::Touched::kSparsely, card_bytes());
  for (Window& window : windows) give_window(window);
}

// What reaches the card's memory goes before it.
void Node::stop() {
  admin.reset();
  card_windows.reset();
  regions.reset();
}

void Node::give_window(Window& window) {
  give_memory(std::move(window.memory), emulator::Touched::kSparsely, emulator::kWindowBytes);
  window = Window();
}

void Node::boot() {
  stop();
  for (Window& window : windows) window = Window();
  CardIdentity identity{};
  emulator::card_mac(index, identity.mac);
  identity.incarnation = static_cast<uint32_t>(mix(options_.seed, 3 + boots, index)) | 1;
  identity.index = static_cast<uint16_t>(index);
  boots++;
  card_memory = take_memory(card_bytes(), emulator::Touched::kSparsely);
  card = card_start(card_memory.data(), *this, identity, options_.timeouts);
  regions = std::make_unique<emulator::RegionTable>(emulator::kRegionsPerCard);
  regions->set_before_free([this](const uint8_t*, uint64_t) { lent.take_back_all(); });
  card_windows = std::make_unique<emulator::MappedWindows>(*card);
  admin = std::make_unique<emulator::Admin>(*card, *regions, *card_windows);
  region_numbers.clear();
  silent = false;
  packets_held = 0;
  dma_under_way = 0;
  timer_at_ns = kNever;
  timer_item++;
}

// --- the port ---

Packet* Node::allocate_packet() {
  if (packets_held >= room()) return nullptr;
  packets_held++;
  SimPacket* packet = pool_.allocate();
  packet->holds = 0;
  packet->holder = index;
  return packet;
}

Packet* Node::share_packet(Packet* packet) {
  if (packets_held >= room()) return nullptr;
  packets_held++;
  auto* source = static_cast<SimPacket*>(packet);
  pool_.seal(source, source->payload_bytes);
  SimPacket* shared = pool_.share(source);
  shared->holds = 0;
  shared->holder = index;
  return shared;
}

void Node::release_packet(Packet* packet) {
  packets_held--;
  surroundings_.release(static_cast<SimPacket*>(packet));
}

void Node::send(Packet* packet, uint32_t engine) {
  packets_held--;
  auto* sent = static_cast<SimPacket*>(packet);
  sent->holder = kNoHolder;
  sent->engine = static_cast<uint8_t>(engine);
  surroundings_.transmit(*this, sent);
}

Checksums Node::checksums() const { return options_.checksums; }

bool Node::dma_read(const DmaTransfer& transfer, DmaToken token) {
  return surroundings_.start_dma(*this, {transfer, token, false});
}

bool Node::dma_write(const DmaTransfer& transfer, DmaToken token) {
  return surroundings_.start_dma(*this, {transfer, token, true});
}

bool Node::dma_read_lent(const DmaTransfer& transfer, DmaToken token, LenderId who, ReadFor whom) {
  const bool lends = options_.lends && options_.checksums == Checksums::kSkipped;
  return surroundings_.start_dma(*this, {transfer, token, false, lends, who, whom});
}

void Node::complete(ContextId context, const peal_completion& entry) {
  surroundings_.complete(*this, context, entry);
}

// --- administration ---

peal_status Node::execute(peal_admin_command* command, uint32_t context, TimeNs now_ns,
                          peal_admin_reply* reply) {
  command->version = PEAL_ABI_VERSION;
  command->bytes = PEAL_ADMIN_BYTES;
  return admin->execute(*command, PEAL_ADMIN_BYTES, context, *this, now_ns, reply);
}

peal_status Node::open_window(ContextId context, uint64_t* offset) {
  Window& window = windows[context];
  window.memory = take_memory(emulator::kWindowBytes, emulator::Touched::kSparsely);
  window.gone = false;
  peal_host_ring_init(&window.ring, window.memory.data(), emulator::kRingEntries);
  card_windows->open(context, window.memory.data(), PEAL_CAPABILITY_PROCESS_MEMORY, nullptr,
                     emulator::WindowMemory::kZeroed);
  *offset = 0;
  return PEAL_STATUS_OK;
}

void Node::context_gone(ContextId context) {
  Window& window = windows[context];
  const uint64_t asked = window.ring.host->reset_epoch.value;
  if (asked != 0 && window.ring.card->reset.epoch != asked)
    surroundings_.violation("quiet", "a window's reset was not acknowledged");
  give_window(window);
}

RegionId Node::put(uint32_t number, uint64_t bytes, emulator::RegionTable::Release release) {
  const RegionId region = regions->put_mapped(memory_.data(number), bytes, std::move(release));
  if (region == emulator::kNoRegion) return region;
  const uint32_t slot = region & 0xffffu;
  if (slot >= region_numbers.size()) region_numbers.resize(slot + 1, kNoRegionNumber);
  region_numbers[slot] = number;
  return region;
}

peal_status Node::make_memory(const peal_register_memory& request, RegionId* region) {
  if (request.kind != PEAL_MEMORY_PROCESS) return PEAL_STATUS_BAD_ADDRESS;
  const uint32_t number = region_of_address(request.address);
  if (request.address != address_of_region(number) ||
      !memory_.contains(index, number, 0, request.bytes))
    return PEAL_STATUS_BAD_ADDRESS;
  *region = put(number, request.bytes, {});
  return *region == emulator::kNoRegion ? PEAL_STATUS_NO_RESOURCES : PEAL_STATUS_OK;
}

peal_status Node::make_channels(const peal_reserve_group&, RegionId* region) {
  const uint32_t number = memory_.add(index, kChannelsBytes, emulator::Touched::kSparsely);
  *region = put(number, kChannelsBytes, [this, number] { memory_.remove(number); });
  return *region == emulator::kNoRegion ? PEAL_STATUS_NO_RESOURCES : PEAL_STATUS_OK;
}

uint32_t Node::number_of(RegionId region, uint64_t offset, uint64_t bytes) const {
  const uint64_t held = regions->bytes_of(region);
  if (offset > held || bytes > held - offset) return kNoRegionNumber;
  return held == 0 ? kNoRegionNumber : region_numbers[region & 0xffffu];
}

}  // namespace peal::sim
