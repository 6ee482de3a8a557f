// SPDX-License-Identifier: BSD-2-Clause
// All that a wire can do to the first packets that each card sends: every act takes one of them
// that is in flight and delivers it, loses it, or delivers it and keeps a copy in flight, or lets
// the time pass to the next timer while all of them wait. What is sent later waits for these, and
// is then delivered in order. So all losses, repetitions, orders and delays of those packets are
// tried, and everything must end well. Acts at different cards commute, and of the orders that
// differ only by that one is run (sleep sets: Godefroid, "Partial-Order Methods for the
// Verification of Concurrent Systems").
//
// A world of its own, as small as can be: the cards' memory is copied back before every run. DMA is
// done at once, in order.
#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/names.h"
#include "emulator/cluster/blocks.h"
#include "emulator/common/packet_text.h"
#include "firmware/base/mutation.h"
#include "firmware/card.h"
#include "firmware/payload.h"
#include "peal_config.h"

namespace {

using namespace peal;
using sim::BlockName;
using sim::Blocks;

constexpr uint32_t kCardsMax = 4;
constexpr uint32_t kBlockMax = 3 * CONFIG_MTU_BYTES;
constexpr uint32_t kSlots = CONFIG_CHANNELS;
// Tables of parts lie behind what is sent.
constexpr size_t kTables = size_t{kSlots} * kBlockMax * kCardsMax;
constexpr size_t kTableBytes = 2 * kCardsMax * sizeof(peal_part);
constexpr uint64_t kStepsMax = 100'000;  // of one run
constexpr uint64_t kGroup = 0x9ea1;
constexpr uint64_t kCopyKey = 0x9e3779b97f4a7c15u;

struct Plan {
  std::string name;
  uint32_t cards;
  std::vector<peal_submission> operations;  // opcode, algorithm and block_bytes of each
  uint8_t explore_from;                     // packets count from the first of this operation on
  bool late;         // the last rank posts when nothing is in flight any more
  uint32_t packets;  // of each card
  uint32_t last;     // of the last card: those, or fewer
  uint32_t timers;   // acts that let time pass, at most
  bool whole;        // however many runs it takes

  [[nodiscard]] Blocks blocks(uint32_t sequence, uint32_t rank) const {
    sim::OperationPlan plan;
    plan.operation = operations[sequence].operation;
    plan.root = operations[sequence].root;
    plan.block_bytes = static_cast<uint32_t>(operations[sequence].block_bytes);
    return {plan, cards, rank};
  }
  [[nodiscard]] uint32_t packets_of(uint32_t card) const {
    return card + 1 == cards ? std::min(packets, last) : packets;
  }
};

struct Flight {
  uint32_t to;
  bool chosen;   // what happens to it is an act
  bool copy;     // it was delivered before
  uint64_t key;  // of a chosen one: equal for equal packets to the same card
  peal_wire_header header;
  std::vector<uint8_t> payload;
};

enum class Act : uint8_t { kDeliver, kLose, kTwice, kTimer };

struct Choice {
  Act act;
  uint32_t to;
  uint64_t key;
  bool operator==(const Choice&) const = default;
};

bool independent(const Choice& a, const Choice& b) {
  if (a.act == Act::kTimer || b.act == Act::kTimer) return false;
  if (a.act == Act::kLose || b.act == Act::kLose) return a.key != b.key;
  return a.to != b.to;
}

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

struct Buffer : Packet {
  peal_wire_header header_bytes;
  uint8_t bytes[kPayloadBytes];
};

class World;

class Wire final : public Port {
 public:
  Wire(World& world, uint32_t card) : world_(world), card_(card) {}
  Packet* allocate_packet() override;
  Packet* share_packet(Packet* packet) override;
  void release_packet(Packet* packet) override;
  void send(Packet* packet, uint32_t engine) override;
  // What comes early goes to the channel.
  [[nodiscard]] uint32_t packet_buffers() const override { return 0; }
  [[nodiscard]] Checksums checksums() const override { return Checksums::kSkipped; }
  [[nodiscard]] bool dma_read(HostAddress from, uint8_t* card, uint32_t bytes,
                              DmaToken token) override;
  [[nodiscard]] bool dma_write(const uint8_t* card, HostAddress to, uint32_t bytes,
                               DmaToken token) override;
  void complete(ContextId context, const peal_completion& entry) override;

 private:
  World& world_;
  uint32_t card_;
};

struct Machine {
  std::unique_ptr<Wire> wire;
  std::vector<uint64_t> memory;  // of the card
  std::vector<uint64_t> fresh;   // the same when the group had been made
  Card* card = nullptr;
  ContextId context = 0;
  peal_peer_address address{};
  uint32_t send_key = 0;
  uint32_t receive_key = 0;
  std::vector<uint8_t> regions[3];  // send, receive, channels
  std::deque<DmaToken> dma;
  uint32_t posted = 0;
  uint32_t completed = 0;
  uint64_t ended = 0;  // bit per sequence
  uint32_t sent = 0;   // packets whose fate is chosen
};

class World {
 public:
  explicit World(const Plan& plan) : plan_(plan) { make_group(); }

  // Runs with these choices first, and whatever comes first where they end. The nodes on the way
  // get what could have been chosen.
  struct Node {
    std::vector<Choice> choices;  // all, those that sleep left out
    std::vector<Choice> sleep;
    size_t taken = 0;
  };
  // Empty, or what went wrong.
  std::string run(std::vector<Node>* path);
  [[nodiscard]] const std::vector<std::string>& story() const { return story_; }
  bool tell = false;

 private:
  friend class Wire;

  void make_group();
  void reset();
  static void name_parts(Machine& machine, const Blocks& blocks, uint32_t sequence,
                         peal_submission* entry);
  void post(uint32_t rank);
  void post_all(uint32_t rank);
  void settle(uint32_t card);
  void deliver(const Flight& flight);
  bool run_timer();
  [[nodiscard]] TimeNs next_deadline(uint32_t* card) const;
  [[nodiscard]] std::vector<Choice> enabled(uint32_t timers_left) const;
  void carry_out(const Choice& choice);
  std::string end_well();
  [[nodiscard]] bool done() const;
  [[nodiscard]] bool choosing() const;
  void deliver_first();
  void fail(const std::string& text) {
    if (problem_.empty()) problem_ = text;
  }
  // Byte `at` of a block is the first one's and seven times that more.
  [[nodiscard]] static uint8_t pattern(const BlockName& name, uint32_t sequence) {
    return static_cast<uint8_t>(name.from * 67 + name.to * 41 + sequence * 31 + 1);
  }
  static void fill(uint8_t* block, uint32_t bytes, uint8_t first) {
    for (uint32_t at = 0; at < bytes; at++) block[at] = static_cast<uint8_t>(first + at * 7);
  }
  [[nodiscard]] static bool is_filled(const uint8_t* block, uint32_t bytes, uint8_t first) {
    uint32_t wrong = 0;
    for (uint32_t at = 0; at < bytes; at++)
      wrong |= static_cast<uint8_t>(first + at * 7) ^ uint32_t { block[at] };
    return wrong == 0;
  }
  // Where the buffers of an operation begin, in both regions.
  [[nodiscard]] static uint64_t offset_of(uint32_t sequence) {
    return uint64_t{sequence % kSlots} * kBlockMax * kCardsMax;
  }

  const Plan& plan_;
  std::vector<Machine> machines_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<Buffer*> free_;
  std::deque<Flight> flights_;
  TimeNs now_ = 0;
  bool counting_ = false;
  uint64_t steps_ = 0;
  std::string problem_;
  std::vector<std::string> story_;
};

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

void Wire::release_packet(Packet* packet) { world_.free_.push_back(static_cast<Buffer*>(packet)); }

void Wire::send(Packet* packet, uint32_t) {
  const peal_wire_header& header = *packet->header;
  Flight flight{};
  flight.to = emulator::card_of_mac(header.destination);
  Machine& machine = world_.machines_[card_];
  world_.counting_ |= header.operation == world_.plan_.explore_from;
  flight.copy = false;
  flight.chosen = world_.counting_ && machine.sent < world_.plan_.packets_of(card_);
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

bool Wire::dma_read(HostAddress from, uint8_t* card, uint32_t bytes, DmaToken token) {
  Machine& machine = world_.machines_[card_];
  std::memcpy(card, machine.regions[from.region].data() + from.offset, bytes);
  machine.dma.push_back(token);
  return true;
}

bool Wire::dma_write(const uint8_t* card, HostAddress to, uint32_t bytes, DmaToken token) {
  Machine& machine = world_.machines_[card_];
  std::memcpy(machine.regions[to.region].data() + to.offset, card, bytes);
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
  const uint8_t* result = machine.regions[1].data() + World::offset_of(sequence);
  for (uint32_t i = 0; i < blocks.received(); i++) {
    const BlockName name = blocks.received_name(i);
    const sim::Extent block = blocks.received_extent(i);
    if (!World::is_filled(result + block.offset, static_cast<uint32_t>(block.bytes),
                          World::pattern(name, sequence)))
      return world_.fail(who + ": block of rank " + std::to_string(name.from) + " is wrong");
  }
  // The buffers are the user's again.
  std::memset(machine.regions[0].data() + World::offset_of(sequence), 0xee,
              operation.block_bytes * blocks.sent());
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
    machine.regions[1].resize(size_t{kSlots} * kBlockMax * kCardsMax);
    machine.regions[2].resize(size_t{CONFIG_CHANNELS} * CONFIG_CHANNEL_BYTES);
    reserve.rank = i;
    const bool good =
        card_open_context(*machine.card, machine.context) == PEAL_STATUS_OK &&
        card_register_memory(*machine.card, machine.context, 0, machine.regions[0].size(),
                             PEAL_ACCESS_READ, &machine.send_key) == PEAL_STATUS_OK &&
        card_register_memory(*machine.card, machine.context, 1, machine.regions[1].size(),
                             PEAL_ACCESS_READ | PEAL_ACCESS_WRITE,
                             &machine.receive_key) == PEAL_STATUS_OK &&
        card_reserve_group(*machine.card, machine.context, reserve, 2, 0, &machine.address) ==
            PEAL_STATUS_OK;
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
  for (Machine& machine : machines_) {
    std::memcpy(machine.memory.data(), machine.fresh.data(), machine.fresh.size() * 8);
    machine.dma.clear();
    machine.posted = machine.completed = 0;
    machine.ended = 0;
    machine.sent = 0;
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
  const bool to_each = entry->operation == PEAL_OPERATION_ALLTOALLV;
  for (uint32_t i = 0; to_each && i < blocks.sent(); i++) add(blocks.sent_extent(i));
  for (uint32_t i = 0; i < blocks.received(); i++) add(blocks.received_extent(i));
  const size_t table = kTables + sequence % kSlots * kTableBytes;
  std::memcpy(machine.regions[0].data() + table, parts.data(), parts.size() * sizeof(peal_part));
  if (to_each) entry->send_offset = 0;
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
  if (blocks.sent() > 0) {
    entry.send_key = machine.send_key;
    entry.send_offset = offset;
  }
  for (uint32_t i = 0; i < blocks.sent(); i++) {
    const sim::Extent block = blocks.sent_extent(i);
    fill(machine.regions[0].data() + offset + block.offset, static_cast<uint32_t>(block.bytes),
         pattern(blocks.sent_name(i), sequence));
  }
  if (blocks.received() > 0) {
    entry.receive_key = machine.receive_key;
    entry.receive_offset = offset;
    std::memset(machine.regions[1].data() + offset, 0, entry.block_bytes * blocks.received());
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
  for (const Machine& machine : machines_) {
    const CardHolds holds = card_holds(*machine.card);
    if (problem_.empty() && (holds.packets != 0 || holds.dma_records != 0 || holds.operations != 0))
      fail("a card keeps packets, DMA records or operations");
    if (problem_.empty() && card_counters(*machine.card)[PEAL_COUNTER_PEERS_DEAD] != 0)
      fail("a living peer was taken for dead");
  }
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

// --- all of them ---

// False when there is no other path.
bool advance(std::vector<World::Node>* path) {
  while (!path->empty()) {
    World::Node& last = path->back();
    if (++last.taken < last.choices.size()) return true;
    path->pop_back();
  }
  return false;
}

// How many runs it took; 0 after a failure.
uint64_t explore(const Plan& plan) {
  World world(plan);
  std::vector<World::Node> path;
  uint64_t runs = 0;
  do {
    runs++;
    const std::string problem = world.run(&path);
    if (problem.empty()) continue;
    world.tell = true;
    (void)world.run(&path);
    std::printf("%s: %s, in run %" PRIu64 "\n", plan.name.c_str(), problem.c_str(), runs);
    const size_t shown = std::min<size_t>(world.story().size(), 60);
    for (size_t i = 0; i < shown; i++) std::printf("  %s\n", world.story()[i].c_str());
    return 0;
  } while (advance(&path));
  return runs;
}

// One packet of each card more each time, up to `packets`, while the next is likely to take at most
// runs_max runs (or however many). False after a failure.
bool deepen(Plan plan, uint32_t packets, uint64_t runs_max, uint64_t* total) {
  uint64_t before = 1;
  uint64_t runs = 1;
  uint32_t done = 0;
  for (plan.packets = 1;
       plan.packets <= packets && (plan.whole || runs * runs / before <= runs_max);
       plan.packets++) {
    before = runs;
    runs = explore(plan);
    if (runs == 0) return false;
    *total += runs;
    done = plan.packets;
  }
  plan.packets = done;
  uint32_t together = 0;
  for (uint32_t i = 0; i < plan.cards; i++) together += plan.packets_of(i);
  std::printf("%-52s %u cards, %2u packets, %u timers: %9" PRIu64 " runs, all well\n",
              plan.name.c_str(), plan.cards, together, plan.timers, runs);
  std::fflush(stdout);
  return true;
}

peal_submission operation(uint8_t what, uint8_t algorithm, uint32_t bytes) {
  peal_submission entry{};
  entry.operation = what;
  entry.algorithm = algorithm;
  entry.block_bytes = bytes;
  return entry;
}

std::vector<Plan> plans() {
  const peal_submission barrier =
      operation(PEAL_OPERATION_BARRIER, PEAL_ALGORITHM_DISSEMINATION, 0);
  const peal_submission destroy =
      operation(PEAL_OPERATION_DESTROY, PEAL_ALGORITHM_DISSEMINATION, 0);
  const auto gather = [](uint8_t algorithm, uint32_t bytes) {
    return operation(PEAL_OPERATION_ALLGATHER, algorithm, bytes);
  };
  constexpr uint8_t kBroadcast = PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST;
  constexpr uint8_t kDoubling = PEAL_ALGORITHM_RECURSIVE_DOUBLING;
  constexpr uint32_t kSmall = CONFIG_STAGING_BLOCK_BYTES / 2;  // staged
  constexpr uint32_t kPiece = 500;                             // straight to the host
  constexpr uint32_t kPieces = 2 * CONFIG_MTU_BYTES + 100;
  std::vector<Plan> list;
  for (uint32_t cards = 2; cards <= kCardsMax; cards++) {
    // Eight packets of every operation, as two, three and four cards do it.
    const auto add = [&](const char* name, std::vector<peal_submission> operations, uint8_t from,
                         bool whole = false) {
      const uint32_t last = cards == 3 ? 2 : ~0u;  // eight packets
      for (const bool late : {false, true}) {
        if (late && from != operations[0].operation) continue;
        for (const uint32_t timers : {0u, 1u})
          list.push_back({std::string(name) + (late ? ", a rank is late" : ""), cards, operations,
                          from, late, 0, last, timers, whole && !late && timers == 0});
      }
    };
    add("barrier", {barrier}, PEAL_OPERATION_BARRIER, true);
    add("two barriers", {barrier, barrier}, PEAL_OPERATION_BARRIER);
    add("broadcast, staged", {gather(kBroadcast, kSmall)}, PEAL_OPERATION_ALLGATHER);
    add("broadcast, one piece", {gather(kBroadcast, kPiece)}, PEAL_OPERATION_ALLGATHER, true);
    add("broadcast, three pieces", {gather(kBroadcast, kPieces)}, PEAL_OPERATION_ALLGATHER);
    add("doubling, staged", {gather(kDoubling, kSmall)}, PEAL_OPERATION_ALLGATHER);
    add("doubling, one piece", {gather(kDoubling, kPiece)}, PEAL_OPERATION_ALLGATHER, true);
    add("doubling, three pieces", {gather(kDoubling, kPieces)}, PEAL_OPERATION_ALLGATHER);
    for (const uint32_t bytes : {kSmall, kPieces}) {
      peal_submission from_root =
          operation(PEAL_OPERATION_BROADCAST, PEAL_ALGORITHM_BINOMIAL, bytes);
      from_root.root = 1;
      add(bytes == kSmall ? "broadcast from rank 1, one packet" : "broadcast from rank 1, three",
          {from_root}, PEAL_OPERATION_BROADCAST);
      add(bytes == kSmall ? "all-to-all, staged" : "all-to-all, three pieces",
          {operation(PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_BRUCK, bytes)},
          PEAL_OPERATION_ALLTOALL);
      add(bytes == kSmall ? "direct all-to-all, one piece" : "direct all-to-all, three pieces",
          {operation(PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_DIRECT, bytes)},
          PEAL_OPERATION_ALLTOALL);
      add(bytes == kSmall ? "direct allgather, one piece" : "direct allgather, three pieces",
          {operation(PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_DIRECT, bytes)},
          PEAL_OPERATION_ALLGATHER);
      add(bytes == kSmall ? "ring, one piece" : "ring, three pieces",
          {operation(PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_RING, bytes)},
          PEAL_OPERATION_ALLGATHER);
      add(bytes == kSmall ? "allgatherv, one piece" : "allgatherv, up to three pieces",
          {operation(PEAL_OPERATION_ALLGATHERV, PEAL_ALGORITHM_DIRECT, bytes)},
          PEAL_OPERATION_ALLGATHERV);
      add(bytes == kSmall ? "alltoallv, one piece" : "alltoallv, up to three pieces",
          {operation(PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_DIRECT, bytes)},
          PEAL_OPERATION_ALLTOALLV);
    }
    add("destroy", {destroy}, PEAL_OPERATION_DESTROY, true);
    add("broadcast, then destroy", {gather(kBroadcast, kPiece), destroy}, PEAL_OPERATION_DESTROY);
    peal_submission from_root =
        operation(PEAL_OPERATION_BROADCAST, PEAL_ALGORITHM_BINOMIAL, kSmall);
    from_root.root = 1;
    std::vector<peal_submission> many(CONFIG_CHANNELS + 2, from_root);
    add("recycling of broadcasts", many, PEAL_OPERATION_RECYCLE, true);
    // The first epoch proves nothing, and has signals; those that follow have none.
    constexpr size_t kEpoch = CONFIG_CHANNELS / 2;
    for (size_t i = kEpoch; i < many.size(); i++)
      many[i] = gather(i % 2 == 0 ? kBroadcast : kDoubling, kPiece);
    many.push_back(destroy);
    add("recycling of allgathers, then destroy", many, PEAL_OPERATION_RECYCLE);
    // From the first on that proves that the epoch before is over.
    many.assign(CONFIG_CHANNELS + 2, barrier);
    std::fill_n(many.begin(), kEpoch + kEpoch / 2, gather(kDoubling, kPiece));
    add("barriers that prove an epoch", many, PEAL_OPERATION_BARRIER, true);
  }
  return list;
}

}  // namespace

#ifdef PEAL_MUTATIONS
peal::Mutation peal::present_mutation = peal::Mutation::kNone;
#endif

int main(int argc, char** argv) {
#ifdef PEAL_MUTATIONS
  if (argc > 1) {
    peal::present_mutation = static_cast<peal::Mutation>(std::atoi(argv[1]));
    --argc;
    ++argv;
  }
#endif
  if (argc > 3) {
    std::fprintf(
        stderr,
        "usage: peal-explore [MORE [RUNS]], peal-explore-mutant MUTATION [MORE [RUNS]]: the first "
        "4, 3, 2 packets and MORE of each of 2, "
        "3, 4 cards (of the third of 3 cards: 2), while they take at most about RUNS runs of each "
        "kind\n");
    return 2;
  }
  const auto more = argc > 1 ? static_cast<uint32_t>(std::strtoul(argv[1], nullptr, 10)) : 0u;
  const uint64_t runs_max = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20'000;
  uint64_t total = 0;
  for (const Plan& plan : plans()) {
    const uint32_t packets = (plan.cards == 2 ? 4 : plan.cards == 3 ? 3 : 2) + more;
    if (!deepen(plan, packets, runs_max, &total)) return 1;
  }
  std::printf("%" PRIu64 " runs\n", total);
  return 0;
}
