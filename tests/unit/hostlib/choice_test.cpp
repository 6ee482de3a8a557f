// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/choice.h"

#include <gtest/gtest.h>

namespace peal::host {
namespace {

ChoiceTable make(uint32_t size, peal_allgather_algorithm wanted, const char* environment) {
  ChoiceTable table;
  EXPECT_EQ(make_choice_table(size, wanted, environment, &table), PEAL_OK);
  return table;
}

TEST(Choice, SmallBlocksDoubleLargeOnesAreBroadcast) {
  const ChoiceTable table = make(8, PEAL_ALLGATHER_AUTO, nullptr);
  EXPECT_EQ(table.allgather(4), PEAL_ALGORITHM_RECURSIVE_DOUBLING);
  EXPECT_EQ(table.allgather(table.doubling_max_bytes), PEAL_ALGORITHM_RECURSIVE_DOUBLING);
  EXPECT_EQ(table.allgather(table.doubling_max_bytes + 1), PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST);
}

TEST(Choice, ParameterWinsOverEnvironment) {
  const ChoiceTable table = make(8, PEAL_ALLGATHER_ALL_TO_ALL_BROADCAST, "recursive-doubling");
  EXPECT_EQ(table.allgather(4), PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST);
}

TEST(Choice, EnvironmentForcesAnAlgorithm) {
  EXPECT_EQ(make(8, PEAL_ALLGATHER_AUTO, "recursive-doubling").allgather(1 << 20),
            PEAL_ALGORITHM_RECURSIVE_DOUBLING);
  EXPECT_EQ(make(8, PEAL_ALLGATHER_AUTO, "all-to-all-broadcast").allgather(1),
            PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST);
  EXPECT_EQ(make(8, PEAL_ALLGATHER_AUTO, "auto").forced, PEAL_ALLGATHER_AUTO);
  EXPECT_EQ(make(8, PEAL_ALLGATHER_AUTO, "").forced, PEAL_ALLGATHER_AUTO);
}

TEST(Choice, NonsenseIsRefused) {
  ChoiceTable table;
  EXPECT_EQ(make_choice_table(8, PEAL_ALLGATHER_AUTO, "ring", &table), PEAL_ERR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(peal_last_error_text()).find("\"ring\""), std::string::npos);
  EXPECT_EQ(make_choice_table(8, static_cast<peal_allgather_algorithm>(7), nullptr, &table),
            PEAL_ERR_INVALID_ARGUMENT);
}

TEST(Choice, EveryDifferenceChangesTheHash) {
  const uint32_t hash = make(8, PEAL_ALLGATHER_AUTO, nullptr).hash();
  EXPECT_EQ(make(8, PEAL_ALLGATHER_AUTO, nullptr).hash(), hash);
  EXPECT_NE(make(9, PEAL_ALLGATHER_AUTO, nullptr).hash(), hash);
  EXPECT_NE(make(8, PEAL_ALLGATHER_RECURSIVE_DOUBLING, nullptr).hash(), hash);
  ChoiceTable moved = make(8, PEAL_ALLGATHER_AUTO, nullptr);
  moved.doubling_max_bytes++;
  EXPECT_NE(moved.hash(), hash);
}

}  // namespace
}  // namespace peal::host
