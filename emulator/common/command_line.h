// SPDX-License-Identifier: BSD-2-Clause
// What the command lines of all programs of Peal have in common, on top of CLI11: --help in
// sentences with defaults, --version, how numbers are read, one line for what is wrong, and the
// exit status then. Of an option given twice the last counts; one that may be repeated says so.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/whole_number.h"

// CLI11 is a library of headers alone, which take seconds to compile: only command_line.cpp
// includes them.
namespace CLI {  // NOLINT(readability-identifier-naming): its own
class App;
class Option;
}  // namespace CLI

namespace peal::command_line {

inline constexpr int kExitUsage = 2;

// Of a text that an option was given: empty, or what is wrong with it. It may write the text in
// another way.
using Check = std::function<std::string(std::string&)>;

// A whole number: decimal, or hexadecimal behind 0x; a k or M at the end is 1024 or 1024 * 1024 of
// them.
Check whole(uint64_t least, uint64_t most);
// A decimal number, a fraction too.
Check number(double least, double most);
Check one_of(std::vector<std::string> names);
// Seconds, milliseconds, microseconds: the longest time that any option takes is ten years.
inline constexpr uint64_t kMicrosecondsMax = uint64_t{10} * 365 * 24 * 3600 * 1'000'000;

// One option of an app, which owns it.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option& check(Check check);
  Option& required();
  Option& excludes(const Option& other);
  // The help says what happens without it: what the variable holds now, or this text.
  Option& show_default();
  Option& show_default(const std::string& text);

  [[nodiscard]] bool given() const;
  // What was given, as the words of another command line.
  void append_words(std::vector<std::string>* words) const;

 private:
  CLI::Option* option_;
};

// A program's command line, or that of one of its commands.
class App {
 public:
  // With --help and --version. `usage` follows "Usage: ".
  App(const std::string& name, const std::string& usage, const std::string& description);
  ~App();

  // Without --version. The app owns it.
  App& add_command(const std::string& name, const std::string& usage,
                   const std::string& description);
  // Behind the options in the help.
  void set_footer(const std::string& text);
  // What follows the first word is another program's.
  void end_at_first_word();

  // The exit status when the program should end now: help and version were printed, or what is
  // wrong.
  std::optional<int> parse(int argc, const char* const* argv);
  // After parsing: whether this command was named; the words of the other program.
  [[nodiscard]] bool chosen() const;
  // The first of its own options that was given, not a command's; "" if none was.
  [[nodiscard]] std::string first_given() const;
  [[nodiscard]] std::vector<std::string> rest() const;
  // Says what is wrong, as "NAME: WHAT", and how to get help. Returns kExitUsage.
  [[nodiscard]] int complain(const std::string& what) const;

 private:
  friend class Group;
  explicit App(CLI::App* command);

  std::unique_ptr<CLI::App> owned_;  // not a command's
  CLI::App* app_;
  std::vector<std::unique_ptr<App>> commands_;
};

// Adds options of one group of the help. `text` is a sentence.
class Group {
 public:
  explicit Group(App& app, std::string title = "Options")
      : app_(*app.app_), title_(std::move(title)) {}

  // Of the types that command_line.cpp names.
  template <typename Value>
  Option add(const std::string& names, Value& value, const std::string& placeholder,
             const std::string& text);
  // One value each time that it is given.
  Option add(const std::string& names, std::vector<std::string>& values,
             const std::string& placeholder, const std::string& text);
  Option add_flag(const std::string& names, bool& value, const std::string& text);

 private:
  CLI::App& app_;
  std::string title_;
};

// For texts that are more than one number: false when `text` is none, or beyond the bounds.
using peal::parse_whole;
bool parse_number(std::string_view text, double least, double most, double* value);
// "A-B", or "A" alone for A-A.
bool parse_range(std::string_view text, uint64_t* first, uint64_t* last);

}  // namespace peal::command_line
