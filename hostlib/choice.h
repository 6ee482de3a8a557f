// SPDX-License-Identifier: BSD-2-Clause
// Which algorithm carries out an operation or is a persistent request's program, by the length of
// its blocks and the size of its group.
// Every rank must choose alike from what all ranks know, so the table's hash is compared when a
// group is made, and goes into the signature of every packet. What the cards cannot do in so large
// a group is passed over.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hostlib/choice_rules.h"

namespace peal::host {

// What a caller of the first API may ask for.
struct AllgatherChoice {
  peal_allgather_algorithm wanted;
  peal_algorithm algorithm;
};
inline constexpr AllgatherChoice kAllgatherChoices[] = {
    {PEAL_ALLGATHER_ALL_TO_ALL_BROADCAST, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST},
    {PEAL_ALLGATHER_RECURSIVE_DOUBLING, PEAL_ALGORITHM_RECURSIVE_DOUBLING}};

// Whoever has a say, the strongest first. Behind all of them stands the default table.
// Texts may be null.
struct ChoiceSources {
  int allgather = PEAL_ALLGATHER_AUTO;       // of the parameters: what a caller wrote there
  const char* rules = nullptr;               // of the parameters
  const char* allgather_variable = nullptr;  // $PEAL_ALLGATHER_ALGORITHM
  const char* rules_variable = nullptr;      // $PEAL_ALGORITHMS
  const char* rules_file = nullptr;          // $PEAL_ALGORITHMS_FILE
};

// A group, as far as the choice depends on it.
struct ChoiceGroup {
  uint32_t size = 0;       // ranks
  uint32_t addresses = 0;  // that its cards remember (peal_device): some algorithms need all
};

class ChoiceTable {
 public:
  // Blocks from `first_bytes` on, up to the next part.
  struct Part {
    uint64_t first_bytes;
    uint32_t rule;  // which of rules() decided
    // The first that fits, where its algorithm needs more addresses than the cards remember; else
    // the same.
    uint32_t passed_over;
    peal_algorithm algorithm;  // of an operation
    ProgramWay program;        // of a persistent request
  };
  using Parts = std::vector<Part>;

  ChoiceTable() = default;
  // `rules` holds a rule for every subject and length.
  ChoiceTable(const ChoiceGroup& group, PlacedRules rules);

  [[nodiscard]] peal_algorithm algorithm(peal_operation operation, uint64_t block_bytes) const {
    return part({operation, false}, block_bytes).algorithm;
  }
  [[nodiscard]] ProgramWay program(peal_operation operation, uint64_t block_bytes) const {
    return part({operation, true}, block_bytes).program;
  }
  // Tables that choose alike have the same, wherever their rules are from and however they are put.
  [[nodiscard]] uint32_t hash() const;

  // Why.
  [[nodiscard]] const PlacedRules& rules() const { return rules_; }
  [[nodiscard]] const Parts& parts(const Subject& subject) const {
    return subject.persistent ? programs_[subject.operation] : parts_[subject.operation];
  }
  [[nodiscard]] const Part& part(const Subject& subject, uint64_t block_bytes) const {
    const Part* part = &parts(subject).back();
    while (part->first_bytes > block_bytes) part--;  // the first begins at 0
    return *part;
  }

 private:
  void settle(const Subject& subject);

  ChoiceGroup group_;
  PlacedRules rules_;  // the strongest first
  std::array<Parts, PEAL_OPERATION_COUNT> parts_;
  std::array<Parts, PEAL_OPERATION_COUNT> programs_;
};

// What the environment says; the texts are its own.
ChoiceSources sources_of_environment();

peal_error make_choice_table(const ChoiceGroup& group, const ChoiceSources& sources,
                             ChoiceTable* table);

}  // namespace peal::host
