// SPDX-License-Identifier: BSD-2-Clause
// A run's report as JSON and as a few lines of text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "emulator/cluster/run.h"
#include "emulator/cluster/scenario.h"

namespace peal::sim {

[[nodiscard]] nlohmann::json report_json(const Scenario& scenario, const Report& report);
[[nodiscard]] std::string report_text(const Report& report);
// Writes to the file, or to standard output for "-"; throws when it cannot.
void write_json(const std::string& path, const nlohmann::json& tree);

}  // namespace peal::sim
