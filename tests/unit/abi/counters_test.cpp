// SPDX-License-Identifier: BSD-2-Clause
// Counters are known by name in telemetry, JSON and tests:
// each name once, and the symbol in small letters.
#include "abi/counters.h"

#include <gtest/gtest.h>

#include <cctype>
#include <set>
#include <string>

namespace {

struct Row {
  const char* symbol;
  const char* name;
  const char* text;
};

#define PEAL_ROW(symbol, name, text) {#symbol, name, text},
const Row kRows[] = {PEAL_COUNTERS(PEAL_ROW)};
#undef PEAL_ROW

TEST(Counters, AreAsManyAsTheEnumerationSays) {
  EXPECT_EQ(std::size(kRows), static_cast<size_t>(PEAL_COUNTER_COUNT));
}

TEST(Counters, NameIsTheSymbolInSmallLettersAndUnique) {
  std::set<std::string> names;
  for (const Row& row : kRows) {
    std::string small = row.symbol;
    for (char& letter : small) letter = static_cast<char>(std::tolower(letter));
    EXPECT_EQ(small, row.name);
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " twice";
    EXPECT_NE(std::string(row.text), "") << row.name << " says nothing";
  }
}

}  // namespace
