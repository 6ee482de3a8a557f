// SPDX-License-Identifier: BSD-2-Clause
// peal-sim: clusters of cards in virtual time. The cards are the firmware's own objects; the clock,
// the wire and the hosts are simulated; one seed decides everything.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "tools/peal-sim/commands.h"

int main(int argc, char** argv) {
  using namespace peal::sim;
  program_name() = std::filesystem::path(argv[0]).filename().string();
  CLI::App app{
      "Runs Peal's firmware on a simulated clock, with seeded faults, and checks everything.\n"
      "Without a command: one scenario from the options below.",
      "peal-sim"};
  app.footer(
      "Exit status: 0 all checks passed, 1 something was wrong, 2 the command line makes no "
      "sense,\n"
      "3 nothing was wrong but something never ended.");
  app.set_version_flag("--version", "peal-sim " PEAL_SIM_VERSION);
  const Command run = add_run_command(app);
  CLI::App* soak_app = app.add_subcommand("soak", "random scenarios for some minutes");
  const Command soak = add_soak_command(*soak_app);
  CLI::App* replay_app = app.add_subcommand("replay", "one random scenario again, from its seed");
  const Command replay = add_replay_command(*replay_app);
  CLI::App* throughput_app =
      app.add_subcommand("throughput", "packets per second of real time on one core");
  const Command throughput = add_throughput_command(*throughput_app);
  app.require_subcommand(0, 1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);
    return status == 0 ? 0 : kExitUsage;
  }
  try {
    if (soak_app->parsed()) return soak();
    if (replay_app->parsed()) return replay();
    if (throughput_app->parsed()) return throughput();
    return run();
  } catch (const UsageError& error) {
    std::fprintf(stderr, "peal-sim: %s\n", error.what());
    return kExitUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "peal-sim: %s\n", error.what());
    return kExitWrong;
  }
}
