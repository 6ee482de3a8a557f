// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/direct_progress.h"

#include <cstring>

#include "firmware/collective/direct_blocks.h"
#include "firmware/collective/direct_pace.h"
#include "firmware/operation/pieces.h"

namespace peal::direct {
namespace {

PieceBits without_first(PieceBits bits) { return static_cast<PieceBits>(bits >> 1); }

// The rank itself gets the one block for all when it is read for others, if it is.
bool is_driven(const Scope& scope, uint32_t way, uint32_t number) {
  const Membership& self = scope.member.membership;
  if (way != 0 || !is_for_all(scope.operation) || self.ranks == 1) return true;
  return length_for(scope, number, self.rank) == 0;
}

// May the next own block be sent?
void look_at(const Scope& scope, uint32_t way) {
  Pairs& pairs = pairs_of(scope);
  const Pair& pair = pairs.of[way];
  const uint32_t next = next_of(pair);
  const bool ready = next - pair.base < kPieceWindow && keeps_pace(scope, next) &&
                     exchanges(scope, next, rank_at(scope.member.membership, way)) &&
                     is_driven(scope, way, next);
  uint64_t& word = pairs.ready[way / 64];
  word = ready ? word | bit_of(way) : word & ~bit_of(way);
}

void look_at_all(const Scope& scope) {
  for (uint32_t way = 0; way < scope.member.membership.ranks; ++way) look_at(scope, way);
}

// Passes what is over between the two.
void pass(const Scope& scope, uint32_t way) {
  Pair& pair = pair_at(scope, way);
  const uint32_t base = pair.base;
  while ((pair.kept & pair.come & ~(pair.waits | pair.stored) & 1) != 0) {
    ++pair.base;
    pair.begun = without_first(pair.begun);
    pair.kept = without_first(pair.kept);
    pair.come = without_first(pair.come);
    pair.waits = without_first(pair.waits);
    pair.stored = without_first(pair.stored);
    pair.lost = without_first(pair.lost);
  }
  if (pair.base == base) return;
  const bool over = is_over(scope, way);
  if (over) {
    --own_state<Exchange>(scope.operation).left;
  } else {
    look_at(scope, way);
  }
  if (way == 0 || !is_for_all(scope.operation)) return;
  if (pace_passed(scope, pair, base, over)) look_at_all(scope);
}

}  // namespace

void open_pairs(const Scope& scope) {
  Pairs& pairs = pairs_of(scope);
  std::memset(pairs.ready, 0, sizeof(pairs.ready));
  std::memset(pairs.stored, 0, sizeof(pairs.stored));
  std::memset(pairs.of, 0, scope.member.membership.ranks * sizeof(Pair));
  for (Piece& piece : scope.operation.pieces) piece.own = OwnBlock::kUnread;
}

void begin_pairs(const Scope& scope) {
  own_state<Exchange>(scope.operation).left = static_cast<uint16_t>(scope.member.membership.ranks);
  if (is_for_all(scope.operation)) pace_begin(scope);
  look_at_all(scope);
}

void note_begun(const Scope& scope, uint32_t way, uint32_t number) {
  Pair& pair = pair_at(scope, way);
  set(pair.begun, bit_in(pair, number));
  look_at(scope, way);
}

void note_put_off(const Scope& scope, uint32_t way, uint32_t number) {
  Pair& pair = pair_at(scope, way);
  reset(pair.begun, bit_in(pair, number));
  look_at(scope, way);
}

void note_sent(const Scope& scope, uint32_t way, uint32_t number) {
  Pair& pair = pair_at(scope, way);
  const PieceBits bit = bit_in(pair, number);
  set(pair.kept, bit);
  // What a rank has for itself has come with that.
  if (way == 0) set(pair.come, bit);
  pass(scope, way);
}

void note_come(const Scope& scope, uint32_t way, uint32_t number) {
  Pair& pair = pair_at(scope, way);
  if (is_for_all(scope.operation) && !has_come(pair)) pace_heard(scope);
  set(pair.come, bit_in(pair, number));
  reset(pair.lost, bit_in(pair, number));
  pass(scope, way);
}

void note_landed(const Scope& scope, uint32_t way, uint32_t number) {
  Pair& pair = pair_at(scope, way);
  reset(pair.waits, bit_in(pair, number));
  pass(scope, way);
}

bool find_ready(const Scope& scope, uint32_t* way) {
  const Pairs& pairs = pairs_of(scope);
  const uint32_t words = words_of(scope);
  const uint32_t first = *way < scope.member.membership.ranks ? *way : 0;
  uint32_t word = first / 64;
  uint64_t bits = pairs.ready[word] & (~uint64_t{0} << (first % 64));
  for (uint32_t looked = 0; bits == 0; ++looked) {
    if (looked == words) return false;
    word = word + 1 == words ? 0 : word + 1;
    bits = pairs.ready[word];
  }
  *way = 64 * word + static_cast<uint32_t>(std::countr_zero(bits));
  return true;
}

}  // namespace peal::direct
