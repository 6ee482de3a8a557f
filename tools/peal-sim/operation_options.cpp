// SPDX-License-Identifier: BSD-2-Clause
#include "tools/peal-sim/operation_options.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "base/names.h"
#include "emulator/cluster/arithmetic.h"
#include "emulator/cluster/blocks.h"
#include "emulator/cluster/mix.h"
#include "emulator/common/random.h"
#include "tools/peal-sim/commands.h"

namespace peal::sim {

namespace {

constexpr const char* kAnyRoot = "random";
constexpr uint64_t kRootStream = 11;
constexpr std::initializer_list<uint32_t> kOperations = {
    PEAL_OPERATION_ALLGATHER, PEAL_OPERATION_BARRIER,    PEAL_OPERATION_BROADCAST,
    PEAL_OPERATION_ALLTOALL,  PEAL_OPERATION_ALLGATHERV, PEAL_OPERATION_ALLTOALLV};

// "this, that or another"
std::string algorithms_text(uint32_t operation) {
  std::vector<std::string> words;
  for (const uint32_t algorithm : algorithms_of(operation))
    words.push_back(names::algorithm(algorithm));
  return names::list_of(words);
}

// What --algorithm may be, whatever the operation.
std::vector<std::string> algorithm_names() {
  std::vector<std::string> all;
  for (const uint32_t operation : kOperations)
    for (const uint32_t algorithm : algorithms_of(operation))
      all.push_back(names::algorithm(algorithm));
  return all;
}

std::string algorithm_help() {
  std::string text;
  for (const uint32_t operation : kOperations)
    text += (text.empty() ? "Does it by " : ", ") + algorithms_text(operation) + " (" +
            names::operation(operation) + ")";
  return text + ". Default: the first one named for the operation.";
}

uint32_t parse_root(const std::string& text, uint64_t ranks) {
  uint64_t root = 0;
  if (!command_line::parse_whole(text, 0, ranks - 1, &root))
    throw UsageError("--root '" + text + "': expected random, or a rank, 0 to " +
                     std::to_string(ranks - 1));
  return static_cast<uint32_t>(root);
}

}  // namespace

void OperationOptions::add_to(command_line::Group& group) {
  group
      .add("--operation", operation, "NAME",
           "Posts allgather, barrier, broadcast, alltoall, allgatherv or alltoallv.")
      .check(command_line::one_of(names::names_of(names::kOperations, kOperations)))
      .show_default();
  group.add("--algorithm", algorithm, "NAME", algorithm_help())
      .check(command_line::one_of(algorithm_names()));
  group
      .add("--bytes", bytes, "B",
           "Sends blocks of so many bytes; allgatherv and alltoallv of at most so many: empty, "
           "short and long "
           "ones.")
      .check(command_line::whole(0, UINT32_MAX))
      .show_default();
  group
      .add("--root", root, "RANK",
           "Broadcasts from this rank; random: from another one each time, which the seed decides.")
      .show_default();
  group.add_flag("--in-place", in_place,
                 "Keeps a rank's own blocks in its receive buffer (allgather, alltoall, and "
                 "with parts).");
}

OperationPlan OperationOptions::plan(uint64_t ranks) const {
  OperationPlan plan;
  plan.operation = *names::value_of(names::kOperations, operation);
  const std::vector<uint32_t> known = algorithms_of(plan.operation);
  const auto asked = names::value_of(names::kAlgorithms, algorithm);
  plan.algorithm = asked.value_or(static_cast<uint8_t>(known.front()));
  if (std::find(known.begin(), known.end(), plan.algorithm) == known.end())
    throw UsageError("--algorithm " + algorithm + ": " + (operation.front() == 'a' ? "an " : "a ") +
                     operation + " is done by " + algorithms_text(plan.operation));
  if (!may_run(plan.operation, plan.algorithm, static_cast<uint32_t>(ranks)))
    throw UsageError("--algorithm " + algorithm + " needs the addresses of all " +
                     std::to_string(ranks) + " ranks; a card of this profile remembers " +
                     std::to_string(remembered_addresses()));
  plan.in_place = in_place && may_be_in_place(plan.operation);
  if (buffer_sizes(plan.operation, 1).receive > 0) plan.block_bytes = bytes;
  if (root == kAnyRoot && !has_root(plan.operation))
    throw UsageError("--root random: " + operation_text(plan) + " has none");
  if (root != kAnyRoot) plan.root = parse_root(root, ranks);
  return plan;
}

bool OperationOptions::random_root() const {
  return root == kAnyRoot && has_root(*names::value_of(names::kOperations, operation));
}

void draw_roots(Scenario& scenario) {
  for (uint32_t group = 0; group < scenario.groups.size(); group++) {
    GroupPlan& plan = scenario.groups[group];
    emulator::Random random(mix(scenario.seed, kRootStream, group));
    for (OperationPlan& operation : plan.operations)
      operation.root = static_cast<uint32_t>(random.below(plan.places.size()));
  }
}

}  // namespace peal::sim
