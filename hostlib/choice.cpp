// SPDX-License-Identifier: BSD-2-Clause
// The choice of algorithms; see choice.h.
#include "hostlib/choice.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "abi/admin.h"
#include "base/names.h"
#include "hostlib/error.h"
#include "hostlib/hash.h"

namespace peal::host {
namespace {

// Bumped whenever the same hash comes to mean another choice.
constexpr uint32_t kTableVersion = 3;

// From the medians of peal-perf (docs/performance.md): up to these lengths both ways of an
// allgather take about as long, and recursive doubling sends far fewer packets (N log2 N instead of
// N (N-1)); beyond, packets that are forwarded without touching the host win, the later the more
// ranks share a card's processor. Two ranks send the same packets either way. Blocks that wait for
// their receivers go to each of them directly among so few ranks that all are soon there: nobody
// who is early waits for who is late. Among more, a late rank hides behind its computing what is
// forwarded to it, but not quite what is sent to it. In an all-to-all Bruck's way carries every
// block half of log2 N times, in fewer packets only where they are short; in an alltoallv, whatever
// the lengths, short ones alone, which costs long ones a packet a step and among more ranks room in
// the channel.
constexpr ChoiceRule kDefaults[] = {
    {PEAL_OPERATION_BARRIER, PEAL_ALGORITHM_DISSEMINATION, {}, {}},
    {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_RECURSIVE_DOUBLING, {0, 0}, {1, 2}},
    {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_RECURSIVE_DOUBLING, {0, 512}, {3, 16}},
    {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_RECURSIVE_DOUBLING, {0, 2048}, {17}},
    {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_DIRECT, {65536}, {3, 16}},
    {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, {}, {}},
    {PEAL_OPERATION_BROADCAST, PEAL_ALGORITHM_BINOMIAL, {}, {}},
    {PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_BRUCK, {0, 2048}, {1, 8}},
    {PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_BRUCK, {0, 1024}, {9}},
    {PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_DIRECT, {}, {}},
    {PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_BRUCK, {}, {}},  // where that cannot be
    {PEAL_OPERATION_ALLGATHERV, PEAL_ALGORITHM_DIRECT, {}, {}},
    {PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_BRUCK, {}, {5, 8}},
    {PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_DIRECT, {}, {}},
};

// From Sur, Bondhugula and others: a ring for more than a megabyte, or more than 32 ranks.
constexpr uint64_t kRingBytes = 1 << 20;
constexpr uint32_t kRingRanks = 32;
// Measured on peal-nic (docs/performance.md): of all blocks of a rank together, and of a broadcast.
constexpr uint64_t kGatheredBytes = 2 << 10;
constexpr uint64_t kCollectedBytes = 32 << 10;
constexpr uint64_t kChainBytes = 1 << 20;

ChoiceRule program_rule(peal_operation operation, ProgramWay program, const Range& bytes = {},
                        const Range& ranks = {}) {
  return {operation, PEAL_ALGORITHM_NONE, bytes, ranks, true, program};
}

// Of persistent requests.
std::vector<ChoiceRule> program_defaults(uint32_t size) {
  const uint64_t ranks = std::max(size, 1u);
  return {
      program_rule(PEAL_OPERATION_BARRIER, ProgramWay::kDissemination),
      program_rule(PEAL_OPERATION_ALLGATHER, ProgramWay::kCollected, {0, kGatheredBytes / ranks},
                   {1, kRingRanks}),
      program_rule(PEAL_OPERATION_ALLGATHER, ProgramWay::kDoubling, {0, kRingBytes / ranks},
                   {1, kRingRanks}),
      program_rule(PEAL_OPERATION_ALLGATHER, ProgramWay::kRing),
      program_rule(PEAL_OPERATION_BROADCAST, ProgramWay::kBinomial, {0, kChainBytes - 1}),
      program_rule(PEAL_OPERATION_BROADCAST, ProgramWay::kBinomial, {}, {1, 2}),
      program_rule(PEAL_OPERATION_BROADCAST, ProgramWay::kChain),
      program_rule(PEAL_OPERATION_ALLTOALL, ProgramWay::kCollected, {0, kCollectedBytes / ranks}),
      program_rule(PEAL_OPERATION_ALLTOALL, ProgramWay::kPairs),
      program_rule(PEAL_OPERATION_ALLGATHERV, ProgramWay::kPairs),
      program_rule(PEAL_OPERATION_ALLTOALLV, ProgramWay::kPairs),
  };
}

// A direct exchange needs everybody's address, and so do the long blocks of any alltoallv. (Where a
// program cannot run, an ordinary operation takes its place.)
bool can_run(const ChoiceRule& rule, const ChoiceGroup& group) {
  const bool talks_to_all = rule.algorithm == PEAL_ALGORITHM_DIRECT ||
                            (rule.operation == PEAL_OPERATION_ALLTOALLV && !rule.persistent);
  return !talks_to_all || peal_may_talk_to_all(group.size, group.addresses) != 0;
}

ChoiceRule every_allgather(const AllgatherChoice& choice) {
  return {PEAL_OPERATION_ALLGATHER, choice.algorithm, {}, {}};
}

peal_error add_wanted(int wanted, PlacedRules* rules) {
  if (wanted == PEAL_ALLGATHER_AUTO) return PEAL_OK;
  for (const AllgatherChoice& choice : kAllgatherChoices) {
    if (choice.wanted != wanted) continue;
    rules->push_back({every_allgather(choice), "peal_group_params.allgather_algorithm"});
    return PEAL_OK;
  }
  return fail(PEAL_ERR_INVALID_ARGUMENT, "allgather algorithm %d in the parameters", wanted);
}

// "auto, … or …"
std::string expected_names() {
  std::vector<std::string> words = {"auto"};
  for (const AllgatherChoice& choice : kAllgatherChoices)
    words.push_back(names::algorithm(choice.algorithm));
  return names::list_of(words);
}

peal_error add_allgather_variable(std::string_view name, PlacedRules* rules) {
  if (name.empty() || name == "auto") return PEAL_OK;
  for (const AllgatherChoice& choice : kAllgatherChoices) {
    if (names::value_of(names::kAlgorithms, name) != choice.algorithm) continue;
    rules->push_back({every_allgather(choice), "$PEAL_ALLGATHER_ALGORITHM"});
    return PEAL_OK;
  }
  return fail(PEAL_ERR_INVALID_ARGUMENT, "$PEAL_ALLGATHER_ALGORITHM is \"%s\": expected %s",
              std::string(name).c_str(), expected_names().c_str());
}

std::string_view text_or_none(const char* text) { return text == nullptr ? "" : text; }

peal_error gather_rules(const ChoiceSources& sources, PlacedRules* rules) {
  peal_error error = add_wanted(sources.allgather, rules);
  if (error != PEAL_OK) return error;
  error = parse_rules(text_or_none(sources.rules), "peal_group_params.algorithms", rules);
  if (error != PEAL_OK) return error;
  error = add_allgather_variable(text_or_none(sources.allgather_variable), rules);
  if (error != PEAL_OK) return error;
  error = parse_rules(text_or_none(sources.rules_variable), "$PEAL_ALGORITHMS", rules);
  if (error != PEAL_OK) return error;
  const std::string file(text_or_none(sources.rules_file));
  return file.empty() ? PEAL_OK : read_rules_file(file, rules);
}

}  // namespace

ChoiceTable::ChoiceTable(const ChoiceGroup& group, PlacedRules rules)
    : group_(group), rules_(std::move(rules)) {
  for (const Subject& subject : subjects()) settle(subject);
}

// Between two ends of ranges nothing changes: at each the first rule that fits is sought. Where no
// algorithm will do, the card refuses that of the first.
void ChoiceTable::settle(const Subject& subject) {
  const auto fits = [&](const ChoiceRule& rule) {
    return rule.subject() == subject && rule.ranks.has(group_.size);
  };
  std::vector<uint64_t> ends = {0};
  for (const PlacedRule& each : rules_) {
    if (!fits(each.rule)) continue;
    ends.push_back(each.rule.bytes.first);
    if (each.rule.bytes.last != UINT64_MAX) ends.push_back(each.rule.bytes.last + 1);
  }
  std::sort(ends.begin(), ends.end());
  Parts& parts = subject.persistent ? programs_[subject.operation] : parts_[subject.operation];
  for (const uint64_t bytes : ends) {
    const auto decides = [&](const PlacedRule& each) {
      return fits(each.rule) && each.rule.bytes.has(bytes);
    };
    const auto may_run = [&](const PlacedRule& each) {
      return decides(each) && can_run(each.rule, group_);
    };
    const auto first = std::find_if(rules_.begin(), rules_.end(), decides);
    const auto able = std::find_if(first, rules_.end(), may_run);
    const auto found = able == rules_.end() ? first : able;
    const auto rule = static_cast<uint32_t>(found - rules_.begin());
    const auto passed_over = static_cast<uint32_t>(first - rules_.begin());
    if (!parts.empty() && parts.back().rule == rule && parts.back().passed_over == passed_over) {
      continue;
    }
    parts.push_back({bytes, rule, passed_over, found->rule.algorithm, found->rule.program});
  }
}

uint32_t ChoiceTable::hash() const {
  uint32_t hash = hash_word(kHashBasis, kTableVersion);
  hash = hash_word(hash, group_.size);
  for (const Subject& subject : subjects()) {
    const Part* last = nullptr;
    for (const Part& part : parts(subject)) {
      if (last != nullptr && part.algorithm == last->algorithm && part.program == last->program) {
        continue;
      }
      last = &part;
      hash = hash_word(hash, subject.operation);
      hash = hash_word(hash, subject.persistent ? 1 : 0);
      hash = hash_word(hash, part.first_bytes);
      hash = hash_word(hash, static_cast<uint64_t>(part.algorithm));
      hash = hash_word(hash, static_cast<uint64_t>(part.program));
    }
  }
  return hash;
}

ChoiceSources sources_of_environment() {
  ChoiceSources sources;
  sources.allgather_variable = getenv("PEAL_ALLGATHER_ALGORITHM");
  sources.rules_variable = getenv("PEAL_ALGORITHMS");
  sources.rules_file = getenv("PEAL_ALGORITHMS_FILE");
  return sources;
}

peal_error make_choice_table(const ChoiceGroup& group, const ChoiceSources& sources,
                             ChoiceTable* table) {
  PlacedRules rules;
  const peal_error error = gather_rules(sources, &rules);
  if (error != PEAL_OK) return error;
  for (const ChoiceRule& rule : kDefaults) rules.push_back({rule, "the default table"});
  for (const ChoiceRule& rule : program_defaults(group.size))
    rules.push_back({rule, "the default table"});
  *table = ChoiceTable(group, std::move(rules));
  return PEAL_OK;
}

}  // namespace peal::host
