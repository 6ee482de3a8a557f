// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/common/counters_json.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "abi/counters.h"

namespace peal::emulator {
namespace {

TEST(CountersJson, NamesAndValuesInOrder) {
  std::array<uint64_t, PEAL_COUNTER_COUNT> values = {};
  values[PEAL_COUNTER_SENT_DATA] = 7;
  values[PEAL_COUNTER_DMA_FAULT] = ~uint64_t{0};
  const std::string text = counters_json(values.data()).dump();
  std::string expected;
#define PEAL_EXPECTED(symbol, name, sentence)                          \
  expected += (expected.empty() ? "{\"" : ",\"") + std::string(name) + \
              "\":" + std::to_string(values[PEAL_COUNTER_##symbol]);
  PEAL_COUNTERS(PEAL_EXPECTED)
#undef PEAL_EXPECTED
  EXPECT_EQ(text, expected + "}");
}

TEST(CountersJson, NamesEnd) {
  EXPECT_STREQ(counter_name(PEAL_COUNTER_DROP_CHECKSUM), "drop_checksum");
  EXPECT_EQ(counter_name(PEAL_COUNTER_COUNT), nullptr);
}

}  // namespace
}  // namespace peal::emulator
