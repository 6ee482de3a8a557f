// SPDX-License-Identifier: BSD-2-Clause
// The choice of algorithms; see choice.h.
#include "hostlib/choice.h"

#include <iterator>
#include <string>
#include <string_view>

#include "base/names.h"
#include "hostlib/error.h"

namespace peal::host {
namespace {

// Bumped whenever the same fields come to mean another choice.
constexpr uint32_t kTableVersion = 1;

uint32_t hash_word(uint32_t hash, uint64_t word) {
  for (int byte = 0; byte < 8; byte++) {  // FNV-1a
    hash = (hash ^ static_cast<uint8_t>(word >> (8 * byte))) * 16777619u;
  }
  return hash;
}

// From the medians of peal-perf (docs/performance.md): up to here both take about as long, and
// recursive doubling sends far fewer packets; beyond it, forwarding without touching the host wins,
// the later the more ranks share a card's processor.
uint64_t default_doubling_max_bytes(uint32_t size) {
  if (size <= 2) return 0;  // the same packets either way
  return size <= 16 ? 512 : 2048;
}

// "auto, … or …"
std::string expected_names() {
  std::string text = "auto";
  for (const AllgatherChoice& choice : kAllgatherChoices) {
    text += &choice == std::end(kAllgatherChoices) - 1 ? " or " : ", ";
    text += names::algorithm(choice.algorithm);
  }
  return text;
}

}  // namespace

peal_algorithm ChoiceTable::allgather(uint64_t block_bytes) const {
  for (const AllgatherChoice& choice : kAllgatherChoices)
    if (choice.wanted == forced) return choice.algorithm;
  return block_bytes <= doubling_max_bytes ? PEAL_ALGORITHM_RECURSIVE_DOUBLING
                                           : PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST;
}

uint32_t ChoiceTable::hash() const {
  uint32_t hash = 2166136261u;
  hash = hash_word(hash, kTableVersion);
  hash = hash_word(hash, size);
  hash = hash_word(hash, static_cast<uint64_t>(forced));
  return hash_word(hash, doubling_max_bytes);
}

peal_error make_choice_table(uint32_t size, peal_allgather_algorithm wanted,
                             const char* environment, ChoiceTable* table) {
  *table = ChoiceTable{size, wanted, default_doubling_max_bytes(size)};
  if (wanted != PEAL_ALLGATHER_AUTO) {
    for (const AllgatherChoice& choice : kAllgatherChoices)
      if (choice.wanted == wanted) return PEAL_OK;
    return fail(PEAL_ERR_INVALID_ARGUMENT, "allgather algorithm %d in the parameters",
                static_cast<int>(wanted));
  }
  const std::string_view name(environment == nullptr ? "" : environment);
  if (name.empty() || name == "auto") return PEAL_OK;
  for (const AllgatherChoice& choice : kAllgatherChoices) {
    if (names::value_of(names::kAlgorithms, name) == choice.algorithm) {
      table->forced = choice.wanted;
      return PEAL_OK;
    }
  }
  return fail(PEAL_ERR_INVALID_ARGUMENT, "$PEAL_ALLGATHER_ALGORITHM is \"%s\": expected %s",
              environment, expected_names().c_str());
}

}  // namespace peal::host
