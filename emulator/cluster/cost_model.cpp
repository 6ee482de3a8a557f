// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/cost_model.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace peal::sim {

namespace {

constexpr uint64_t kLargest = 1'000'000'000;  // a second per event is plenty

struct Field {
  const char* name;
  uint64_t CostModel::*value;
};

constexpr Field kFields[] = {
    {"wire_latency_ns", &CostModel::wire_latency_ns},
    {"packet_gap_ns", &CostModel::packet_gap_ns},
    {"byte_gap_ps", &CostModel::byte_gap_ps},
    {"packet_ns", &CostModel::packet_ns},
    {"send_ns", &CostModel::send_ns},
    {"submission_ns", &CostModel::submission_ns},
    {"dma_event_ns", &CostModel::dma_event_ns},
    {"timer_ns", &CostModel::timer_ns},
    {"dma_latency_ns", &CostModel::dma_latency_ns},
    {"dma_gap_ns", &CostModel::dma_gap_ns},
    {"dma_byte_gap_ps", &CostModel::dma_byte_gap_ps},
    {"dma_jitter_ns", &CostModel::dma_jitter_ns},
    {"doorbell_ns", &CostModel::doorbell_ns},
    {"completion_ns", &CostModel::completion_ns},
    {"post_ns", &CostModel::post_ns},
};

std::string set_field(const std::string& name, uint64_t value, CostModel* model) {
  if (value > kLargest)
    return "cost model: " + name + " is " + std::to_string(value) + "; the most is " +
           std::to_string(kLargest);
  if (name == "frame_extra_bytes") {
    model->frame_extra_bytes = static_cast<uint32_t>(value);
    return {};
  }
  for (const Field& field : kFields) {
    if (name != field.name) continue;
    model->*field.value = value;
    return {};
  }
  return "cost model: '" + name + "' is no cost; see emulator/cluster/cost_model.h for the names";
}

}  // namespace

std::string parse_cost_model(std::string_view json, CostModel* model) {
  const auto tree = nlohmann::json::parse(json, nullptr, false);
  if (tree.is_discarded() || !tree.is_object()) return "cost model: not a JSON object";
  CostModel result = *model;
  for (const auto& [name, value] : tree.items()) {
    if (name == "comment") continue;
    if (!value.is_number_unsigned())
      return "cost model: " + name + " is " + value.dump() +
             "; it must be a whole number, 0 or more";
    const std::string problem = set_field(name, value.get<uint64_t>(), &result);
    if (!problem.empty()) return problem;
  }
  *model = result;
  return {};
}

std::string load_cost_model(const std::string& path, CostModel* model) {
  std::ifstream file(path);
  if (!file) return "cost model: cannot read '" + path + "'";
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string problem = parse_cost_model(text, model);
  return problem.empty() ? problem : path + ": " + problem;
}

}  // namespace peal::sim
