// SPDX-License-Identifier: BSD-2-Clause
// Of long logs what matters: each thing that was said at all, or all that was said of one thing.
#pragma once

#include <algorithm>
#include <set>
#include <string>

namespace peal::test {

// The lines for which this says yes.
template <typename Chosen>
std::string lines_chosen(const std::string& log, Chosen&& chosen) {
  std::string text;
  for (size_t at = 0; at < log.size();) {
    const size_t end = log.find('\n', at) + 1;
    const std::string line = log.substr(at, end - at);
    if (chosen(line)) text += line;
    at = end;
  }
  return text;
}

// Each different line once, in the order in which they first came.
inline std::string distinct_lines(const std::string& log) {
  std::set<std::string> seen;
  return lines_chosen(log, [&](const std::string& line) { return seen.insert(line).second; });
}

// Only the lines that begin like that.
inline std::string lines_that_begin(const std::string& log, const std::string& beginning) {
  return lines_chosen(log, [&](const std::string& line) {
    return line.compare(0, beginning.size(), beginning) == 0;
  });
}

inline size_t count_lines_that_begin(const std::string& log, const std::string& beginning) {
  const std::string lines = lines_that_begin(log, beginning);
  return static_cast<size_t>(std::count(lines.begin(), lines.end(), '\n'));
}

// Only the lines in which that stands.
inline std::string lines_with(const std::string& log, const std::string& part) {
  return lines_chosen(
      log, [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

}  // namespace peal::test
