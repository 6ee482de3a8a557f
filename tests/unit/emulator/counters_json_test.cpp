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
  EXPECT_EQ(text.find("{\"sent_data\":7,\"sent_signal\":0,"), 0u);
  EXPECT_NE(text.find("\"dma_fault\":18446744073709551615"), std::string::npos);
  EXPECT_EQ(text.back(), '}');
  size_t names = 0;
  for (const char c : text) names += c == ':' ? 1 : 0;
  EXPECT_EQ(names, size_t{PEAL_COUNTER_COUNT});
}

TEST(CountersJson, NamesEnd) {
  EXPECT_STREQ(counter_name(PEAL_COUNTER_DROP_CHECKSUM), "drop_checksum");
  EXPECT_EQ(counter_name(PEAL_COUNTER_COUNT), nullptr);
}

}  // namespace
}  // namespace peal::emulator
