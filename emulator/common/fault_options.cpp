// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/common/fault_options.h"

#include <cmath>

namespace peal::command_line {
namespace {

constexpr const char* kTitle = "Faults on the wire";

emulator::TimeNs nanoseconds(double us) {
  return static_cast<emulator::TimeNs>(std::llround(us * 1000));
}

}  // namespace

void FaultOptions::add_faults(App& app) {
  Group group(app, kTitle);
  const auto probability = [&](const std::string& name, double& value, const std::string& text) {
    options_.push_back(group.add(name, value, "P", text).check(number(0, 1)));
    options_.back().show_default();
  };
  const auto longest = [&](const std::string& name, double& value, const std::string& text) {
    options_.push_back(group.add(name, value, "US", text)
                           .check(number(0, static_cast<double>(kMicrosecondsMax)))
                           .show_default());
  };
  probability("--loss", faults_.loss, "Loses a frame with this probability, 0 to 1.");
  probability("--duplicate", faults_.duplicate, "Delivers a frame twice with this probability.");
  probability("--reorder", faults_.reorder, "Lets others overtake a frame with this probability.");
  longest("--reorder-us", reorder_us_,
          "Holds an overtaken frame back for at most so many microseconds.");
  probability("--delay", faults_.delay, "Delays a frame with this probability.");
  longest("--delay-us", delay_us_, "Delays it for at most so many microseconds.");
  probability("--corrupt", faults_.corrupt, "Flips a bit of a frame with this probability.");
}

void FaultOptions::add_plan_and_seed(App& app) {
  Group group(app, kTitle);
  options_.push_back(group.add("--fault-plan", plans_, "PLAN",
                               "Adds several faults, partitions and spared cards too, as "
                               "loss=0.01,partition=FIRST-LAST:FROM_US-UNTIL_US,spare=FIRST-LAST. "
                               "Repeatable."));
  options_.push_back(group.add("--seed", seed_, "S", "Draws the faults from this seed.")
                         .check(whole(0, UINT64_MAX))
                         .show_default());
}

std::string FaultOptions::read(emulator::FaultPlan* plan) const {
  *plan = faults_;
  plan->reorder_ns = nanoseconds(reorder_us_);
  plan->delay_ns = nanoseconds(delay_us_);
  for (const std::string& text : plans_) {
    if (const std::string error = emulator::parse_fault_plan(text, plan); !error.empty())
      return "--fault-plan: " + error;
  }
  return {};
}

std::vector<std::string> FaultOptions::words() const {
  std::vector<std::string> words;
  for (const Option& option : options_) option.append_words(&words);
  return words;
}

}  // namespace peal::command_line
