// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/nic_loops.h"

#include <rte_launch.h>

#include <nlohmann/json.hpp>

namespace peal::nic {
namespace {

int run_loop(void* loop) {
  static_cast<NicLoop*>(loop)->run();
  return 0;
}

// Numbers of the same name are added; what only one has, it keeps.
void add(nlohmann::ordered_json& sum, const nlohmann::ordered_json& more) {
  for (const auto& [name, value] : more.items()) {
    nlohmann::ordered_json& mine = sum[name];
    if (value.is_object()) {
      add(mine, value);
    } else if (value.is_number_unsigned() && mine.is_number_unsigned()) {
      mine = mine.get<uint64_t>() + value.get<uint64_t>();
    } else {
      mine = value;
    }
  }
}

}  // namespace

NicLoops::NicLoops(uint32_t loops) {
  for (uint32_t i = 0; i < loops; i++) loops_.push_back(std::make_unique<NicLoop>());
}

std::string NicLoops::create(const LoopOptions& options) {
  cards_ = options.cards;
  if (count() == 1) return loops_[0]->create(options);
  pool_ = std::make_unique<PacketPool>();
  std::string error = pool_->create(options.packet_buffers, options.cards, count());
  if (!error.empty()) return error;
  rings_ = std::make_unique<WireRings>(*pool_);
  error = rings_->create(options.cards, WireRings::Producers::kOne, count());
  for (uint32_t i = 0; i < count() && error.empty(); i++) {
    LoopOptions one = options;
    one.wire.seed += i;
    error = loops_[i]->create(one, {*pool_, *rings_, i});
  }
  return error;
}

void NicLoops::run() {
  for (uint32_t i = 1; i < count(); i++) {
    if (rte_eal_remote_launch(run_loop, loops_[i].get(), i) != 0) request_stop();
  }
  loops_[0]->run();
  for (uint32_t i = 1; i < count(); i++) rte_eal_wait_lcore(i);
}

void NicLoops::request_stop() {
  for (const auto& loop : loops_) loop->request_stop();
}

bool NicLoops::stop_copies() {
  bool all = true;
  for (const auto& loop : loops_) all = loop->stop_copies() && all;
  return all;
}

nlohmann::ordered_json NicLoops::counters_json() const {
  nlohmann::ordered_json all = loops_[0]->counters_json();
  if (count() == 1) return all;
  nlohmann::ordered_json interfaces = nlohmann::ordered_json::object();
  std::vector<nlohmann::ordered_json> parts;
  for (const auto& loop : loops_) {
    parts.push_back(loop->counters_json());
    for (const auto& interface : parts.back()["interfaces"])
      interfaces[std::to_string(interfaces.size())] = interface;
  }
  nlohmann::ordered_json cards = nlohmann::ordered_json::array();
  for (uint32_t card = 0; card < cards_; card++)
    cards.push_back(parts[card % count()]["cards"][card / count()]);
  for (uint32_t i = 1; i < count(); i++) {
    for (const char* const name : {"wire", "faults", "loop"}) add(all[name], parts[i][name]);
  }
  all["interfaces"] = std::move(interfaces);
  all["cards"] = std::move(cards);
  return all;
}

}  // namespace peal::nic
