// SPDX-License-Identifier: BSD-2-Clause
// peal-sim: clusters of cards in virtual time. The cards are the firmware's own objects; the clock,
// the wire and the hosts are simulated; one seed decides everything.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <utility>
#include <vector>

#include "tools/peal-sim/commands.h"

namespace {

using namespace peal;

struct Named {
  const char* name;
  const char* text;
  sim::Command (*add)(command_line::App& app);
};
constexpr Named kCommands[] = {
    {"soak", "Runs random scenarios for some minutes.", sim::add_soak_command},
    {"replay", "Runs one random scenario again, from its seed.", sim::add_replay_command},
    {"overlap", "Measures how much hosts can compute while an operation runs.",
     sim::add_overlap_command},
    {"throughput", "Measures packets per second of one core's time.", sim::add_throughput_command},
    {"broadcast-figure", "Measures the pipelined broadcasts of the Tofu2 paper.",
     sim::add_broadcast_figure_command},
    {"alltoall-figure", "Measures the pairwise all-to-all of the CORE-Direct paper.",
     sim::add_alltoall_figure_command},
    {"allgather-figure", "Measures where the MVAPICH paper's allgather may copy.",
     sim::add_allgather_figure_command},
    {"program-cost", "Carries out programs, for who counts what they cost a card.",
     sim::add_program_cost_command}};

}  // namespace

int main(int argc, char** argv) {
  sim::program_name() = std::filesystem::path(argv[0]).filename().string();
  command_line::App app(
      sim::program_name(), "peal-sim [OPTIONS]\n       peal-sim COMMAND [OPTIONS]",
      "Runs Peal's firmware on a simulated clock, with seeded faults, and checks everything.\n"
      "Without a command: one scenario from the options below.");
  app.set_footer(
      "Exit status: 0 all checks passed, 1 something was wrong, 2 the command line makes no "
      "sense,\n"
      "3 nothing was wrong but something never ended.");
  sim::Command chosen = sim::add_run_command(app);
  std::vector<std::pair<command_line::App*, sim::Command>> commands;
  for (const Named& each : kCommands) {
    const std::string name = each.name;
    command_line::App& command =
        app.add_command(name, "peal-sim " + name + " [OPTIONS]", each.text);
    commands.emplace_back(&command, each.add(command));
  }
  if (const auto status = app.parse(argc, argv)) return *status;
  for (const auto& [command, run] : commands) {
    if (!command->chosen()) continue;
    chosen = run;
    if (const std::string option = app.first_given(); !option.empty())
      return app.complain(option + " stands before the command, which would not see it");
  }
  try {
    return chosen();
  } catch (const sim::UsageError& error) {
    return app.complain(error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "peal-sim: %s\n", error.what());
    return sim::kExitWrong;
  }
}
