// SPDX-License-Identifier: BSD-2-Clause
// The texts of CLI11 are replaced where a user sees them: its own name neither what was given nor
// what would be right.
#include "emulator/common/command_line.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>

namespace peal::command_line {
namespace {

class Help final : public CLI::Formatter {
 public:
  explicit Help(std::string usage) : usage_(std::move(usage)) { column_width(34); }

  std::string make_help(const CLI::App* app, std::string /*name*/,
                        CLI::AppFormatMode mode) const override {
    std::string text = "Usage: " + usage_ + "\n\n" + app->get_description() + "\n\n";
    const std::string positionals = make_positionals(app);
    if (!positionals.empty()) text += positionals + "\n";
    const std::string& footer = app->get_footer();
    return text + commands(app) + make_groups(app, mode) +
           (footer.empty() ? "" : "\n" + footer + "\n");
  }
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    std::string text = (is_positional ? "Arguments" : group) + ":\n";
    for (const CLI::Option* const option : options) text += make_option(option, is_positional);
    return text;
  }
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    if (is_positional) return option->get_name(true, false);
    std::string text = option->get_snames().empty() ? "    " : "";
    for (const std::string& name : option->get_snames()) text += "-" + name + ", ";
    for (const std::string& name : option->get_lnames()) text += "--" + name + ", ";
    return text.substr(0, text.size() - 2);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_positional() || option->get_expected_max() == 0
               ? ""
               : " " + option->get_type_name();
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string& value = option->get_default_str();
    return option->get_description() + (value.empty() ? "" : " Default: " + value + ".");
  }

 private:
  std::string commands(const CLI::App* app) const {
    std::string text;
    for (const CLI::App* const command : app->get_subcommands([](const CLI::App*) { return true; }))
      text += make_subcommand(command);
    return text.empty() ? "" : "Commands:\n" + text + "\n";
  }

  std::string usage_;
};

// What CLI11 says as "--name: …" of an option and "name …" of a flag, in a user's words.
std::string text_of(const CLI::App& app, const CLI::ArgumentMismatch& error) {
  const std::string text = error.what();
  const std::string name = text.substr(0, text.find_first_of(": "));
  if (app.get_option_no_throw("--" + name) != nullptr) return "--" + name + " takes no value";
  const CLI::Option* const option = app.get_option_no_throw(name);
  if (option == nullptr) return text;
  return name + " needs a value: " + name + " " + option->get_type_name();
}

std::string text_of_extra(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") continue;
    if (word.size() > 1 && word[0] == '-')
      return "there is no option " + word.substr(0, word.find('='));
    return "'" + word + "' is one word too many";
  }
  return {};
}

CLI::Validator validator(std::function<std::string(std::string&)> function) {
  return {std::move(function), ""};
}

std::string text_of(double value) {
  char digits[40];
  return {digits, std::to_chars(digits, digits + sizeof(digits), value).ptr};
}

}  // namespace

void set_up_command(CLI::App& command, const std::string& usage) {
  command.formatter(std::make_shared<Help>(usage));
  command.set_help_flag("-h,--help", "Prints this text and exits.");
}

void set_up(CLI::App& app, const std::string& usage) {
  set_up_command(app, usage);
  app.set_version_flag("-V,--version", app.get_name() + " " PEAL_VERSION_TEXT,
                       "Prints the version and exits.");
}

bool parse_number(std::string_view text, double least, double most, double* value) {
  double parsed = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, bad] = std::from_chars(text.data(), end, parsed);
  if (bad != std::errc{} || stop != end || !(parsed >= least && parsed <= most)) return false;
  *value = parsed;
  return true;
}

bool parse_range(std::string_view text, uint64_t* first, uint64_t* last) {
  const size_t dash = text.find('-');
  return parse_whole(text.substr(0, dash), 0, UINT64_MAX, first) &&
         parse_whole(dash == text.npos ? text : text.substr(dash + 1), 0, UINT64_MAX, last) &&
         *first <= *last;
}

CLI::Validator whole(uint64_t least, uint64_t most) {
  return validator([least, most](std::string& text) -> std::string {
    uint64_t value = 0;
    if (!parse_whole(text, least, most, &value))
      return "'" + text + "' is no whole number from " + std::to_string(least) + " to " +
             std::to_string(most);
    text = std::to_string(value);  // CLI11 would read 010 as eight
    return {};
  });
}

CLI::Validator number(double least, double most) {
  return validator([least, most](std::string& text) -> std::string {
    double value = 0;
    if (parse_number(text, least, most, &value)) return {};
    return "'" + text + "' is no number from " + text_of(least) + " to " + text_of(most);
  });
}

CLI::Validator one_of(std::vector<std::string> names) {
  return validator([names = std::move(names)](std::string& text) -> std::string {
    std::string all;
    for (const std::string& name : names) {
      if (name == text) return {};
      all += (all.empty() ? "" : ", ") + name;
    }
    return "'" + text + "' is none of " + all;
  });
}

std::optional<int> parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
    // What follows a program's name is the program's; what comes before is ours.
    if (const auto words = app.remaining();
        !words.empty() && words[0] != "--" && words[0].size() > 1 && words[0][0] == '-')
      return complain(app, text_of_extra(words));
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::CallForVersion& version) {
    std::puts(version.what());
    return 0;
  } catch (const CLI::ArgumentMismatch& error) {
    return complain(app, text_of(app, error));
  } catch (const CLI::ExtrasError&) {
    return complain(app, text_of_extra(app.remaining(true)));
  } catch (const CLI::ParseError& error) {
    return complain(app, error.what());
  }
  return std::nullopt;
}

int complain(const CLI::App& app, const std::string& what) {
  const std::string& name = app.get_name();
  std::fprintf(stderr, "%s: %s\nTry '%s --help'.\n", name.c_str(), what.c_str(), name.c_str());
  return kExitUsage;
}

std::vector<std::string> words_of(const std::vector<CLI::Option*>& options) {
  std::vector<std::string> words;
  for (const CLI::Option* const option : options) {
    for (const std::string& value : option->results())
      words.push_back(option->get_name() + "=" + value);
  }
  return words;
}

}  // namespace peal::command_line
