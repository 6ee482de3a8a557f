// SPDX-License-Identifier: BSD-2-Clause
// Answers to questions for own blocks of a direct exchange: from the channel what is kept, else
// from the user's memory, as long as it is the card's.
#pragma once

#include "firmware/collective/direct_pair.h"

namespace peal::direct {

enum class Answer : uint8_t {
  kRepaired,  // it is on its way again
  kHeld,      // it was sent, but cannot be sent again now
  kNotYet,
  kStale,  // the asker has it, or has nothing to do with it
};

Answer answer(const Scope& scope, uint32_t number, const peal_peer_address& to);

}  // namespace peal::direct
