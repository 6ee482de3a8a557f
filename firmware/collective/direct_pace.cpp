// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/direct_pace.h"

namespace peal::direct {
namespace {

// Who is the slowest of those that go together, and how many are where it is?
void find_slowest(const Scope& scope) {
  auto& exchange = own_state<Exchange>(scope.operation);
  uint32_t& base = scope.operation.base;
  exchange.slowest = 0;
  for (uint32_t way = 1; way < scope.member.membership.ranks; ++way) {
    const Pair& pair = pair_at(scope, way);
    if (is_over(pair) || (exchange.parted && !has_come(pair))) continue;
    if (exchange.slowest == 0 || pair.base < base) {
      base = pair.base;
      exchange.slowest = 0;
    }
    if (pair.base == base) ++exchange.slowest;
  }
}

}  // namespace

void pace_begin(const Scope& scope) { find_slowest(scope); }

void pace_heard(const Scope& scope) {
  auto& exchange = own_state<Exchange>(scope.operation);
  ++exchange.heard;
  if (!exchange.parted) return;
  if (scope.operation.base != 0) exchange.slowest = 0;
  scope.operation.base = 0;
  ++exchange.slowest;
}

bool pace_passed(const Scope& scope, const Pair& pair, uint32_t before, bool over) {
  auto& exchange = own_state<Exchange>(scope.operation);
  if (before < kPieceWindow && (over || pair.base >= kPieceWindow)) ++exchange.settled;
  if (before == scope.operation.base) --exchange.slowest;
  const bool parts = !exchange.parted && exchange.settled == exchange.heard;
  if (parts) exchange.parted = true;
  if (exchange.slowest != 0 && !parts) return false;
  find_slowest(scope);
  return true;
}

}  // namespace peal::direct
