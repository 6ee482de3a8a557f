// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/operation/part_places.h"

#include "firmware/base/assert.h"

namespace peal {
namespace {

bool waits_for_place(const Operation& operation) {
  return operation.phase == OperationPhase::kRunning && operation.verdict == PEAL_STATUS_OK &&
         operation.command.parts != 0 && operation.parts_phase == PartsPhase::kNone;
}

}  // namespace

bool part_place_take(Member& member, Operation& operation) {
  uint8_t place = 0;
  while (place < CONFIG_PART_TABLES && (member.parts_used >> place & 1) != 0) ++place;
  if (place == CONFIG_PART_TABLES || part_place_next(member) != &operation) {
    member.parts_wanted = true;
    return false;
  }
  member.parts_used |= 1u << place;
  operation.parts_place = place;
  return true;
}

void part_place_give_back(Member& member, Operation& operation) {
  PEAL_ASSERT((member.parts_used >> operation.parts_place & 1) != 0);
  member.parts_used &= ~(1u << operation.parts_place);
  operation.parts_phase = PartsPhase::kNone;
}

Operation* part_place_next(Member& member) {
  Operation* next = nullptr;
  for (Operation& operation : member.operations) {
    if (!waits_for_place(operation)) continue;
    if (next == nullptr || operation.sequence < next->sequence) next = &operation;
  }
  return next;
}

}  // namespace peal
