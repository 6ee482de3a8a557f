// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/scenario_random.h"

#include <algorithm>

#include "emulator/cluster/arithmetic.h"
#include "emulator/cluster/blocks.h"
#include "emulator/cluster/mix.h"
#include "emulator/common/random.h"
#include "peal_config.h"

namespace peal::sim {

namespace {

constexpr uint64_t kScenarioStream = 9;
constexpr uint64_t kBlockMax = 200 * 1024;
constexpr uint64_t kRootedMax = std::max(kBlockMax, uint64_t{3} * CONFIG_CHANNEL_BYTES);
constexpr uint8_t kWithBlocks[] = {PEAL_OPERATION_ALLGATHER,  PEAL_OPERATION_ALLGATHER,
                                   PEAL_OPERATION_BROADCAST,  PEAL_OPERATION_ALLTOALL,
                                   PEAL_OPERATION_ALLGATHERV, PEAL_OPERATION_ALLTOALLV};
// Packets per packet needed, at most. Slow cards ask, after a NACK interval of 20 us, for what lies
// in a queue: 3.8 was seen where nothing was lost. What is lost is asked for, answered NOT_YET up
// the tree, and may be lost again: 10.3 was seen where 29 % was.
constexpr double kEffortOfAGoodWire = 5;
constexpr double kEffortOfLoss = 35;

class Maker {
 public:
  Maker(uint64_t seed, const RandomLimits& limits)
      : limits_(limits), random_(mix(seed, kScenarioStream)) {
    scenario_.seed = seed;
    scenario_.name = "random " + std::to_string(seed);
  }

  Scenario make() {
    scenario_.cards = size_up_to(limits_.cards);
    processes_ = static_cast<uint32_t>(1 + random_.below(std::min(4, CONFIG_CONTEXTS)));
    members_.assign(scenario_.cards, 0);
    add_pace();
    const uint64_t groups = chance(30) ? 1 : between(2, 4);
    packets_left_ = limits_.packets;
    memory_left_ = limits_.memory_bytes;
    for (uint64_t i = 0; i < groups; i++) add_group(groups);
    if (chance(25)) add_successor();
    if (limits_.faults) add_faults();
    if (limits_.accidents && chance(45))
      for (uint64_t left = between(1, 3); left > 0; left--) add_accident();
    if (limits_.accidents) add_leavers();
    if (limits_.accidents && chance(40))
      for (uint64_t left = between(1, 8); left > 0; left--) add_chore();
    add_scarcity();
    if (only_bad_wire(scenario_)) {
      const double lost = 1 - (1 - scenario_.faults.loss) * (1 - scenario_.faults.corrupt);
      scenario_.effort_max = kEffortOfAGoodWire + kEffortOfLoss * lost;
    }
    return scenario_;
  }

 private:
  bool chance(uint64_t percent) { return random_.below(100) < percent; }
  uint64_t between(uint64_t least, uint64_t most) {
    return least + random_.below(most - least + 1);
  }
  // Small values as likely as large ones: uniform in the logarithm.
  uint64_t log_uniform(uint64_t most) {
    uint32_t bits = 0;
    while ((most >> bits) != 0) bits++;
    const uint64_t value = random_.below(uint64_t{1} << random_.below(bits + 1));
    return std::min(value, most);
  }
  uint32_t size_up_to(uint32_t most) {
    const auto few = std::min<uint32_t>(most, 9);
    return static_cast<uint32_t>(chance(70) ? between(1, few) : between(1, most));
  }

  void add_group(uint64_t of_groups);
  void add_successor();
  void add_operations(GroupPlan* group, uint64_t of_groups);
  void add_times(GroupPlan* group);
  void add_pace();
  void add_faults();
  void add_cut();
  void part_strangers(WireCut* cut);
  void add_accident();
  void add_group_after(const Accident& restart);
  void add_leavers();
  void add_chore();
  TimeNs short_outage();
  [[nodiscard]] bool opened(const Place& place) const;
  [[nodiscard]] uint32_t opened_process(uint32_t card) const;
  void add_scarcity();
  OperationPlan operation(uint32_t ranks, uint64_t memory);
  OperationPlan another(const OperationPlan& agreed, uint32_t ranks, uint64_t memory);

  RandomLimits limits_;
  emulator::Random random_;
  Scenario scenario_;
  uint32_t processes_ = 1;
  std::vector<uint32_t> members_;  // by card
  bool followed_ = false;          // some group is made later, in the slot kept free for it
  uint64_t packets_left_ = 0;
  uint64_t memory_left_ = 0;
};

// Buffers of all ranks together take at most so much memory.
OperationPlan Maker::operation(uint32_t ranks, uint64_t memory) {
  OperationPlan plan;
  if (chance(25)) return plan;
  plan.operation = kWithBlocks[random_.below(std::size(kWithBlocks))];
  const std::vector<uint32_t> algorithms = algorithms_of(plan.operation, ranks);
  if (algorithms.empty()) return {};  // nothing that a group so large can do
  plan.algorithm = static_cast<uint8_t>(algorithms[random_.below(algorithms.size())]);
  plan.in_place = may_be_in_place(plan.operation) && chance(30);
  plan.place_by_rank = plan.in_place && chance(30);
  if (has_parts(plan.operation)) plan.lengths = static_cast<uint32_t>(random_.below(1u << 16));
  const BufferSizes blocks = buffer_sizes(plan.operation, ranks);
  const uint64_t block_max = memory / (uint64_t{ranks} * (blocks.send + blocks.receive));
  // A broadcast of more than its channel holds waits for credits, and uses places again.
  const uint64_t most = has_root(plan.operation) ? kRootedMax : kBlockMax;
  plan.block_bytes = static_cast<uint32_t>(log_uniform(std::min(most, block_max)));
  if (has_root(plan.operation)) plan.root = static_cast<uint32_t>(random_.below(ranks));
  return plan;
}

// What a rank posts that disagrees.
OperationPlan Maker::another(const OperationPlan& agreed, uint32_t ranks, uint64_t memory) {
  OperationPlan other = agreed;
  if (has_root(agreed.operation) && chance(30)) {
    other.root = static_cast<uint32_t>((agreed.root + between(1, ranks - 1)) % ranks);
  } else if (agreed.operation != PEAL_OPERATION_BARRIER && chance(50)) {
    other.block_bytes = agreed.block_bytes / 2 + 1;
    if (other.block_bytes == agreed.block_bytes) other.block_bytes++;
  } else {
    while (other.operation == agreed.operation) other = operation(ranks, memory);
  }
  return other;
}

void Maker::add_group(uint64_t of_groups) {
  // A shuffled list of all processes that have room for another member;
  // the first few are the ranks.
  std::vector<Place> places;
  for (uint32_t card = 0; card < scenario_.cards; card++)
    for (uint32_t process = 0; process < processes_; process++) places.push_back({card, process});
  for (size_t i = places.size(); i > 1; i--) std::swap(places[i - 1], places[random_.below(i)]);
  const uint32_t ranks_max = std::min<uint32_t>(static_cast<uint32_t>(places.size()),
                                                std::min(40, CONFIG_GROUP_RANKS_MAX));
  const uint64_t ranks = chance(40) ? ranks_max : between(1, ranks_max);
  GroupPlan group;
  for (const Place& place : places) {
    // A successor of the group needs a slot as well, while this one's tombstone lives.
    if (group.places.size() == ranks || members_[place.card] + 2 > CONFIG_CARD_MEMBERS) continue;
    members_[place.card]++;
    group.places.push_back(place);
  }
  if (group.places.empty()) return;
  if (chance(50))
    std::sort(group.places.begin(), group.places.end(), [](const Place& a, const Place& b) {
      return a.card != b.card ? a.card < b.card : a.process < b.process;
    });
  add_operations(&group, of_groups);
  add_times(&group);
  scenario_.groups.push_back(group);
}

void Maker::add_operations(GroupPlan* group, uint64_t of_groups) {
  const auto ranks = static_cast<uint32_t>(group->places.size());
  group->depth = static_cast<uint32_t>(chance(30) ? 1 : between(1, CONFIG_PARKED_OPERATIONS));
  const uint64_t memory = memory_left_ / of_groups / group->depth;
  const uint64_t count = chance(70) ? between(1, 24) : between(1, 80);
  uint64_t packets = 0;
  for (uint64_t i = 0; i < count; i++) {
    const OperationPlan plan = operation(ranks, memory);
    const uint64_t pieces = 1 + plan.block_bytes / 1000;
    const uint32_t blocks = has_root(plan.operation) ? 1 : ranks;
    packets += ranks * blocks * pieces;
    if (packets > packets_left_ / of_groups && i > 0) break;
    group->operations.push_back(plan);
  }
  if (chance(12) && ranks > 1) {
    Disagreement other;
    other.rank = static_cast<uint32_t>(random_.below(ranks));
    other.index = static_cast<uint32_t>(random_.below(group->operations.size()));
    other.operation = another(group->operations[other.index], ranks, memory);
    group->disagreements.push_back(other);
  }
}

void Maker::add_times(GroupPlan* group) {
  const size_t ranks = group->places.size();
  group->think_ns = chance(50) ? 0 : log_uniform(kMillisecond);
  if (chance(20)) {
    // Shortly before the end of the wire's 32 bits, for operations or for epochs.
    const uint64_t end = chance(50) ? 1 : CONFIG_CHANNELS / 2;
    group->first_sequence = (end << 32) - CONFIG_CHANNELS;
  }
  group->connect_ns.assign(ranks, 0);
  group->first_post_ns.assign(ranks, 0);
  const uint64_t connect_ns =
      chance(50) ? 0 : log_uniform(std::min(500 * kMillisecond, scenario_.timeouts.dead_ns / 4));
  const uint64_t skew_ns = chance(50) ? 0 : log_uniform(5 * kMillisecond);
  for (size_t rank = 0; rank < ranks; rank++) {
    group->connect_ns[rank] = random_.below(connect_ns + 1);
    group->first_post_ns[rank] = random_.below(skew_ns + 1);
  }
  if (chance(15)) group->first_post_ns[random_.below(ranks)] = between(1, 6) * kSecond;
}

// A group in the place of an earlier one, once that is destroyed: slots are used again.
void Maker::add_successor() {
  if (scenario_.groups.empty() || followed_) return;
  followed_ = true;
  const auto before = static_cast<uint32_t>(random_.below(scenario_.groups.size()));
  GroupPlan next = scenario_.groups[before];
  next.after_group = before;
  next.disagreements.clear();
  std::reverse(next.places.begin(), next.places.end());
  scenario_.groups.push_back(next);
}

// Short against a card's patience even when some follow one another.
TimeNs Maker::short_outage() { return 1 + log_uniform(scenario_.timeouts.dead_ns / 8); }

void Maker::add_faults() {
  emulator::FaultPlan& faults = scenario_.faults;
  const auto probability = [this] { return static_cast<double>(log_uniform(20'000)) / 100'000; };
  const uint64_t kind = random_.below(100);
  if (kind < 60) {
    faults.loss = static_cast<double>(between(5'000, 30'000)) / 100'000;
  } else if (kind < 80) {
    faults.loss = probability();
  }
  if (chance(40)) faults.duplicate = probability();
  if (chance(40)) faults.reorder = probability();
  if (chance(30)) faults.delay = probability();
  if (chance(25)) faults.corrupt = probability();
  faults.reorder_ns = 1 + log_uniform(500 * kMicrosecond);
  faults.until_ns = between(1, chance(30) ? 3000 : 400) * kMillisecond;
  for (uint64_t i = 0; chance(10) && i < 1 + random_.below(3); i++) {
    emulator::Partition partition;
    partition.first_card = static_cast<uint32_t>(random_.below(scenario_.cards));
    partition.last_card = static_cast<uint32_t>(between(partition.first_card, scenario_.cards - 1));
    partition.from_ns = log_uniform(50 * kMillisecond);
    // Most outages heal well before anybody is given up; a few do not.
    partition.until_ns =
        partition.from_ns + 1 + (chance(15) ? 2 * scenario_.timeouts.dead_ns : short_outage());
    faults.partitions.push_back(partition);
  }
  for (uint64_t i = 0; chance(20) && scenario_.cards > 1 && i < 2; i++) add_cut();
}

// One link, in one direction or both; for good as often as not.
void Maker::add_cut() {
  WireCut cut;
  cut.from_card = static_cast<uint32_t>(random_.below(scenario_.cards));
  cut.to_card =
      static_cast<uint32_t>((cut.from_card + between(1, scenario_.cards - 1)) % scenario_.cards);
  cut.from_ns = log_uniform(20 * kMillisecond);
  if (chance(40)) part_strangers(&cut);
  const uint64_t how = random_.below(100);
  if (how < 40) {
    cut.until_ns = cut.from_ns + short_outage();
  } else if (how < 55) {
    cut.until_ns = cut.from_ns + 2 * scenario_.timeouts.dead_ns;
  }
  scenario_.cuts.push_back(cut);
  if (chance(50)) return;
  std::swap(cut.from_card, cut.to_card);
  scenario_.cuts.push_back(cut);
}

// Two ranks of a group that are no power of two apart never need each other's wire.
void Maker::part_strangers(WireCut* cut) {
  const GroupPlan& group = scenario_.groups[random_.below(scenario_.groups.size())];
  const auto ranks = group.places.size();
  if (ranks < 7) return;
  const uint64_t rank = random_.below(ranks);
  const Place& other = group.places[(rank + 3) % ranks];
  if (other.card == group.places[rank].card) return;
  cut->from_card = group.places[rank].card;
  cut->to_card = other.card;
}

void Maker::add_accident() {
  Accident accident;
  const uint64_t kind = random_.below(100);
  accident.kind = kind < 12   ? Accident::Kind::kSilence
                  : kind < 32 ? Accident::Kind::kKill
                  : kind < 37 ? Accident::Kind::kReset
                  : kind < 42 ? Accident::Kind::kWild
                  : kind < 57 ? Accident::Kind::kRestart
                  : kind < 77 ? Accident::Kind::kFreeze
                              : Accident::Kind::kUnmap;
  const GroupPlan& group = scenario_.groups[random_.below(scenario_.groups.size())];
  const size_t rank = random_.below(group.places.size());
  accident.place = group.places[rank];
  const uint64_t when = random_.below(100);
  if (when < 20 && group.connect_ns[rank] > 0) {
    accident.at_ns = random_.below(group.connect_ns[rank]);
  } else {
    accident.at_ns =
        2 * kMicrosecond + log_uniform(when < 60 ? 300 * kMicrosecond : 20 * kMillisecond);
  }
  if (accident.kind == Accident::Kind::kFreeze)
    accident.for_ns = chance(20) ? 2 * scenario_.timeouts.dead_ns : short_outage();
  if (accident.kind == Accident::Kind::kRestart) {
    accident.for_ns = 1 + log_uniform(2 * scenario_.timeouts.dead_ns);
    add_group_after(accident);
  }
  scenario_.accidents.push_back(accident);
}

// Over the card that came back, while what it was before is still being talked about.
void Maker::add_group_after(const Accident& restart) {
  if (followed_) return;  // the one slot that is kept free on every card is taken
  followed_ = true;
  GroupPlan group;
  for (uint32_t card = 0; card < scenario_.cards; card++)
    if (card == restart.place.card || chance(50))
      group.places.push_back({card, card == restart.place.card
                                        ? restart.place.process
                                        : static_cast<uint32_t>(random_.below(processes_))});
  if (group.places.size() > CONFIG_GROUP_RANKS_MAX) group.places.resize(CONFIG_GROUP_RANKS_MAX);
  for (Place& place : group.places)
    if (!opened(place)) place.process = opened_process(place.card);
  std::erase_if(group.places, [this](const Place& place) { return !opened(place); });
  if (group.places.empty()) return;
  add_operations(&group, 4);
  add_times(&group);
  group.made_ns = restart.at_ns + restart.for_ns + 1 + log_uniform(kMillisecond);
  for (TimeNs& first_ns : group.first_post_ns) first_ns = 0;
  scenario_.groups.push_back(group);
}

bool Maker::opened(const Place& place) const {
  return std::any_of(scenario_.groups.begin(), scenario_.groups.end(), [&](const GroupPlan& group) {
    return std::find(group.places.begin(), group.places.end(), place) != group.places.end();
  });
}

uint32_t Maker::opened_process(uint32_t card) const {
  for (uint32_t process = 0; process < processes_; process++)
    if (opened({card, process})) return process;
  return 0;
}

// Hosts that give up, or close as soon as they are done, while others may still ask them.
void Maker::add_leavers() {
  for (GroupPlan& group : scenario_.groups)
    if (group.places.size() > 1 && chance(6))
      group.abandons.push_back(
          {static_cast<uint32_t>(random_.below(group.places.size())), chance(50)});
  for (GroupPlan& group : scenario_.groups)
    if (group.abandons.empty() && chance(8))
      group.abandons.push_back({static_cast<uint32_t>(random_.below(group.places.size())), true,
                                static_cast<uint32_t>(between(1, group.operations.size())),
                                log_uniform(kMillisecond)});
  if (!chance(35)) return;
  for (const GroupPlan& group : scenario_.groups)
    for (const Place& place : group.places) {
      const bool known =
          std::any_of(scenario_.early_closes.begin(), scenario_.early_closes.end(),
                      [&place](const EarlyClose& close) { return close.place == place; });
      if (!known && chance(60))
        scenario_.early_closes.push_back({place, chance(50) ? 0 : log_uniform(kMillisecond)});
    }
}

// Places and keys are left over for it, or else it is refused; what groups need is not taken.
void Maker::add_chore() {
  const GroupPlan& group = scenario_.groups[random_.below(scenario_.groups.size())];
  Chore chore;
  chore.place = group.places[random_.below(group.places.size())];
  chore.at_ns = log_uniform(20 * kMillisecond);
  chore.for_ns = log_uniform(2 * kMillisecond);
  chore.choice = static_cast<uint32_t>(random_.below(uint64_t{1} << 32));
  const uint64_t kind = random_.below(100);
  const auto chores_there = static_cast<uint32_t>(
      std::count_if(scenario_.chores.begin(), scenario_.chores.end(),
                    [&](const Chore& other) { return other.place.card == chore.place.card; }));
  const uint32_t members = members_[chore.place.card] + 1 + chores_there;
  const bool room = members < CONFIG_CARD_MEMBERS && 3 * members + 3 <= CONFIG_MEMORY_KEYS;
  chore.kind = kind < 30 || !room ? Chore::Kind::kRefused
               : kind < 65        ? Chore::Kind::kRegister
                                  : Chore::Kind::kReserve;
  scenario_.chores.push_back(chore);
}

// Patience and speed of the cards.
void Maker::add_pace() {
  Timeouts& timeouts = scenario_.timeouts;
  const uint64_t nack_us = 20u << random_.below(5);
  timeouts.nack_ns = between(nack_us, std::min<uint64_t>(500, 2 * nack_us)) * kMicrosecond;
  if (chance(40)) timeouts.nack_max_ns = std::max(timeouts.nack_ns, between(1, 20) * kMillisecond);
  if (chance(30)) {
    timeouts.dead_ns = 500 * kMillisecond;
    timeouts.probe_interval_ns = 5 * kMillisecond;
  }
  CostModel& costs = scenario_.costs;
  const uint64_t packet_ns = 100u << random_.below(7);
  costs.packet_ns = between(packet_ns, std::min<uint64_t>(10'000, 2 * packet_ns));
  costs.send_ns = costs.packet_ns / 2;
  costs.timer_ns = costs.dma_event_ns = costs.packet_ns / 2;
  costs.submission_ns = costs.packet_ns;
}

// Small pools and slow engines: back-pressure everywhere, growth nowhere.
void Maker::add_scarcity() {
  if (chance(30)) scenario_.costs.dma_jitter_ns = 1 + log_uniform(20 * kMicrosecond);
  if (chance(20)) scenario_.costs.dma_latency_ns = log_uniform(50 * kMicrosecond);
  if (chance(20)) scenario_.dma_per_card = static_cast<uint32_t>(between(1, 32));
  if (chance(20)) scenario_.packets_per_card = 24u << random_.below(4);
  if (chance(30)) scenario_.sent_packets = 1u << random_.below(9);
  if (chance(30)) scenario_.dma_batch = 8u << random_.below(4);
  scenario_.lends = chance(40);
  scenario_.events_max = 100'000'000;
}

}  // namespace

Scenario random_scenario(uint64_t seed, const RandomLimits& limits) {
  return Maker(seed, limits).make();
}

std::string describe(const Scenario& scenario) {
  std::string text = std::to_string(scenario.cards) + " cards, groups";
  for (const GroupPlan& group : scenario.groups) {
    text += " " + std::to_string(group.places.size()) + "x" +
            std::to_string(group.operations.size()) + "@" + std::to_string(group.depth);
    if (!group.disagreements.empty()) text += "!";
    if (group.after_group != kNoGroup) text += "+";
    if (group.made_ns != 0) text += "after " + std::to_string(group.made_ns / 1000) + " us";
    if (group.first_sequence != 0) text += "#" + std::to_string(group.first_sequence);
    for (const Abandon& abandon : group.abandons)
      text += "-" + std::to_string(abandon.rank) +
              (abandon.posts > 0   ? "after" + std::to_string(abandon.posts)
               : abandon.connected ? "c"
                                   : "");
  }
  const std::string faults = emulator::format_fault_plan(scenario.faults);
  if (!faults.empty()) text += ", " + faults;
  for (const Accident& accident : scenario.accidents)
    text += std::string(", ") + accident_name(accident.kind) + " " +
            std::to_string(accident.place.card) + "." + std::to_string(accident.place.process) +
            " at " + std::to_string(accident.at_ns / 1000) + " us" +
            (accident.for_ns > 0 ? " for " + std::to_string(accident.for_ns / 1000) + " us" : "");
  for (const WireCut& cut : scenario.cuts)
    text += ", cut " + std::to_string(cut.from_card) + ">" + std::to_string(cut.to_card) +
            " from " + std::to_string(cut.from_ns / 1000) + " us" +
            (cut.until_ns == kNever ? " on" : " to " + std::to_string(cut.until_ns / 1000) + " us");
  if (scenario.dma_per_card != ~0u) text += ", dma " + std::to_string(scenario.dma_per_card);
  if (scenario.packets_per_card < 4096)
    text += ", packets " + std::to_string(scenario.packets_per_card);
  if (scenario.sent_packets > 0) text += ", " + std::to_string(scenario.sent_packets) + " of sent";
  if (scenario.lends) text += ", lends";
  if (scenario.dma_batch > 1) text += ", DMA by " + std::to_string(scenario.dma_batch);
  if (scenario.costs.dma_jitter_ns > 0)
    text += ", jitter " + std::to_string(scenario.costs.dma_jitter_ns) + " ns";
  if (!scenario.chores.empty()) text += ", " + std::to_string(scenario.chores.size()) + " chores";
  if (!scenario.early_closes.empty())
    text += ", " + std::to_string(scenario.early_closes.size()) + " close early";
  text += ", packet " + std::to_string(scenario.costs.packet_ns) + " ns, nack " +
          std::to_string(scenario.timeouts.nack_ns / 1000) + " us";
  return text;
}

}  // namespace peal::sim
