// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/scenario.h"

#include <algorithm>

#include "abi/types.h"
#include "base/names.h"
#include "emulator/cluster/blocks.h"
#include "peal_config.h"

namespace peal::sim {

namespace {

constexpr uint64_t kChannelsLeast = 4;

std::string root_problem(const OperationPlan& operation, size_t ranks) {
  const size_t roots = has_root(operation.operation) ? ranks : 1;
  if (operation.root < roots) return {};
  return "root " + std::to_string(operation.root) + " of " + operation_text(operation) +
         (roots > 1 ? ": there are ranks 0 to " + std::to_string(ranks - 1) : ": it has none");
}

std::string group_problem(const Scenario& scenario, size_t index) {
  const GroupPlan& group = scenario.groups[index];
  const std::string who = "group " + std::to_string(index) + ": ";
  const size_t ranks = group.places.size();
  if (ranks < 1 || ranks > CONFIG_GROUP_RANKS_MAX)
    return who + std::to_string(ranks) + " ranks; possible are 1 to " +
           std::to_string(CONFIG_GROUP_RANKS_MAX) + " (peal-sim-many: 65536)";
  if (group.connect_ns.size() != ranks || group.first_post_ns.size() != ranks)
    return who + "needs a time to connect and to post for every rank";
  if (group.depth < 1) return who + "depth must be at least 1";
  for (const Place& place : group.places)
    if (place.card >= scenario.cards)
      return who + "card " + std::to_string(place.card) + " of " + std::to_string(scenario.cards);
  for (size_t a = 0; a < ranks && ranks <= 64; a++)
    for (size_t b = a + 1; b < ranks; b++)
      if (group.places[a] == group.places[b])
        return who + "ranks " + std::to_string(a) + " and " + std::to_string(b) +
               " are the same process";
  for (const Disagreement& disagreement : group.disagreements) {
    if (disagreement.rank >= ranks || disagreement.index >= group.operations.size())
      return who + "a disagreement names no rank or operation";
    const std::string problem = root_problem(disagreement.operation, ranks);
    if (!problem.empty()) return who + problem;
  }
  for (const OperationPlan& operation : group.operations) {
    const std::string problem = root_problem(operation, ranks);
    if (!problem.empty()) return who + problem;
  }
  for (const Abandon& abandon : group.abandons)
    if (abandon.rank >= ranks) return who + "an abandon names no rank";
  if (group.first_sequence % kChannelsLeast != 0)
    return who + "the first sequence must be a multiple of K";
  if (group.after_group != kNoGroup && group.after_group >= index)
    return who + "can only follow an earlier group";
  return {};
}

}  // namespace

std::string Scenario::problem() const {
  if (cards < 1 || cards > 65536) return std::to_string(cards) + " cards; possible are 1 to 65536";
  if (groups.empty()) return "no group";
  for (size_t i = 0; i < groups.size(); i++) {
    const std::string problem = group_problem(*this, i);
    if (!problem.empty()) return problem;
  }
  for (const Accident& accident : accidents)
    if (accident.place.card >= cards)
      return "accident of card " + std::to_string(accident.place.card) + ": there are " +
             std::to_string(cards);
  for (const WireCut& cut : cuts) {
    if (cut.from_card >= cards || cut.to_card >= cards || cut.from_card == cut.to_card)
      return "cut from card " + std::to_string(cut.from_card) + " to card " +
             std::to_string(cut.to_card) + ": expected two of " + std::to_string(cards);
    if (cut.until_ns <= cut.from_ns) return "a cut ends before it begins";
  }
  for (const emulator::Partition& partition : faults.partitions)
    if (partition.last_card >= cards)
      return "partition of cards " + std::to_string(partition.first_card) + " to " +
             std::to_string(partition.last_card) + ": there are " + std::to_string(cards);
  if (checksums == ChecksumChoice::kSkipped && faults.corrupt > 0)
    return "checksums cannot be skipped where frames are damaged";
  if (const std::string problem = network_problem(costs, cards); !problem.empty()) return problem;
  return faults.problem();
}

std::string operation_text(const OperationPlan& operation) {
  std::string text =
      names::operation(operation.operation) + " by " + names::algorithm(operation.algorithm);
  if (buffer_sizes(operation.operation, 1).receive > 0)
    text += ", " + std::to_string(operation.block_bytes) + " bytes";
  if (operation.place_by_rank) {
    text += ", in place on some";
  } else if (operation.in_place) {
    text += ", in place";
  }
  if (has_root(operation.operation)) text += ", root " + std::to_string(operation.root);
  return text;
}

bool talks_to_everybody(const GroupPlan& plan) {
  const auto direct = [](const OperationPlan& operation) {
    return talks_to_all(operation.operation, operation.algorithm);
  };
  return std::any_of(plan.operations.begin(), plan.operations.end(), direct) ||
         std::any_of(plan.disagreements.begin(), plan.disagreements.end(),
                     [&](const Disagreement& other) { return direct(other.operation); });
}

bool only_bad_wire(const Scenario& scenario) {
  if (!scenario.accidents.empty() || !scenario.cuts.empty() || !scenario.faults.partitions.empty())
    return false;
  return std::all_of(scenario.groups.begin(), scenario.groups.end(), [](const GroupPlan& group) {
    const auto soon = [](TimeNs at_ns) { return at_ns <= kMillisecond; };
    return group.abandons.empty() && group.disagreements.empty() && soon(group.think_ns) &&
           std::all_of(group.connect_ns.begin(), group.connect_ns.end(), soon) &&
           std::all_of(group.first_post_ns.begin(), group.first_post_ns.end(), soon);
  });
}

const char* accident_name(Accident::Kind kind) {
  switch (kind) {
    case Accident::Kind::kSilence:
      return "silence";
    case Accident::Kind::kKill:
      return "kill";
    case Accident::Kind::kReset:
      return "reset";
    case Accident::Kind::kWild:
      return "wild index";
    case Accident::Kind::kRestart:
      return "restart";
    case Accident::Kind::kUnmap:
      return "unmap";
    case Accident::Kind::kFreeze:
      return "freeze";
  }
  return "?";
}

GroupPlan make_group(uint32_t cards, uint32_t members_per_card) {
  GroupPlan group;
  for (uint32_t card = 0; card < cards; card++)
    for (uint32_t process = 0; process < members_per_card; process++)
      group.places.push_back({card, process});
  group.connect_ns.assign(group.places.size(), 0);
  group.first_post_ns.assign(group.places.size(), 0);
  return group;
}

}  // namespace peal::sim
