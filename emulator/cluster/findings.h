// SPDX-License-Identifier: BSD-2-Clause
// What was found wrong in a run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emulator/cluster/sim_time.h"

namespace peal::sim {

// Things that must never happen, by the name of the check that saw them.
class Findings {
 public:
  void add(TimeNs now_ns, const std::string& check, const std::string& text);
  [[nodiscard]] bool none() const { return counts_.empty(); }
  [[nodiscard]] bool has(const std::string& check) const { return counts_.contains(check); }
  [[nodiscard]] const std::map<std::string, uint64_t>& counts() const { return counts_; }
  // The first few, as lines.
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }
  // The same as one text, each line ended.
  [[nodiscard]] std::string text() const;

 private:
  std::map<std::string, uint64_t> counts_;
  std::vector<std::string> lines_;
};

}  // namespace peal::sim
