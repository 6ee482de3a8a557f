// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/findings.h"

namespace peal::sim {
namespace {

constexpr size_t kLinesMax = 20;

}  // namespace

void Findings::add(TimeNs now_ns, const std::string& check, const std::string& text) {
  counts_[check]++;
  if (lines_.size() < kLinesMax)
    lines_.push_back(check + " at " + std::to_string(now_ns) + " ns: " + text);
}

std::string Findings::text() const {
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  return text;
}

}  // namespace peal::sim
