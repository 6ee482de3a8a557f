// SPDX-License-Identifier: BSD-2-Clause
// peal-sim: clusters of cards in virtual time. The cards are the firmware's own objects; the clock,
// the wire and the hosts are simulated; one seed decides everything.
#include <cstdio>
#include <exception>
#include <filesystem>

#include "tools/peal-sim/commands.h"

namespace {

using namespace peal;

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& text) {
  CLI::App* const command = app.add_subcommand(name, text);
  command_line::set_up_command(*command, "peal-sim " + name + " [OPTIONS]");
  return command;
}

}  // namespace

int main(int argc, char** argv) {
  sim::program_name() = std::filesystem::path(argv[0]).filename().string();
  CLI::App app(
      "Runs Peal's firmware on a simulated clock, with seeded faults, and checks everything.\n"
      "Without a command: one scenario from the options below.",
      sim::program_name());
  command_line::set_up(app, "peal-sim [OPTIONS]\n       peal-sim COMMAND [OPTIONS]");
  app.footer(
      "Exit status: 0 all checks passed, 1 something was wrong, 2 the command line makes no "
      "sense,\n"
      "3 nothing was wrong but something never ended.");
  const sim::Command run = sim::add_run_command(app);
  CLI::App* const soak_app = add_command(app, "soak", "Runs random scenarios for some minutes.");
  const sim::Command soak = sim::add_soak_command(*soak_app);
  CLI::App* const replay_app =
      add_command(app, "replay", "Runs one random scenario again, from its seed.");
  const sim::Command replay = sim::add_replay_command(*replay_app);
  CLI::App* const overlap_app =
      add_command(app, "overlap", "Measures how much hosts can compute while an operation runs.");
  const sim::Command overlap = sim::add_overlap_command(*overlap_app);
  CLI::App* const throughput_app =
      add_command(app, "throughput", "Measures packets per second of real time on one core.");
  const sim::Command throughput = sim::add_throughput_command(*throughput_app);
  CLI::App* const broadcast_app =
      add_command(app, "broadcast-figure", "Measures the pipelined broadcasts of the Tofu2 paper.");
  const sim::Command broadcast = sim::add_broadcast_figure_command(*broadcast_app);
  CLI::App* const alltoall_app = add_command(
      app, "alltoall-figure", "Measures the pairwise all-to-all of the CORE-Direct paper.");
  const sim::Command alltoall = sim::add_alltoall_figure_command(*alltoall_app);
  CLI::App* const allgather_app = add_command(
      app, "allgather-figure", "Measures where the MVAPICH paper's allgather may copy.");
  const sim::Command allgather = sim::add_allgather_figure_command(*allgather_app);
  CLI::App* const cost_app = add_command(
      app, "program-cost", "Carries out programs, for who counts what they cost a card.");
  const sim::Command cost = sim::add_program_cost_command(*cost_app);
  app.require_subcommand(0, 1);
  if (const auto status = command_line::parse(app, argc, argv)) return *status;
  try {
    if (soak_app->parsed()) return soak();
    if (replay_app->parsed()) return replay();
    if (overlap_app->parsed()) return overlap();
    if (throughput_app->parsed()) return throughput();
    if (broadcast_app->parsed()) return broadcast();
    if (alltoall_app->parsed()) return alltoall();
    if (allgather_app->parsed()) return allgather();
    if (cost_app->parsed()) return cost();
    return run();
  } catch (const sim::UsageError& error) {
    return command_line::complain(app, error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "peal-sim: %s\n", error.what());
    return sim::kExitWrong;
  }
}
