// SPDX-License-Identifier: BSD-2-Clause
#include "tests/cluster/explore/world.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/names.h"
#include "emulator/common/packet_text.h"
#include "firmware/channels.h"

namespace peal::explore {
namespace {

constexpr uint32_t kBlockMax = 3 * CONFIG_MTU_BYTES;
constexpr uint32_t kSlots = CONFIG_CHANNELS;
constexpr uint32_t kGuardBytes = 64;  // in front of and behind every buffer
constexpr size_t kSlotBytes = size_t{kBlockMax} * kCardsMax + 2 * kGuardBytes;
// Tables of parts lie behind what is sent.
constexpr size_t kTables = kSlots * kSlotBytes;
constexpr size_t kTableBytes = 2 * kCardsMax * sizeof(peal_part);
constexpr uint64_t kStepsMax = 100'000;  // of one run
constexpr uint64_t kGroup = 0x9ea1;
constexpr uint64_t kCopyKey = 0x9e3779b97f4a7c15u;
// What the user leaves in buffers that are its own: one byte where it sent from, another where it
// received.
constexpr uint8_t kSendGarbage = 0xee;
constexpr uint8_t kReceiveGarbage = 0x5c;
// What a run leaves in the channels for the next one, which must not find its own data there.
constexpr uint8_t kChannelGarbage = 0xa9;

// Byte `at` of a block is the first one's and seven times that more.
uint8_t pattern(const BlockName& name, uint32_t sequence) {
  return static_cast<uint8_t>(name.from * 67 + name.to * 41 + sequence * 31 + 1);
}
void fill(uint8_t* block, uint32_t bytes, uint8_t first) {
  for (uint32_t at = 0; at < bytes; at++) block[at] = static_cast<uint8_t>(first + at * 7);
}
bool is_filled(const uint8_t* block, uint32_t bytes, uint8_t first) {
  uint32_t wrong = 0;
  for (uint32_t at = 0; at < bytes; at++)
    wrong |= static_cast<uint8_t>(first + at * 7) ^ uint32_t { block[at] };
  return wrong == 0;
}
bool is_garbage(const uint8_t* memory, uint64_t bytes) {
  return bytes == 0 ||
         (*memory == kReceiveGarbage && std::memcmp(memory, memory + 1, bytes - 1) == 0);
}
// Where the buffers of an operation begin, in both regions.
uint64_t offset_of(uint32_t sequence) { return sequence % kSlots * kSlotBytes + kGuardBytes; }
// Where the table of its parts begins, in the send region.
uint64_t table_of(uint32_t sequence) { return kTables + sequence % kSlots * kTableBytes; }

// Eight bytes at a time: what is chosen from is hashed in millions of runs.
uint64_t hash_bytes(uint64_t hash, const void* data, size_t bytes) {
  const auto* byte = static_cast<const uint8_t*>(data);
  const auto add = [&hash](uint64_t word) { hash = std::rotl(hash ^ word, 29) * kCopyKey; };
  add(bytes);
  size_t at = 0;
  for (uint64_t word = 0; at + sizeof(word) <= bytes; at += sizeof(word)) {
    std::memcpy(&word, byte + at, sizeof(word));
    add(word);
  }
  for (; at < bytes; at++) add(byte[at]);
  return hash;
}

}  // namespace

bool independent(const Choice& a, const Choice& b) {
  if (a.act == Act::kTimer || b.act == Act::kTimer) return false;
  if (a.act == Act::kLose || b.act == Act::kLose) return a.key != b.key;
  return a.to != b.to;
}

// --- the port ---

Packet* Wire::allocate_packet() {
  if (world_.free_.empty()) {
    world_.buffers_.push_back(std::make_unique<Buffer>());
    world_.free_.push_back(world_.buffers_.back().get());
  }
  Buffer* buffer = world_.free_.back();
  world_.free_.pop_back();
  buffer->header = &buffer->header_bytes;
  buffer->payload = buffer->bytes;
  buffer->payload_bytes = 0;
  buffer->holds = 0;
  return buffer;
}

Packet* Wire::share_packet(Packet* packet) {
  Packet* copy = allocate_packet();
  copy->payload_bytes = packet->payload_bytes;
  std::memcpy(copy->payload, packet->payload, packet->payload_bytes);
  return copy;
}

uint32_t Wire::packet_buffers() const { return world_.plan_.packet_buffers; }

uint32_t Wire::sent_packets() const { return world_.plan_.sent_packets; }

void Wire::release_packet(Packet* packet) { world_.free_.push_back(static_cast<Buffer*>(packet)); }

void Wire::send(Packet* packet, uint32_t) {
  const peal_wire_header& header = *packet->header;
  Flight flight{};
  flight.to = emulator::card_of_mac(header.destination);
  Machine& machine = world_.machines_[card_];
  world_.counting_ |= header.operation == world_.plan_.explore_from;
  flight.copy = false;
  const bool counts = world_.counting_ && machine.before == world_.plan_.before;
  if (world_.counting_ && !counts) machine.before++;
  flight.chosen = counts && machine.sent < world_.plan_.packets_of(card_);
  machine.sent += flight.chosen ? 1 : 0;
  flight.header = header;
  flight.payload.assign(packet->payload, packet->payload + header.length);
  if (flight.chosen)
    flight.key = hash_bytes(hash_bytes(0xcbf29ce484222325u, &header, sizeof(header)),
                            flight.payload.data(), flight.payload.size());
  if (world_.tell) world_.story_.push_back("  " + emulator::packet_text(header, flight.to));
  world_.flights_.push_back(std::move(flight));
  release_packet(packet);
}

bool Wire::dma_read(const DmaTransfer& transfer, DmaToken token) {
  Machine& machine = world_.machines_[card_];
  const auto& [host, card, packet, bytes] = transfer;
  if (!world_.lies_inside(machine, host, bytes)) return true;
  std::memcpy(card, machine.regions[host.region].data() + host.offset, bytes);
  machine.dma.push_back(token);
  return true;
}

bool Wire::dma_write(const DmaTransfer& transfer, DmaToken token) {
  Machine& machine = world_.machines_[card_];
  const auto& [host, card, packet, bytes] = transfer;
  if (!world_.lies_inside(machine, host, bytes)) return true;
  std::memcpy(machine.regions[host.region].data() + host.offset, card, bytes);
  if (host.region == kChannels) machine.kept.push_back({host.offset, bytes});
  machine.dma.push_back(token);
  return true;
}

void Wire::complete(ContextId, const peal_completion& entry) {
  Machine& machine = world_.machines_[card_];
  const auto sequence = static_cast<uint32_t>(entry.cookie);
  const peal_submission& operation = world_.plan_.operations[sequence];
  const std::string who = "rank " + std::to_string(card_) + " sequence " + std::to_string(sequence);
  // Operations of a window may overtake each other.
  if (sequence >= machine.posted || (machine.ended >> sequence & 1) != 0)
    return world_.fail(who + " completes and was not posted, or twice");
  machine.ended |= uint64_t{1} << sequence;
  machine.completed++;
  if (entry.status != PEAL_STATUS_OK)
    return world_.fail(who + " ends with " + names::status(entry.status));
  const Blocks blocks = world_.plan_.blocks(sequence, card_);
  for (uint32_t rank = 0; rank < world_.plan_.cards; rank++)
    if ((blocks.waits_for_all() || rank == operation.root) &&
        world_.machines_[rank].posted <= sequence)
      return world_.fail(who + " succeeds before all have posted");
  const std::string wrong = world_.check_result(card_, sequence);
  if (!wrong.empty()) return world_.fail(who + ": " + wrong);
  // The buffers are the user's again.
  std::memset(machine.regions[0].data() + offset_of(sequence), kSendGarbage,
              operation.block_bytes * blocks.sent());
  world_.write_garbage(card_, sequence);
}

bool World::lies_inside(const Machine& machine, const HostAddress& host, uint32_t bytes) {
  const bool inside = host.region < std::size(machine.regions) &&
                      host.offset + bytes <= machine.regions[host.region].size();
  if (!inside) fail("the card reads or writes memory that nobody gave it");
  return inside;
}

// --- the receive buffers ---

// With the guards before and behind it.
sim::Extent World::receive_extent(uint32_t rank, uint32_t sequence) const {
  const uint64_t bytes =
      plan_.operations[sequence].block_bytes * plan_.blocks(sequence, rank).received();
  return {offset_of(sequence) - kGuardBytes, bytes + 2 * kGuardBytes};
}

void World::write_garbage(uint32_t rank, uint32_t sequence) {
  const sim::Extent extent = receive_extent(rank, sequence);
  std::memset(machines_[rank].regions[1].data() + extent.offset, kReceiveGarbage, extent.bytes);
}

bool World::has_garbage(uint32_t rank, uint32_t sequence) const {
  const sim::Extent extent = receive_extent(rank, sequence);
  return is_garbage(machines_[rank].regions[1].data() + extent.offset, extent.bytes);
}

// The blocks must be right, and what lies around them as the user left it.
std::string World::check_result(uint32_t rank, uint32_t sequence) const {
  const Blocks blocks = plan_.blocks(sequence, rank);
  const uint64_t place_bytes = plan_.operations[sequence].block_bytes;
  const uint8_t* const result = machines_[rank].regions[1].data() + offset_of(sequence);
  for (uint32_t i = 0; i < blocks.received(); i++) {
    const BlockName name = blocks.received_name(i);
    const sim::Extent block = blocks.received_extent(i);
    const uint8_t* const begin = result + block.offset;
    if (!is_filled(begin, static_cast<uint32_t>(block.bytes), pattern(name, sequence)))
      return "block of rank " + std::to_string(name.from) + " is wrong";
    if (!is_garbage(begin + block.bytes, place_bytes - block.bytes))
      return "bytes behind the block of rank " + std::to_string(name.from) + " were written";
  }
  if (!is_garbage(result - kGuardBytes, kGuardBytes))
    return "bytes before the receive buffer were written";
  if (!is_garbage(result + place_bytes * blocks.received(), kGuardBytes))
    return "bytes behind the receive buffer were written";
  return {};
}

// --- the world ---

void World::make_group() {
  machines_.resize(plan_.cards);
  peal_reserve_group reserve{};
  reserve.ranks = plan_.cards;
  for (uint32_t i = 0; i < plan_.cards; i++) {
    Machine& machine = machines_[i];
    machine.wire = std::make_unique<Wire>(*this, i);
    machine.memory.assign((card_bytes() + 127) / 8, 0);
    auto at = reinterpret_cast<uintptr_t>(machine.memory.data());
    at = (at + 63) & ~uintptr_t{63};
    CardIdentity identity{};
    emulator::card_mac(i, identity.mac);
    identity.incarnation = 100 + i;
    identity.index = static_cast<uint16_t>(i);
    machine.card =
        card_start(reinterpret_cast<void*>(at), *machine.wire, identity, default_timeouts());
    machine.regions[0].resize(kTables + kSlots * kTableBytes);
    machine.regions[1].assign(kSlots * kSlotBytes, kReceiveGarbage);
    machine.regions[kChannels].resize(kChannelsBytes);
    reserve.rank = i;
    const bool good =
        card_open_context(*machine.card, machine.context) == PEAL_STATUS_OK &&
        card_register_memory(*machine.card, machine.context, 0, machine.regions[0].size(),
                             PEAL_ACCESS_READ, &machine.send_key) == PEAL_STATUS_OK &&
        card_register_memory(*machine.card, machine.context, 1, machine.regions[1].size(),
                             PEAL_ACCESS_READ | PEAL_ACCESS_WRITE,
                             &machine.receive_key) == PEAL_STATUS_OK &&
        card_reserve_group(*machine.card, machine.context, reserve, kChannels, 0,
                           &machine.address) == PEAL_STATUS_OK;
    if (!good) fail("set-up");
  }
  for (uint32_t i = 0; i < plan_.cards; i++) {
    peal_connect_group connect{};
    connect.member = machines_[i].address.member;
    connect.group = kGroup;
    for (uint32_t distance = 1; distance < plan_.cards; distance *= 2) {
      connect.peers[connect.peer_count++] = machines_[(i + distance) % plan_.cards].address;
      connect.peers[connect.peer_count++] =
          machines_[(i + plan_.cards - distance) % plan_.cards].address;
    }
    if (card_connect_group(*machines_[i].card, machines_[i].context, connect, 0) != PEAL_STATUS_OK)
      fail("set-up");
    machines_[i].fresh = machines_[i].memory;
  }
  if (!problem_.empty()) {
    std::fprintf(stderr, "peal-explore: the group cannot be made\n");
    std::exit(1);
  }
}

void World::reset() {
  for (uint32_t rank = 0; rank < plan_.cards; rank++) {
    Machine& machine = machines_[rank];
    // What ended well left garbage, and what was cut short did not.
    for (uint32_t sequence = 0; sequence < machine.posted; sequence++)
      if ((machine.ended >> sequence & 1) == 0 || !problem_.empty()) write_garbage(rank, sequence);
    std::memcpy(machine.memory.data(), machine.fresh.data(), machine.fresh.size() * 8);
    for (const sim::Extent& kept : machine.kept)
      std::memset(machine.regions[kChannels].data() + kept.offset, kChannelGarbage, kept.bytes);
    machine.kept.clear();
    machine.dma.clear();
    machine.posted = machine.completed = 0;
    machine.ended = 0;
    machine.before = machine.sent = 0;
  }
  free_.clear();
  for (const auto& buffer : buffers_) free_.push_back(buffer.get());
  flights_.clear();
  now_ = 1000;
  counting_ = false;
  steps_ = 0;
  problem_.clear();
  story_.clear();
}

// Where the parts lie, instead of a length.
void World::name_parts(Machine& machine, const Blocks& blocks, uint32_t sequence,
                       peal_submission* entry) {
  const uint64_t offset = offset_of(sequence);
  std::vector<peal_part> parts;
  const auto add = [&](const sim::Extent& block) {
    parts.push_back({offset + block.offset, block.bytes});
  };
  const bool names_sent = sim::has_block_for_each(entry->operation) && !is_in_place(*entry);
  for (uint32_t i = 0; names_sent && i < blocks.sent(); i++) add(blocks.sent_extent(i));
  for (uint32_t i = 0; i < blocks.received(); i++) add(blocks.received_extent(i));
  const uint64_t table = table_of(sequence);
  std::memcpy(machine.regions[0].data() + table, parts.data(), parts.size() * sizeof(peal_part));
  if (names_sent) entry->send_offset = 0;
  entry->block_bytes = 0;
  entry->parts_key = machine.send_key;
  entry->parts_offset = table;
}

void World::post(uint32_t rank) {
  Machine& machine = machines_[rank];
  const uint32_t sequence = machine.posted++;
  peal_submission entry = plan_.operations[sequence];
  entry.member = machine.address.member;
  entry.sequence = entry.cookie = sequence;
  const Blocks blocks = plan_.blocks(sequence, rank);
  const uint64_t offset = offset_of(sequence);
  if (!has_garbage(rank, sequence)) return fail_of_garbage(rank, sequence);
  const bool in_place = is_in_place(entry);
  if (blocks.sent() > 0 && !in_place) {
    entry.send_key = machine.send_key;
    entry.send_offset = offset;
  }
  for (uint32_t i = 0; i < blocks.sent(); i++) {
    const sim::Extent block = blocks.sent_extent(i);
    fill(machine.regions[in_place ? 1 : 0].data() + offset + block.offset,
         static_cast<uint32_t>(block.bytes), pattern(blocks.sent_name(i), sequence));
  }
  if (blocks.received() > 0) {
    entry.receive_key = machine.receive_key;
    entry.receive_offset = offset;
  }
  if (sim::has_parts(entry.operation)) name_parts(machine, blocks, sequence, &entry);
  card_on_submission(*machine.card, machine.context, entry, now_);
}

// As deep as the card takes it; the rest follows as operations complete, the oldest first.
void World::post_all(uint32_t rank) {
  Machine& machine = machines_[rank];
  while (machine.posted < plan_.operations.size() &&
         machine.posted <
             static_cast<uint32_t>(std::countr_one(machine.ended)) + CONFIG_PARKED_OPERATIONS)
    post(rank);
}

void World::settle(uint32_t card) {
  Machine& machine = machines_[card];
  for (;;) {
    while (!machine.dma.empty()) {
      const DmaToken token = machine.dma.front();
      machine.dma.pop_front();
      card_on_dma_done(*machine.card, token, true, now_);
    }
    const uint32_t posted = machine.posted;
    if (posted > 0) post_all(card);
    if (machine.posted == posted && machine.dma.empty()) return;
  }
}

void World::deliver(const Flight& flight) {
  steps_++;
  if (flight.to >= plan_.cards) return;
  Machine& machine = machines_[flight.to];
  Packet* packet = machine.wire->allocate_packet();
  *packet->header = flight.header;
  packet->payload_bytes = static_cast<uint32_t>(flight.payload.size());
  std::memcpy(packet->payload, flight.payload.data(), flight.payload.size());
  card_on_packet(*machine.card, packet,
                 static_cast<uint32_t>(sizeof(peal_wire_header) + flight.payload.size()), now_);
  settle(flight.to);
}

TimeNs World::next_deadline(uint32_t* card) const {
  TimeNs first = kNever;
  for (uint32_t i = 0; i < plan_.cards; i++) {
    const TimeNs deadline = card_next_deadline(*machines_[i].card);
    if (deadline >= first) continue;
    first = deadline;
    *card = i;
  }
  return first;
}

bool World::run_timer() {
  uint32_t card = 0;
  const TimeNs deadline = next_deadline(&card);
  if (deadline == kNever) return false;
  steps_++;
  now_ = std::max(now_, deadline);
  card_on_timer(*machines_[card].card, now_);
  settle(card);
  return true;
}

bool World::done() const {
  return std::all_of(machines_.begin(), machines_.end(), [this](const Machine& machine) {
    return machine.completed == plan_.operations.size();
  });
}

bool World::choosing() const {
  return std::any_of(flights_.begin(), flights_.end(),
                     [](const Flight& flight) { return flight.chosen; });
}

void World::deliver_first() {
  const Flight flight = flights_.front();
  flights_.pop_front();
  deliver(flight);
}

std::vector<Choice> World::enabled(uint32_t timers_left) const {
  std::vector<Choice> choices;
  for (size_t i = 0; i < flights_.size(); i++) {
    const Flight& flight = flights_[i];
    if (!flight.chosen) continue;
    const bool seen = std::any_of(
        flights_.begin(), flights_.begin() + static_cast<std::ptrdiff_t>(i),
        [&flight](const Flight& earlier) { return earlier.chosen && earlier.key == flight.key; });
    if (seen) continue;
    choices.push_back({Act::kDeliver, flight.to, flight.key});
    if (flight.copy) continue;
    choices.push_back({Act::kLose, flight.to, flight.key});
    choices.push_back({Act::kTwice, flight.to, flight.key});
  }
  uint32_t card = 0;
  if (timers_left > 0 && next_deadline(&card) != kNever) choices.push_back({Act::kTimer, 0, 0});
  return choices;
}

void World::carry_out(const Choice& choice) {
  static const char* const kNames[] = {"deliver", "lose", "deliver, keep a copy", "timer"};
  if (choice.act == Act::kTimer) {
    if (tell) story_.push_back("act: timer");
    run_timer();
    return;
  }
  const auto found = std::find_if(flights_.begin(), flights_.end(), [&choice](const Flight& each) {
    return each.chosen && each.key == choice.key && each.to == choice.to;
  });
  if (found == flights_.end()) return fail("the same acts do not send the same packets again");
  const Flight flight = *found;
  if (tell)
    story_.push_back(std::string("act: ") + kNames[static_cast<int>(choice.act)] + " " +
                     emulator::packet_text(flight.header, flight.to));
  if (choice.act == Act::kTwice) {
    found->copy = true;
    found->key ^= kCopyKey;
  } else {
    flights_.erase(found);
  }
  if (choice.act != Act::kLose) deliver(flight);
}

// The wire is in order from here on.
std::string World::end_well() {
  while ((!done() || !flights_.empty()) && steps_ < kStepsMax && problem_.empty()) {
    if (!flights_.empty()) {
      deliver_first();
    } else if (!run_timer()) {
      break;
    }
  }
  if (problem_.empty() && !done()) fail("stuck");
  // What is left comes to rest.
  while (problem_.empty() && steps_ < kStepsMax) {
    if (!flights_.empty()) {
      deliver_first();
    } else if (!run_timer()) {
      break;
    }
  }
  if (problem_.empty() && steps_ >= kStepsMax) fail("the cards never come to rest");
  size_t sent_blocks = 0;
  for (const Machine& machine : machines_) {
    const CardHolds holds = card_holds(*machine.card);
    if (problem_.empty() && (holds.packets != 0 || holds.dma_records != 0 || holds.operations != 0))
      fail("a card keeps packets, DMA records or operations");
    sent_blocks += holds.sent_blocks;
    if (problem_.empty() && card_counters(*machine.card)[PEAL_COUNTER_PEERS_DEAD] != 0)
      fail("a living peer was taken for dead");
  }
  if (problem_.empty() && buffers_.size() - free_.size() != sent_blocks)
    fail("packets are nowhere, or what stays in its packet is not");
  for (uint32_t rank = 0; rank < plan_.cards && problem_.empty(); rank++)
    for (uint32_t sequence = 0; sequence < machines_[rank].posted; sequence++)
      if (!has_garbage(rank, sequence)) fail_of_garbage(rank, sequence);
  return problem_;
}

std::string World::run(std::vector<Node>* path) {
  reset();
  const uint32_t at_once = plan_.late ? plan_.cards - 1 : plan_.cards;
  for (uint32_t rank = 0; rank < at_once; rank++) {
    post_all(rank);
    settle(rank);
  }
  uint32_t timers = plan_.timers;
  bool late = plan_.late;
  size_t depth = 0;
  while (problem_.empty() && steps_ < kStepsMax) {
    if (!choosing()) {
      // Nothing to choose: what waited is delivered, then time passes.
      bool over = true;
      for (uint32_t i = 0; i < plan_.cards; i++)
        over = over && machines_[i].sent == plan_.packets_of(i);
      if (over) break;
      if (!flights_.empty()) {
        deliver_first();
      } else if (late) {
        late = false;
        post_all(plan_.cards - 1);
        settle(plan_.cards - 1);
      } else if (done() || !run_timer()) {
        break;
      }
      continue;
    }
    if (depth == path->size()) {
      Node node;
      if (depth > 0) {
        const Node& before = (*path)[depth - 1];
        const Choice& chosen = before.choices[before.taken];
        // What was tried before, and what sleeps, sleeps on as long as the choice does not touch
        // it.
        for (size_t i = 0; i < before.taken; i++)
          if (independent(before.choices[i], chosen)) node.sleep.push_back(before.choices[i]);
        for (const Choice& asleep : before.sleep)
          if (independent(asleep, chosen)) node.sleep.push_back(asleep);
      }
      for (const Choice& choice : enabled(timers))
        if (std::find(node.sleep.begin(), node.sleep.end(), choice) == node.sleep.end())
          node.choices.push_back(choice);
      if (node.choices.empty()) return {};  // everything from here was run in another order
      path->push_back(std::move(node));
    }
    const Node& node = (*path)[depth++];
    const Choice choice = node.choices[node.taken];
    if (choice.act == Act::kTimer) timers--;
    carry_out(choice);
  }
  if (late) {
    post_all(plan_.cards - 1);
    settle(plan_.cards - 1);
  }
  return end_well();
}

}  // namespace peal::explore
