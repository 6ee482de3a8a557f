// SPDX-License-Identifier: BSD-2-Clause
// What the command lines of all programs of Peal have in common, on top of CLI11: --help in
// sentences with defaults, --version, how numbers are read, one line for what is wrong, and the
// exit status then. Of an option given twice the last counts; one that may be repeated says so.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/whole_number.h"

namespace peal::command_line {

inline constexpr int kExitUsage = 2;

// Gives the program --help and --version, and the form of its help. `usage` follows "Usage: "; the
// app must have a name.
void set_up(CLI::App& app, const std::string& usage);
// The same for one of its commands, which has no version of its own.
void set_up_command(CLI::App& command, const std::string& usage);

// Adds options of one group of the help. `text` is a sentence; the default that an option captures
// comes behind it.
class Group {
 public:
  explicit Group(CLI::App& app, std::string title = "Options")
      : app_(app), title_(std::move(title)) {}

  template <typename Value>
  CLI::Option* add(const std::string& names, Value& value, const std::string& placeholder,
                   const std::string& text) {
    return app_.add_option(names, value, text)
        ->type_name(placeholder)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
        ->group(title_);
  }
  // One value each time that it is given.
  CLI::Option* add(const std::string& names, std::vector<std::string>& values,
                   const std::string& placeholder, const std::string& text) {
    return app_.add_option(names, values, text)
        ->type_name(placeholder)
        ->allow_extra_args(false)
        ->group(title_);
  }
  CLI::Option* add_flag(const std::string& names, bool& value, const std::string& text) {
    return app_.add_flag(names, value, text)
        ->disable_flag_override()
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
        ->group(title_);
  }

 private:
  CLI::App& app_;
  std::string title_;
};

// For Option::transform(). A whole number: decimal, or hexadecimal behind 0x; a k or M at the end
// is 1024 or 1024 * 1024 of them.
CLI::Validator whole(uint64_t least, uint64_t most);
// A decimal number, a fraction too.
CLI::Validator number(double least, double most);
CLI::Validator one_of(std::vector<std::string> names);
// Seconds, milliseconds, microseconds: the longest time that any option takes is ten years.
inline constexpr uint64_t kMicrosecondsMax = uint64_t{10} * 365 * 24 * 3600 * 1'000'000;

// For texts that are more than one number: false when `text` is none, or beyond the bounds.
using peal::parse_whole;
bool parse_number(std::string_view text, double least, double most, double* value);
// "A-B", or "A" alone for A-A.
bool parse_range(std::string_view text, uint64_t* first, uint64_t* last);

// The exit status when the program should end now: help and version were printed, or what is wrong.
std::optional<int> parse(CLI::App& app, int argc, const char* const* argv);
// Says what is wrong, as "NAME: WHAT", and how to get help. Returns kExitUsage.
int complain(const CLI::App& app, const std::string& what);

// What was given of these options, as the words of another command line.
std::vector<std::string> words_of(const std::vector<CLI::Option*>& options);

}  // namespace peal::command_line
