// SPDX-License-Identifier: BSD-2-Clause
// How the pairs of a direct exchange go on, each by itself: its next piece but W begins when one is
// over between the two, whatever they have to wait for from others (but for one block for all:
// direct_pace.h). docs/decisions/0017, 0047
#pragma once

#include "firmware/collective/direct_pair.h"

namespace peal::direct {

// Nothing has come or gone.
void open_pairs(const Scope& scope);
// The host's memory is known from now on: own blocks may be sent.
void begin_pairs(const Scope& scope);
// An own block of the pair was begun: the next may be now, or not.
void note_begun(const Scope& scope, uint32_t way, uint32_t number);
// It could not be sent: it begins anew.
void note_put_off(const Scope& scope, uint32_t way, uint32_t number);
// It was sent, and kept where it must be.
void note_sent(const Scope& scope, uint32_t way, uint32_t number);
// A block of the other's has come.
void note_come(const Scope& scope, uint32_t way, uint32_t number);
// One that waited is on its way to the user.
void note_landed(const Scope& scope, uint32_t way, uint32_t number);
// Is there a pair with its bit set in these?
inline bool is_any(const Scope& scope, const uint64_t (&bits)[kPairWords]) {
  uint64_t all = bits[0];
  for (uint32_t word = 1; word < words_of(scope); ++word) all |= bits[word];
  return all != 0;
}
// The next pair, from *way on and around, of which one may. False: there is none.
bool find_ready(const Scope& scope, uint32_t* way);

}  // namespace peal::direct
