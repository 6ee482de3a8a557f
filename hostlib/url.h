// SPDX-License-Identifier: BSD-2-Clause
// Names of cards: "emu:PATH[,card=I]" and "char:/dev/pealN".
#pragma once

#include <cstdint>
#include <string>

#include "hostlib/error.h"

namespace peal::host {

struct CardUrl {
  enum class Kind { kSocket, kCharacterDevice } kind = Kind::kSocket;
  std::string path;
  uint32_t card = 0;  // socket only: index within the process
};

peal_error parse_card_url(const char* text, CardUrl* url);

}  // namespace peal::host
