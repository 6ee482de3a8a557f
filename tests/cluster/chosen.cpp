// SPDX-License-Identifier: BSD-2-Clause
#include "tests/cluster/chosen.h"

#include <gtest/gtest.h>

#include "emulator/cluster/arithmetic.h"
#include "hostlib/choice.h"

namespace peal::sim {

OperationPlan chosen(peal_operation operation, uint32_t ranks, uint32_t bytes) {
  host::ChoiceTable table;
  EXPECT_EQ(host::make_choice_table({ranks, remembered_addresses()}, {}, &table), PEAL_OK);
  // What ranks have no common length of is looked up by 0, as in hostlib/collectives.cpp.
  const uint64_t common = host::has_common_bytes(operation) ? bytes : 0;
  return {static_cast<uint8_t>(operation), static_cast<uint8_t>(table.algorithm(operation, common)),
          false, operation == PEAL_OPERATION_BARRIER ? 0 : bytes};
}

}  // namespace peal::sim
