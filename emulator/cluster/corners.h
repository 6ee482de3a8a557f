// SPDX-License-Identifier: BSD-2-Clause
// What a set of random runs has reached: for every corner that they are meant to visit, in how many
// runs it happened (not: was asked for). A corner that no run reached is not tested.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/cluster/run.h"
#include "emulator/cluster/scenario.h"

namespace peal::sim {

class Corners {
 public:
  Corners();
  void add(const Scenario& scenario, const Report& report);
  // A line per corner: how many runs reached it.
  [[nodiscard]] std::string table() const;
  // The names of those that no run reached.
  [[nodiscard]] std::vector<std::string> missing() const;

 private:
  std::vector<uint64_t> reached_;
};

}  // namespace peal::sim
