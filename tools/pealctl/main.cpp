// SPDX-License-Identifier: BSD-2-Clause
// pealctl: what Peal would do here, and why. `choose` asks libpeal's own table of algorithms, with
// the environment that a rank would have.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "abi/wire.h"
#include "base/names.h"
#include "base/whole_number.h"
#include "emulator/common/command_line.h"
#include "hostlib/choice.h"

namespace peal::ctl {
namespace {

struct ChooseArguments {
  std::string operation;  // empty: all of them
  host::ChoiceGroup group = {0, PEAL_RANKS_MAX};
  std::optional<uint64_t> bytes;  // else all lengths
  std::string rules;
};

// "513-4k", "4097-", "8", "any".
std::string lengths_of(const host::ChoiceTable::Parts& parts, size_t i) {
  const bool last = i + 1 == parts.size();
  const std::string text = host::text_of(
      host::Range{parts[i].first_bytes, last ? UINT64_MAX : parts[i + 1].first_bytes - 1});
  return text.empty() ? "any" : text;
}

void print_row(const char* operation, const std::string& bytes, const std::string& algorithm,
               const std::string& decided) {
  printf("%-15s %-14s %-21s %s\n", operation, bytes.c_str(), algorithm.c_str(), decided.c_str());
}

std::string text_of(const host::PlacedRule& placed) {
  return placed.where + ": " + host::text_of(placed.rule);
}

std::string reason(const host::ChoiceTable& table, const host::ChoiceTable::Part& part) {
  const std::string decided = text_of(table.rules()[part.rule]);
  if (part.passed_over == part.rule) return decided;
  return decided + " (the cards remember too few addresses for " +
         text_of(table.rules()[part.passed_over]) + ")";
}

void print_choice(const host::ChoiceTable& table, const host::Subject& subject,
                  const std::optional<uint64_t>& bytes) {
  const std::string name = host::name_of(subject);
  const host::ChoiceTable::Parts& parts = table.parts(subject);
  for (size_t i = 0; i < parts.size(); i++) {
    const host::ChoiceTable::Part& part = parts[i];
    if (bytes && &part != &table.part(subject, *bytes)) continue;
    print_row(name.c_str(), lengths_of(parts, i),
              host::name_of(subject, part.algorithm, part.program), reason(table, part));
  }
}

// The longest block that a submission can name.
constexpr uint64_t kBlockBytesMax = UINT32_MAX;

// What runs when this command was chosen.
std::function<int()> declare_choose(const command_line::App& app, command_line::App& command) {
  command.set_footer(
      "Rules are OPERATION[:BYTES][:nRANKS]:ALGORITHM, with ranges A-B, A- or A; the first that "
      "fits decides.\nIt reads PEAL_ALLGATHER_ALGORITHM, PEAL_ALGORITHMS and PEAL_ALGORITHMS_FILE "
      "as libpeal does.");
  const auto arguments = std::make_shared<ChooseArguments>();
  command_line::Group group(command);
  group.add("--ranks", arguments->group.size, "N", "Is for groups of N ranks, 1 to 65536.")
      .check(command_line::whole(1, PEAL_RANKS_MAX));
  group
      .add("--addresses", arguments->group.addresses, "N",
           "Is for cards that remember the addresses of N ranks (REMEMBERED_ADDRESSES): direct "
           "exchanges are for groups of no more.")
      .check(command_line::whole(0, PEAL_RANKS_MAX))
      .show_default();
  group
      .add("--operation", arguments->operation, "NAME",
           "Is for this operation, or for persistent requests of it (_init). Default: all.")
      .check(command_line::one_of(host::subject_names()));
  group
      .add("--bytes", arguments->bytes, "B",
           "Is for blocks of B bytes, 0 to 4294967295; k and M are 1024 and 1024 * 1024. Default: "
           "all.")
      .check(command_line::whole(0, kBlockBytesMax));
  group.add("--algorithms", arguments->rules, "RULES",
            "Puts these rules first, as a program does by peal_group_params. Default: none.");
  return [&app, arguments] {
    if (arguments->group.size == 0) return app.complain("--ranks is missing");
    host::ChoiceSources sources = host::sources_of_environment();
    sources.rules = arguments->rules.c_str();
    host::ChoiceTable table;
    if (host::make_choice_table(arguments->group, sources, &table) != PEAL_OK)
      return app.complain(peal_last_error_text());
    print_row("operation", "bytes", "algorithm", "decided by");
    for (const host::Subject& subject : host::subjects()) {
      if (arguments->operation.empty() || arguments->operation == host::name_of(subject))
        print_choice(table, subject, arguments->bytes);
    }
    return 0;
  };
}

int start(int argc, char** argv) {
  command_line::App app("pealctl", "pealctl COMMAND [OPTIONS]",
                        "Answers questions about Peal on this machine.");
  command_line::App& command = app.add_command(
      "choose", "pealctl choose --ranks N [OPTIONS]",
      "Says which algorithm carries out which operation, and which rule decided that.");
  const auto choose = declare_choose(app, command);
  if (const auto status = app.parse(argc, argv)) return *status;
  return command.chosen() ? choose() : app.complain("COMMAND is missing: choose");
}

}  // namespace
}  // namespace peal::ctl

int main(int argc, char** argv) { return peal::ctl::start(argc, argv); }
