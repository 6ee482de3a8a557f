// SPDX-License-Identifier: BSD-2-Clause
// A whole number as users write it: decimal, or hexadecimal behind 0x; a k or M at the end is 1024
// or 1024 * 1024 of them.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace peal {

// False when `text` is none, or beyond the bounds.
inline bool parse_whole(std::string_view text, uint64_t least, uint64_t most, uint64_t* value) {
  uint64_t unit = 1;
  if (!text.empty() && text.back() == 'k') unit = 1024;
  if (!text.empty() && text.back() == 'M') unit = 1024 * 1024;
  if (unit != 1) text.remove_suffix(1);
  const bool hexadecimal = text.substr(0, 2) == "0x";
  if (hexadecimal) text.remove_prefix(2);
  uint64_t units = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, bad] = std::from_chars(text.data(), end, units, hexadecimal ? 16 : 10);
  if (bad != std::errc{} || stop != end || units > most / unit || units * unit < least)
    return false;
  *value = units * unit;
  return true;
}

// The shortest that parse_whole() reads back: "4k", "3M", "1500".
inline std::string whole_text(uint64_t value) {
  if (value != 0 && value % (1024 * 1024) == 0) return std::to_string(value / (1024 * 1024)) + "M";
  if (value != 0 && value % 1024 == 0) return std::to_string(value / 1024) + "k";
  return std::to_string(value);
}

}  // namespace peal
