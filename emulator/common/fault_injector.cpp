// SPDX-License-Identifier: BSD-2-Clause
// Verdicts and the text form of plans. Probabilities become integers once, so that the hot path and
// every machine compare integers only.
#include "emulator/common/fault_injector.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace peal::emulator {
namespace {

constexpr double kScale = 9007199254740992.0;  // 2^53

uint64_t fraction(double probability) { return static_cast<uint64_t>(probability * kScale); }

bool is_probability(double value) { return value >= 0.0 && value <= 1.0; }

bool parse_double(std::string_view text, double* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(*value);
}

bool parse_number(std::string_view text, uint64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

constexpr uint64_t kMicrosecondsMax = kForever / 1000 - 1;

bool parse_microseconds(std::string_view text, TimeNs* ns) {
  uint64_t us = 0;
  if (!parse_number(text, &us) || us > kMicrosecondsMax) return false;
  *ns = us * 1000;
  return true;
}

// FIRST-LAST
bool parse_cards(std::string_view text, uint32_t* first_card, uint32_t* last_card) {
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return false;
  uint64_t first = 0;
  uint64_t last = 0;
  if (!parse_number(text.substr(0, dash), &first) || !parse_number(text.substr(dash + 1), &last) ||
      first > UINT32_MAX || last > UINT32_MAX)
    return false;
  *first_card = static_cast<uint32_t>(first);
  *last_card = static_cast<uint32_t>(last);
  return true;
}

// FIRST-LAST:FROM_US-UNTIL_US
bool parse_partition(std::string_view text, Partition* partition) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view cards = text.substr(0, colon);
  const std::string_view times = text.substr(colon + 1);
  const size_t time_dash = times.find('-');
  if (time_dash == std::string_view::npos ||
      !parse_cards(cards, &partition->first_card, &partition->last_card))
    return false;
  return parse_microseconds(times.substr(0, time_dash), &partition->from_ns) &&
         parse_microseconds(times.substr(time_dash + 1), &partition->until_ns);
}

bool parse_term(std::string_view name, std::string_view value, FaultPlan* plan) {
  if (name == "loss") return parse_double(value, &plan->loss);
  if (name == "duplicate") return parse_double(value, &plan->duplicate);
  if (name == "reorder") return parse_double(value, &plan->reorder);
  if (name == "delay") return parse_double(value, &plan->delay);
  if (name == "corrupt") return parse_double(value, &plan->corrupt);
  if (name == "reorder_us") return parse_microseconds(value, &plan->reorder_ns);
  if (name == "delay_us") return parse_microseconds(value, &plan->delay_ns);
  if (name == "until_us") return parse_microseconds(value, &plan->until_ns);
  if (name == "partition") {
    Partition partition;
    if (!parse_partition(value, &partition)) return false;
    plan->partitions.push_back(partition);
    return true;
  }
  if (name == "spare") {
    Spared spared;
    if (!parse_cards(value, &spared.first_card, &spared.last_card)) return false;
    plan->spared.push_back(spared);
    return true;
  }
  return false;
}

}  // namespace

bool FaultPlan::any() const {
  return loss > 0 || duplicate > 0 || reorder > 0 || delay > 0 || corrupt > 0 ||
         !partitions.empty();
}

std::string FaultPlan::problem() const {
  const struct {
    const char* name;
    double value;
  } probabilities[] = {{"loss", loss},
                       {"duplicate", duplicate},
                       {"reorder", reorder},
                       {"delay", delay},
                       {"corrupt", corrupt}};
  for (const auto& probability : probabilities) {
    if (!is_probability(probability.value))
      return std::string(probability.name) + " is " + std::to_string(probability.value) +
             "; it must be a probability from 0 to 1";
  }
  for (const Partition& partition : partitions) {
    if (partition.first_card > partition.last_card)
      return "partition of cards " + std::to_string(partition.first_card) + "-" +
             std::to_string(partition.last_card) + ": the first card must not exceed the last";
    if (partition.from_ns >= partition.until_ns)
      return "partition from " + std::to_string(partition.from_ns / 1000) + " to " +
             std::to_string(partition.until_ns / 1000) + " us: it must end after it begins";
  }
  for (const Spared& cards : spared) {
    if (cards.first_card > cards.last_card)
      return "spare cards " + std::to_string(cards.first_card) + "-" +
             std::to_string(cards.last_card) + ": the first card must not exceed the last";
  }
  return {};
}

std::string parse_fault_plan(std::string_view text, FaultPlan* plan) {
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view term = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const size_t equals = term.find('=');
    if (equals == std::string_view::npos ||
        !parse_term(term.substr(0, equals), term.substr(equals + 1), plan))
      return "cannot read '" + std::string(term) +
             "'; terms are loss= duplicate= reorder= delay= corrupt= (0 to 1), reorder_us= "
             "delay_us= until_us=, partition=FIRST-LAST:FROM_US-UNTIL_US, spare=FIRST-LAST";
  }
  return plan->problem();
}

std::string format_fault_plan(const FaultPlan& plan) {
  std::string text;
  const auto add = [&text](const std::string& term) {
    if (!text.empty()) text += ',';
    text += term;
  };
  const auto add_probability = [&add](const char* name, double value) {
    if (value == 0) return;
    char digits[40];
    const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
    add(std::string(name) + "=" + std::string(digits, end));
  };
  add_probability("loss", plan.loss);
  add_probability("duplicate", plan.duplicate);
  add_probability("reorder", plan.reorder);
  add_probability("delay", plan.delay);
  add_probability("corrupt", plan.corrupt);
  if (plan.reorder > 0) add("reorder_us=" + std::to_string(plan.reorder_ns / 1000));
  if (plan.delay > 0) add("delay_us=" + std::to_string(plan.delay_ns / 1000));
  if (plan.until_ns != kForever) add("until_us=" + std::to_string(plan.until_ns / 1000));
  for (const Partition& partition : plan.partitions)
    add("partition=" + std::to_string(partition.first_card) + "-" +
        std::to_string(partition.last_card) + ":" + std::to_string(partition.from_ns / 1000) + "-" +
        std::to_string(partition.until_ns / 1000));
  for (const Spared& cards : plan.spared)
    add("spare=" + std::to_string(cards.first_card) + "-" + std::to_string(cards.last_card));
  return text;
}

FaultInjector::FaultInjector(FaultPlan plan, uint64_t seed)
    : plan_(std::move(plan)),
      random_(seed),
      loss_(fraction(plan_.loss)),
      duplicate_(fraction(plan_.duplicate)),
      reorder_(fraction(plan_.reorder)),
      delay_(fraction(plan_.delay)),
      corrupt_(fraction(plan_.corrupt)),
      active_(plan_.any()) {}

bool FaultInjector::spares(uint32_t from_card, uint32_t to_card) const {
  const auto inside = [](const Spared& cards, uint32_t card) {
    return card >= cards.first_card && card <= cards.last_card;
  };
  for (const Spared& cards : plan_.spared)
    if (inside(cards, from_card) && inside(cards, to_card)) return true;
  return false;
}

bool FaultInjector::parted(uint32_t from_card, uint32_t to_card, TimeNs now_ns) const {
  for (const Partition& partition : plan_.partitions) {
    if (now_ns < partition.from_ns || now_ns >= partition.until_ns) continue;
    const bool from_inside = from_card >= partition.first_card && from_card <= partition.last_card;
    const bool to_inside = to_card >= partition.first_card && to_card <= partition.last_card;
    if (from_inside != to_inside) return true;
  }
  return false;
}

Verdict FaultInjector::judge(uint32_t from_card, uint32_t to_card, uint32_t frame_bytes,
                             TimeNs now_ns) {
  Verdict verdict;
  if (!active_ || spares(from_card, to_card)) return verdict;
  counts_.judged++;

  const bool lost = (random_.next() >> 11) < loss_;
  const bool duplicated = (random_.next() >> 11) < duplicate_;
  const bool reordered = (random_.next() >> 11) < reorder_;
  const bool delayed = (random_.next() >> 11) < delay_;
  const bool corrupted = (random_.next() >> 11) < corrupt_;
  const TimeNs reorder_ns = 1 + random_.below(plan_.reorder_ns);
  const TimeNs delay_ns = 1 + random_.below(plan_.delay_ns);
  const auto corrupt_bit = static_cast<uint32_t>(random_.below(uint64_t{frame_bytes} * 8));
  const auto affected = static_cast<uint32_t>(random_.below(kCopiesMax));

  if (parted(from_card, to_card, now_ns)) {
    counts_.partitioned++;
    verdict.copies = 0;
    return verdict;
  }
  if (now_ns >= plan_.until_ns) return verdict;
  if (lost) {
    counts_.lost++;
    verdict.copies = 0;
    return verdict;
  }
  if (duplicated) {
    counts_.duplicated++;
    verdict.copies = 2;
  }
  FrameCopy& copy = verdict.copy[verdict.copies == 2 ? affected : 0];
  if (reordered) {
    counts_.reordered++;
    copy.delay_ns += reorder_ns;
  }
  if (delayed) {
    counts_.delayed++;
    copy.delay_ns += delay_ns;
  }
  if (corrupted && frame_bytes > 0) {
    counts_.corrupted++;
    copy.corrupt_bit = corrupt_bit;
  }
  return verdict;
}

void FaultInjector::heal() {
  plan_ = FaultPlan{};
  active_ = false;
}

}  // namespace peal::emulator
