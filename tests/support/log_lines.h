// SPDX-License-Identifier: BSD-2-Clause
// Of long logs what matters: each thing that was said at all, or all that was said of one thing.
#pragma once

#include <set>
#include <string>

namespace peal::test {

// Each different line once, in the order in which they first came.
inline std::string distinct_lines(const std::string& log) {
  std::set<std::string> seen;
  std::string text;
  for (size_t at = 0; at < log.size();) {
    const size_t end = log.find('\n', at) + 1;
    const std::string line = log.substr(at, end - at);
    if (seen.insert(line).second) text += line;
    at = end;
  }
  return text;
}

// Only the lines that begin like that.
inline std::string lines_that_begin(const std::string& log, const std::string& beginning) {
  std::string text;
  for (size_t at = 0; at < log.size();) {
    const size_t end = log.find('\n', at) + 1;
    if (log.compare(at, beginning.size(), beginning) == 0) text += log.substr(at, end - at);
    at = end;
  }
  return text;
}

}  // namespace peal::test
