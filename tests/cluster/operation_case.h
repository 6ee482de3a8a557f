// SPDX-License-Identifier: BSD-2-Clause
// Parameter of tests that do the same to many operations.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "emulator/cluster/operation_plan.h"

namespace peal::sim {

struct OperationCase {
  const char* name;
  OperationPlan operation;
};

inline std::string name_of_case(const testing::TestParamInfo<OperationCase>& info) {
  return info.param.name;
}

}  // namespace peal::sim
