// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/cost_model.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace peal::sim {

namespace {

constexpr uint64_t kCardsMax = 65536;
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
    {"dma_duplex", &CostModel::dma_duplex},
    {"hop_ns", &CostModel::hop_ns},
    {"enqueue_ns", &CostModel::enqueue_ns},
    {"message_ns", &CostModel::message_ns},
    {"register_ns", &CostModel::register_ns},
    {"register_page_ns", &CostModel::register_page_ns},
    {"deregister_ns", &CostModel::deregister_ns},
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

std::string set_torus(const nlohmann::json& value, Torus::Size* torus) {
  const std::string wrong = "cost model: torus is " + value.dump() +
                            "; it must be three whole numbers, each 1 to 65536, and their product "
                            "as well";
  if (!value.is_array() || value.size() != torus->size()) return wrong;
  for (size_t i = 0; i < torus->size(); i++) {
    if (!value[i].is_number_unsigned()) return wrong;
    const auto extent = value[i].get<uint64_t>();
    if (extent == 0 || extent > kCardsMax) return wrong;
    (*torus)[i] = static_cast<uint32_t>(extent);
  }
  return Torus::cards(*torus) > kCardsMax ? wrong : std::string();
}

}  // namespace

std::string parse_cost_model(std::string_view json, CostModel* model) {
  const auto tree = nlohmann::json::parse(json, nullptr, false);
  if (tree.is_discarded() || !tree.is_object()) return "cost model: not a JSON object";
  CostModel result = *model;
  for (const auto& [name, value] : tree.items()) {
    if (name == "comment" || name == "sources") continue;
    if (name == "torus") {
      const std::string problem = set_torus(value, &result.torus);
      if (!problem.empty()) return problem;
      continue;
    }
    if (!value.is_number_unsigned())
      return "cost model: " + name + " is " + value.dump() +
             "; it must be a whole number, 0 or more";
    const std::string problem = set_field(name, value.get<uint64_t>(), &result);
    if (!problem.empty()) return problem;
  }
  if (result.dma_duplex > 1) return "cost model: dma_duplex is 0 or 1";
  *model = result;
  return {};
}

std::string network_problem(const CostModel& model, uint64_t cards) {
  const Torus::Size& torus = model.torus;
  if (torus[0] == 0 || Torus::cards(torus) == cards) return {};
  return "the model's torus has " + std::to_string(torus[0]) + "x" + std::to_string(torus[1]) +
         "x" + std::to_string(torus[2]) + " = " + std::to_string(Torus::cards(torus)) +
         " cards, not " + std::to_string(cards);
}

std::string load_cost_model(const std::string& path, CostModel* model) {
  std::ifstream file(path);
  if (!file) return "cost model: cannot read '" + path + "'";
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string problem = parse_cost_model(text, model);
  return problem.empty() ? problem : path + ": " + problem;
}

}  // namespace peal::sim
