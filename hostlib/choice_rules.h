// SPDX-License-Identifier: BSD-2-Clause
// Rules that say which algorithm carries out an operation, as users write them:
//
//   OPERATION[:BYTES][:nRANKS]:ALGORITHM    allgather:0-4k:n2-16:recursive-doubling
//
// OPERATION_init is that of persistent requests, and ALGORITHM what their programs do
// (program_collectives.h).
// BYTES is how long a block is (in an allgatherv the longest; an alltoallv has none), RANKS how
// large the group: A-B (both are in it), A- (that and more) or A alone; what is left out is any.
// Rules are separated by commas or line ends; # begins a comment, which lasts to the end of its
// line. The first rule that fits decides, but for one that the group cannot carry out, which is
// passed over (choice.cpp, can_run).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "abi/wire.h"
#include "peal/peal.h"

namespace peal::host {

struct Range {
  uint64_t first = 0;
  uint64_t last = UINT64_MAX;  // in it

  [[nodiscard]] constexpr bool has(uint64_t value) const { return value >= first && value <= last; }
};

// What the program of a persistent request does.
enum class ProgramWay : uint8_t {
  kDissemination,
  kBinomial,
  kChain,
  kDoubling,
  kRing,
  kCollected,
  kPairs,
};

// What is chosen for: an operation of the card's own, or a persistent request as a program.
struct Subject {
  peal_operation operation = PEAL_OPERATION_NONE;
  bool persistent = false;

  bool operator==(const Subject&) const = default;
};

struct ChoiceRule {
  peal_operation operation = PEAL_OPERATION_NONE;
  peal_algorithm algorithm = PEAL_ALGORITHM_NONE;
  Range bytes;
  Range ranks;
  bool persistent = false;
  ProgramWay program = ProgramWay::kDissemination;  // of a persistent request, instead of algorithm

  [[nodiscard]] Subject subject() const { return {operation, persistent}; }
};

// Every operation that a caller has, and what may carry it out.
struct Way {
  peal_operation operation;
  peal_algorithm algorithm;
};
inline constexpr Way kWays[] = {
    {PEAL_OPERATION_BARRIER, PEAL_ALGORITHM_DISSEMINATION},
    {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST},
    {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_RECURSIVE_DOUBLING},
    {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_DIRECT},
    {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_RING},
    {PEAL_OPERATION_BROADCAST, PEAL_ALGORITHM_BINOMIAL},
    {PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_BRUCK},
    {PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_DIRECT},
    {PEAL_OPERATION_ALLGATHERV, PEAL_ALGORITHM_DIRECT},
    {PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_DIRECT},
    {PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_BRUCK},
};
// Their names are those of algorithms of the cards' own that do the same, where there is one.
struct NamedProgramWay {
  peal_operation operation;
  ProgramWay program;
  peal_algorithm namesake;
  const char* name = nullptr;  // without a namesake
};
inline constexpr NamedProgramWay kProgramWays[] = {
    {PEAL_OPERATION_BARRIER, ProgramWay::kDissemination, PEAL_ALGORITHM_DISSEMINATION},
    {PEAL_OPERATION_ALLGATHER, ProgramWay::kCollected, PEAL_ALGORITHM_NONE, "collected"},
    {PEAL_OPERATION_ALLGATHER, ProgramWay::kDoubling, PEAL_ALGORITHM_RECURSIVE_DOUBLING},
    {PEAL_OPERATION_ALLGATHER, ProgramWay::kRing, PEAL_ALGORITHM_RING},
    {PEAL_OPERATION_BROADCAST, ProgramWay::kBinomial, PEAL_ALGORITHM_BINOMIAL},
    {PEAL_OPERATION_BROADCAST, ProgramWay::kChain, PEAL_ALGORITHM_NONE, "chain"},
    {PEAL_OPERATION_ALLTOALL, ProgramWay::kCollected, PEAL_ALGORITHM_NONE, "collected"},
    {PEAL_OPERATION_ALLTOALL, ProgramWay::kPairs, PEAL_ALGORITHM_DIRECT},
    {PEAL_OPERATION_ALLGATHERV, ProgramWay::kPairs, PEAL_ALGORITHM_DIRECT},
    {PEAL_OPERATION_ALLTOALLV, ProgramWay::kPairs, PEAL_ALGORITHM_DIRECT},
};
// Ranks must choose alike, and of such an operation they know no common length.
constexpr bool has_common_bytes(peal_operation operation) {
  return operation != PEAL_OPERATION_ALLTOALLV;
}

// "allgather", "allgather_init".
std::string name_of(const Subject& subject);
// "ring", "chain".
std::string name_of(const Subject& subject, peal_algorithm algorithm, ProgramWay program);
// All of them, in the order of kWays, then of kProgramWays.
std::vector<Subject> subjects();
std::vector<std::string> subject_names();
std::vector<std::string> algorithm_names(const Subject& subject);

// A rule and where it stands, for people: "$PEAL_ALGORITHMS", "/etc/peal.rules:3".
struct PlacedRule {
  ChoiceRule rule;
  std::string where;
};
using PlacedRules = std::vector<PlacedRule>;

// More than anybody needs; so that a wrong file is noticed and not obeyed.
inline constexpr size_t kRulesMax = 256;
inline constexpr size_t kRulesFileBytesMax = 64 * 1024;

// Appends the rules of `text`. INVALID_ARGUMENT names `where` and the words that are wrong.
peal_error parse_rules(std::string_view text, const std::string& where, PlacedRules* rules);
// The same for a file, where each rule's place is its line. SYSTEM when it cannot be read.
peal_error read_rules_file(const std::string& path, PlacedRules* rules);

// The rule as parse_rules() reads it.
std::string text_of(const ChoiceRule& rule);
// "0-4k", "4097-", "8"; "" for any.
std::string text_of(const Range& range);

}  // namespace peal::host
