// SPDX-License-Identifier: BSD-2-Clause
// A card on the bench.
#include "tests/support/card_bench.h"

#include <bit>
#include <cstring>
#include <stdexcept>

#include "emulator/common/packet_text.h"
#include "firmware/card_types.h"
#include "firmware/channels.h"
#include "firmware/payload.h"

namespace peal::test {
namespace {

void require(peal_status status, const char* what) {
  if (status != PEAL_STATUS_OK) {
    throw std::runtime_error(std::string(what) + ": " + status_text(status));
  }
}

}  // namespace

CardBench::CardBench(const BenchOptions& options)
    : port(options.packet_buffers, kPayloadBytes, options.checksums),
      options_(options),
      memory_(card_bytes()) {
  if (options.keeps_early) {
    port.told_buffers = options.told_buffers != 0 ? options.told_buffers : options.packet_buffers;
  }
  port.told_batch = options.dma_batch;
  port.told_sent = options.sent_packets;
  CardIdentity identity{};
  emulator::card_mac(options.index, identity.mac);
  identity.incarnation = incarnation();
  identity.index = static_cast<uint16_t>(options.index);
  card_ = card_start(memory_.data(), port, identity, options.timeouts);
  context_ = open_context();
}

// --- setting up ---

ContextId CardBench::open_context() {
  ContextId context = 0;
  while (context < CONFIG_CONTEXTS && !card_context_quiet(*card_, context)) context++;
  require(card_open_context(*card_, context), "open_context");
  return context;
}

Memory CardBench::add_memory(const std::string& name, size_t bytes, uint32_t access) {
  return add_memory_of(context_, name, bytes, access);
}

Memory CardBench::add_memory_of(ContextId context, const std::string& name, size_t bytes,
                                uint32_t access) {
  Memory memory;
  memory.region = port.add_region(name, bytes);
  require(card_register_memory(*card_, context, memory.region, bytes, access, &memory.key),
          "register_memory");
  return memory;
}

Membership CardBench::reserve(uint32_t ranks, uint32_t rank) {
  return reserve_in(context_, ranks, rank);
}

Membership CardBench::reserve_in(ContextId context, uint32_t ranks, uint32_t rank) {
  Membership membership;
  membership.ranks = ranks;
  membership.rank = rank;
  membership.context = context;
  membership.channels = port.add_region("channel", kChannelsBytes);
  peal_reserve_group request{};
  request.ranks = ranks;
  request.rank = rank;
  require(
      card_reserve_group(*card_, context, request, membership.channels, now, &membership.address),
      "reserve_group");
  return membership;
}

peal_status CardBench::connect(Membership& membership,
                               const std::vector<peal_peer_address>& everybody, uint64_t group) {
  membership.everybody = everybody;
  membership.group = group;
  peal_connect_group request{};
  request.member = membership.handle();
  request.group = group;
  request.choice_hash = kChoiceHash;
  peal_add_peers more{};
  more.member = membership.handle();
  const auto name_peer = [&](uint32_t rank) {
    const peal_peer_address& address = everybody.at(rank % membership.ranks);
    if (request.peer_count < PEAL_PEERS_PER_COMMAND) {
      request.peers[request.peer_count] = address;
    } else {
      more.peers[more.peer_count++] = address;
    }
    ++request.peer_count;
  };
  for (uint32_t distance = 1; distance < membership.ranks; distance *= 2) {
    name_peer(membership.rank + distance);
    name_peer(membership.rank + membership.ranks - distance);
  }
  if (more.peer_count > 0) require(card_add_peers(*card_, membership.context, more), "add_peers");
  request.addresses_key = membership.table.key;
  request.addresses_offset = membership.table_offset;
  return card_connect_group(*card_, membership.context, request, now);
}

peal_peer_address CardBench::played_address(uint32_t rank) {
  peal_peer_address address{};
  emulator::card_mac(rank, address.mac);
  address.rank = static_cast<uint16_t>(rank);
  address.member = (0x51u << 16) | (rank & 0xffffu);
  address.incarnation = rank + 1000;
  address.geometry = card_geometry();
  return address;
}

void CardBench::add_table(Membership& membership, const std::vector<peal_peer_address>& everybody) {
  const size_t bytes = everybody.size() * sizeof(peal_peer_address);
  membership.table = add_memory_of(membership.context, "addresses", bytes, PEAL_ACCESS_READ);
  std::memcpy(port.bytes(membership.table.region).data(), everybody.data(), bytes);
}

Membership CardBench::join_in(ContextId context, uint32_t ranks, uint32_t rank, uint64_t group) {
  Membership membership = reserve_in(context, ranks, rank);
  std::vector<peal_peer_address> everybody;
  for (uint32_t peer = 0; peer < ranks; peer++) {
    everybody.push_back(peer == rank ? membership.address : played_address(peer));
  }
  if (options_.tables) add_table(membership, everybody);
  require(connect(membership, everybody, group), "connect_group");
  return membership;
}

// --- events ---

void CardBench::submit_in(ContextId context, const peal_submission& entry) {
  card_on_submission(*card_, context, entry, now);
}

bool CardBench::deliver(const Frame& frame) { return deliver_raw(frame, frame.bytes()); }

bool CardBench::deliver_raw(const Frame& frame, uint32_t frame_bytes) {
  Packet* packet = port.receive(frame);
  if (packet == nullptr) return false;
  card_on_packet(*card_, packet, frame_bytes, now);
  return true;
}

void CardBench::finish_dma(size_t index) {
  const HeldDma dma = port.finish_dma(index);
  card_on_dma_done(*card_, dma.token, dma.ok, now);
}

void CardBench::finish_all_dma() {
  while (port.dma_count() > 0) finish_dma();
}

void CardBench::advance(TimeNs by_ns) {
  const TimeNs until = now + by_ns;
  while (card_next_deadline(*card_) <= until) {
    now = std::max(now, card_next_deadline(*card_));
    card_on_timer(*card_, now);
    if (card_next_deadline(*card_) <= now) {
      throw std::runtime_error("card_on_timer left a deadline that is due");
    }
  }
  now = until;
}

void CardBench::spend_repairs(uint32_t left) {
  card_->repairs.price_ns = kNever / 8;
  card_->repairs.credit_ns = left * card_->repairs.price_ns;
}

bool CardBench::advance_to_deadline() {
  const TimeNs deadline = card_next_deadline(*card_);
  if (deadline == kNever) return false;
  advance(deadline > now ? deadline - now : 0);
  return true;
}

// --- looking ---

uint64_t CardBench::counter(peal_counter which) const { return card_counters(*card_)[which]; }

std::vector<uint64_t> CardBench::counters() const {
  const uint64_t* values = card_counters(*card_);
  return {values, values + PEAL_COUNTER_COUNT};
}

std::string CardBench::counter_changes(const std::vector<uint64_t>& before) const {
  const std::vector<uint64_t> after = counters();
  std::string text;
  for (size_t i = 0; i < after.size(); i++) {
    if (after[i] == before[i]) continue;
    if (!text.empty()) text += ", ";
    text += "+" + std::to_string(after[i] - before[i]) + " " +
            card_counter_name(static_cast<peal_counter>(i));
  }
  return text;
}

std::string CardBench::take_wire_log() {
  std::string text;
  const std::string log = port.take_log();
  for (size_t at = 0; at < log.size();) {
    const size_t end = log.find('\n', at) + 1;
    if (log.compare(at, 4, "dma_") != 0) text += log.substr(at, end - at);
    at = end;
  }
  return text;
}

std::string CardBench::problems() {
  std::string text = port.problems();
  const CardHolds holds = card_holds(*card_);
  if (holds.packets + holds.sent_blocks != port.packets_unsent()) {
    text += "the card says it holds " + std::to_string(holds.packets) + " packets and " +
            std::to_string(holds.sent_blocks) + " that it has sent, the port says " +
            std::to_string(port.packets_unsent()) + "\n";
  }
  if (holds.sent_blocks != card_sent_blocks(*card_)) {
    text += "the card counts " + std::to_string(card_sent_blocks(*card_)) +
            " packets that it has sent, its records name " + std::to_string(holds.sent_blocks) +
            "\n";
  }
  if (holds.packets > holds.dma_records) {  // only DMA under way may keep another
    text += "packets leaked: " + std::to_string(holds.packets) + " are held for " +
            std::to_string(holds.dma_records) + " DMA records\n";
  }
  if (holds.dma_records < port.dma_count()) {
    text += "the card says it holds " + std::to_string(holds.dma_records) +
            " DMA records, the port has " + std::to_string(port.dma_count()) + " under way\n";
  }
  return text;
}

// --- submissions ---

peal_submission barrier_entry(const Membership& member, uint64_t sequence, uint64_t cookie) {
  peal_submission entry{};
  entry.operation = PEAL_OPERATION_BARRIER;
  entry.algorithm = PEAL_ALGORITHM_DISSEMINATION;
  entry.member = member.handle();
  entry.sequence = sequence;
  entry.cookie = cookie;
  return entry;
}

peal_submission destroy_entry(const Membership& member, uint64_t sequence, uint64_t cookie) {
  peal_submission entry = barrier_entry(member, sequence, cookie);
  entry.operation = PEAL_OPERATION_DESTROY;
  return entry;
}

peal_submission allgather_entry(const Membership& member, uint64_t sequence, uint64_t cookie,
                                peal_algorithm algorithm, uint64_t block_bytes, uint32_t send_key,
                                uint32_t receive_key) {
  peal_submission entry{};
  entry.operation = PEAL_OPERATION_ALLGATHER;
  entry.algorithm = static_cast<uint8_t>(algorithm);
  entry.member = member.handle();
  entry.sequence = sequence;
  entry.cookie = cookie;
  entry.block_bytes = block_bytes;
  entry.send_key = send_key;
  entry.receive_key = receive_key;
  return entry;
}

peal_submission broadcast_entry(const Membership& member, uint64_t sequence, uint64_t cookie,
                                uint32_t root, uint64_t block_bytes, uint32_t send_key,
                                uint32_t receive_key) {
  peal_submission entry = allgather_entry(member, sequence, cookie, PEAL_ALGORITHM_BINOMIAL,
                                          block_bytes, send_key, receive_key);
  entry.operation = PEAL_OPERATION_BROADCAST;
  entry.root = root;
  return entry;
}

peal_submission alltoall_entry(const Membership& member, uint64_t sequence, uint64_t cookie,
                               uint64_t block_bytes, uint32_t send_key, uint32_t receive_key) {
  peal_submission entry = allgather_entry(member, sequence, cookie, PEAL_ALGORITHM_BRUCK,
                                          block_bytes, send_key, receive_key);
  entry.operation = PEAL_OPERATION_ALLTOALL;
  return entry;
}

}  // namespace peal::test
