// SPDX-License-Identifier: BSD-2-Clause
// The texts of CLI11 are replaced where a user sees them: its own name neither what was given nor
// what would be right.
#include "emulator/common/command_line.h"

#include <CLI/CLI.hpp>
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

std::string text_of(double value) {
  char digits[40];
  return {digits, std::to_chars(digits, digits + sizeof(digits), value).ptr};
}

void set_up(CLI::App& app, const std::string& usage) {
  app.formatter(std::make_shared<Help>(usage));
  app.set_help_flag("-h,--help", "Prints this text and exits.");
}

}  // namespace

App::App(const std::string& name, const std::string& usage, const std::string& description)
    : owned_(std::make_unique<CLI::App>(description, name)), app_(owned_.get()) {
  set_up(*app_, usage);
  app_->set_version_flag("-V,--version", name + " " PEAL_VERSION_TEXT,
                         "Prints the version and exits.");
  app_->require_subcommand(0, 1);
}

App::App(CLI::App* command) : app_(command) {}
App::~App() = default;

App& App::add_command(const std::string& name, const std::string& usage,
                      const std::string& description) {
  CLI::App* const command = app_->add_subcommand(name, description);
  set_up(*command, usage);
  commands_.emplace_back(new App(command));
  return *commands_.back();
}

void App::set_footer(const std::string& text) { app_->footer(text); }
void App::end_at_first_word() { app_->prefix_command(); }
bool App::chosen() const { return app_->parsed(); }
std::string App::first_given() const {
  for (const CLI::Option* const option : app_->get_options()) {
    if (option->count() > 0) return option->get_name();
  }
  return {};
}
std::vector<std::string> App::rest() const { return app_->remaining(); }

Option& Option::check(Check check) {
  option_->transform(CLI::Validator(std::move(check), ""));
  return *this;
}
Option& Option::required() {
  option_->required();
  return *this;
}
Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}
Option& Option::show_default() {
  option_->capture_default_str();
  return *this;
}
Option& Option::show_default(const std::string& text) {
  option_->default_str(text);
  return *this;
}
bool Option::given() const { return option_->count() > 0; }
void Option::append_words(std::vector<std::string>* words) const {
  for (const std::string& value : option_->results())
    words->push_back(option_->get_name() + "=" + value);
}

// Of an option given twice the last counts.
template <typename Value>
Option Group::add(const std::string& names, Value& value, const std::string& placeholder,
                  const std::string& text) {
  return Option(app_.add_option(names, value, text)
                    ->type_name(placeholder)
                    ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
                    ->group(title_));
}
using Text = const std::string&;
template Option Group::add(Text, int&, Text, Text);
template Option Group::add(Text, uint32_t&, Text, Text);
template Option Group::add(Text, uint64_t&, Text, Text);
template Option Group::add(Text, double&, Text, Text);
template Option Group::add(Text, std::string&, Text, Text);
template Option Group::add(Text, std::optional<uint32_t>&, Text, Text);
template Option Group::add(Text, std::optional<uint64_t>&, Text, Text);

Option Group::add(const std::string& names, std::vector<std::string>& values,
                  const std::string& placeholder, const std::string& text) {
  return Option(app_.add_option(names, values, text)
                    ->type_name(placeholder)
                    ->allow_extra_args(false)
                    ->group(title_));
}

Option Group::add_flag(const std::string& names, bool& value, const std::string& text) {
  return Option(app_.add_flag(names, value, text)
                    ->disable_flag_override()
                    ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
                    ->group(title_));
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

Check whole(uint64_t least, uint64_t most) {
  return [least, most](std::string& text) -> std::string {
    uint64_t value = 0;
    if (!parse_whole(text, least, most, &value))
      return "'" + text + "' is no whole number from " + std::to_string(least) + " to " +
             std::to_string(most);
    text = std::to_string(value);  // CLI11 would read 010 as eight
    return {};
  };
}

Check number(double least, double most) {
  return [least, most](std::string& text) -> std::string {
    double value = 0;
    if (parse_number(text, least, most, &value)) return {};
    return "'" + text + "' is no number from " + text_of(least) + " to " + text_of(most);
  };
}

Check one_of(std::vector<std::string> names) {
  return [names = std::move(names)](std::string& text) -> std::string {
    std::string all;
    for (const std::string& name : names) {
      if (name == text) return {};
      all += (all.empty() ? "" : ", ") + name;
    }
    return "'" + text + "' is none of " + all;
  };
}

std::optional<int> App::parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
    // What follows a program's name is the program's; what comes before is ours.
    if (const auto words = app_->remaining();
        !words.empty() && words[0] != "--" && words[0].size() > 1 && words[0][0] == '-')
      return complain(text_of_extra(words));
  } catch (const CLI::CallForHelp&) {
    std::fputs(app_->help().c_str(), stdout);
    return 0;
  } catch (const CLI::CallForVersion& version) {
    std::puts(version.what());
    return 0;
  } catch (const CLI::ArgumentMismatch& error) {
    return complain(text_of(*app_, error));
  } catch (const CLI::ExtrasError&) {
    return complain(text_of_extra(app_->remaining(true)));
  } catch (const CLI::ParseError& error) {
    return complain(error.what());
  }
  return std::nullopt;
}

int App::complain(const std::string& what) const {
  const std::string& name = app_->get_name();
  std::fprintf(stderr, "%s: %s\nTry '%s --help'.\n", name.c_str(), what.c_str(), name.c_str());
  return kExitUsage;
}

}  // namespace peal::command_line
