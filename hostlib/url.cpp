// SPDX-License-Identifier: BSD-2-Clause
// Parsing of card names; see url.h.
#include "hostlib/url.h"

#include <charconv>
#include <string_view>

namespace peal::host {

peal_error parse_card_url(const char* text, CardUrl* url) {
  const std::string_view all(text);
  *url = CardUrl{};
  if (all.starts_with("char:")) {
    url->kind = CardUrl::Kind::kCharacterDevice;
    url->path = all.substr(5);
  } else if (all.starts_with("emu:")) {
    std::string_view rest = all.substr(4);
    // The option is the last comma's, so that a path may have commas of its own.
    const size_t comma = rest.rfind(",card=");
    if (comma != std::string_view::npos) {
      const std::string_view number = rest.substr(comma + 6);
      const auto [end, bad] =
          std::from_chars(number.data(), number.data() + number.size(), url->card);
      if (bad != std::errc{} || end != number.data() + number.size()) {
        return fail(PEAL_ERR_INVALID_ARGUMENT, "card name \"%s\": card= needs a number", text);
      }
      rest = rest.substr(0, comma);
    }
    url->path = rest;
  } else {
    return fail(PEAL_ERR_INVALID_ARGUMENT,
                "card name \"%s\": expected emu:PATH[,card=I] or char:/dev/pealN", text);
  }
  if (url->path.empty()) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "card name \"%s\": the path is empty", text);
  }
  return PEAL_OK;
}

}  // namespace peal::host
