// SPDX-License-Identifier: BSD-2-Clause
// The eight invariants hold in the real firmware.
// That each of these runs can fail is shown by the mutants.
#include "tests/cluster/invariants.h"

#include <gtest/gtest.h>

#include "tests/cluster/hostile.h"
#include "tests/cluster/plans.h"

namespace peal::sim {
namespace {

class Invariants : public testing::TestWithParam<Invariant> {};

TEST_P(Invariants, Holds) {
  const Report report = GetParam().run();
  EXPECT_TRUE(report.ok) << GetParam().name << "\n" << failures(report);
}

std::string name_of(const testing::TestParamInfo<Invariant>& info) {
  std::string name = std::to_string(info.param.number) + "_" + info.param.name;
  for (char& letter : name)
    if (letter == ' ' || letter == '-') letter = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Design, Invariants, testing::ValuesIn(invariants()), name_of);

TEST(HostileWire, EveryForgedFrameIsDroppedUnderAName) {
  const Report report = run_hostile_wire();
  EXPECT_TRUE(report.ok) << failures(report);
}

}  // namespace
}  // namespace peal::sim
