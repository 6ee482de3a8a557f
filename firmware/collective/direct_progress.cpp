// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/direct_progress.h"

#include <bit>
#include <cstring>

#include "firmware/collective/direct_blocks.h"
#include "firmware/collective/direct_pace.h"
#include "firmware/operation/pieces.h"

namespace peal::direct {
namespace {

void drop_first(PieceBits& bits, uint32_t pieces) { bits = static_cast<PieceBits>(bits >> pieces); }

// The rank itself gets the one block for all when it is read for others, if it is.
bool is_driven(const Scope& scope, uint32_t way, uint32_t number) {
  const Membership& self = scope.member.membership;
  if (way != 0 || !is_for_all(scope.operation) || self.ranks == 1) return true;
  return length_for(scope, number, self.rank) == 0;
}

void note_ready(Pairs& pairs, uint32_t way, bool ready) {
  uint64_t& word = pairs.ready[way / 64];
  word = ready ? word | bit_of(way) : word & ~bit_of(way);
}

// May the next own block be sent?
void look_at(const Scope& scope, Pairs& pairs, uint32_t way) {
  const Pair& pair = pairs.of()[way];
  const uint32_t next = next_of(pair);
  if (next - pair.base >= kPieceWindow || !keeps_pace(scope, next)) {
    return note_ready(pairs, way, false);
  }
  note_ready(pairs, way, exchanges(pair, next) && is_driven(scope, way, next));
}

void look_at_all(const Scope& scope) {
  Pairs& pairs = pairs_of(scope);
  for (uint32_t way = 0; way < scope.member.membership.ranks; ++way) look_at(scope, pairs, way);
}

// Pieces that are over between the two, a bit each.
uint32_t done_of(const Pair& pair) {
  return pair.kept & pair.come & ~uint32_t{pair.waits} & ~uint32_t{pair.stored};
}

// The first one is.
[[gnu::noinline]] void pass_done(const Scope& scope, Pairs& pairs, uint32_t way) {
  Pair& pair = pairs.of()[way];
  const auto pieces = static_cast<uint32_t>(std::countr_one(done_of(pair)));
  const uint32_t base = pair.base;
  pair.base += pieces;
  drop_first(pair.begun, pieces);
  drop_first(pair.kept, pieces);
  drop_first(pair.come, pieces);
  drop_first(pair.waits, pieces);
  drop_first(pair.stored, pieces);
  drop_first(pair.lost, pieces);
  const bool over = is_over(pair);
  if (over) {
    --own_state<Exchange>(scope.operation).left;
  } else {
    look_at(scope, pairs, way);
  }
  if (way == 0 || !is_for_all(scope.operation)) return;
  if (pace_passed(scope, pair, base, over)) look_at_all(scope);
}

// Passes what is over between the two. (Mostly the other half is still to come.)
inline void pass(const Scope& scope, Pairs& pairs, uint32_t way) {
  if ((done_of(pairs.of()[way]) & 1) != 0) pass_done(scope, pairs, way);
}

}  // namespace

void open_pairs(const Scope& scope) {
  Pairs& pairs = pairs_of(scope);
  for (uint32_t i = 0, words = words_of(scope); i < words; ++i) {
    pairs.ready[i] = 0;
    pairs.stored[i] = 0;
  }
  pairs.passed = scope.member.membership.ranks;
  Pair fresh = {};
  fresh.pieces = scope.operation.piece_count;
  // (Copied as bytes, of which few instructions do all.)
  for (uint32_t way = 0, ranks = scope.member.membership.ranks; way < ranks; ++way) {
    std::memcpy(&pairs.of()[way], &fresh, sizeof(fresh));
  }
  for (Piece& piece : scope.operation.pieces) piece.own = OwnBlock::kUnread;
}

void begin_pairs(const Scope& scope) {
  if (!has_parts(scope.operation)) {
    own_state<Exchange>(scope.operation).left =
        static_cast<uint16_t>(scope.member.membership.ranks);
  }
  if (is_for_all(scope.operation)) pace_begin(scope);
  look_at_all(scope);
}

void note_begun(const Scope& scope, uint32_t way, uint32_t number) {
  Pairs& pairs = pairs_of(scope);
  Pair& pair = pairs.of()[way];
  set(pair.begun, bit_in(pair, number));
  look_at(scope, pairs, way);
}

void note_put_off(const Scope& scope, uint32_t way, uint32_t number) {
  Pairs& pairs = pairs_of(scope);
  Pair& pair = pairs.of()[way];
  reset(pair.begun, bit_in(pair, number));
  look_at(scope, pairs, way);
}

void note_sent(const Scope& scope, uint32_t way, uint32_t number) {
  Pairs& pairs = pairs_of(scope);
  Pair& pair = pairs.of()[way];
  const PieceBits bit = bit_in(pair, number);
  set(pair.kept, bit);
  // What a rank has for itself has come with that.
  if (way == 0) set(pair.come, bit);
  pass(scope, pairs, way);
}

void note_come(const Scope& scope, uint32_t way, uint32_t number) {
  Pairs& pairs = pairs_of(scope);
  Pair& pair = pairs.of()[way];
  if (is_for_all(scope.operation) && !has_come(pair)) pace_heard(scope);
  set(pair.come, bit_in(pair, number));
  reset(pair.lost, bit_in(pair, number));
  pass(scope, pairs, way);
}

void note_landed(const Scope& scope, uint32_t way, uint32_t number) {
  Pairs& pairs = pairs_of(scope);
  Pair& pair = pairs.of()[way];
  reset(pair.waits, bit_in(pair, number));
  pass(scope, pairs, way);
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
