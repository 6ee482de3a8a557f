// SPDX-License-Identifier: BSD-2-Clause
// How an error leaves the library: a code that says what kind, and one text per thread that says
// what was wrong, the value, and what to do. Functions inside return the code and have called
// fail() where they noticed.
#pragma once

#include <cstdint>

#include "abi/status.h"
#include "peal/peal.h"

namespace peal::host {

// Formats the thread's text and returns `error`.
[[gnu::cold, gnu::format(printf, 2, 3)]] peal_error fail(peal_error error, const char* format, ...);
// The same for a failed system call: appends strerror(errno).
[[gnu::cold, gnu::format(printf, 2, 3)]] peal_error fail_errno(peal_error error, const char* format,
                                                               ...);
// A status of the card (enum peal_status) as a code; an unknown one is PEAL_ERR_CARD_ANSWER.
inline peal_error from_status(uint32_t status) {
  return status < PEAL_STATUS_COUNT ? static_cast<peal_error>(status) : PEAL_ERR_CARD_ANSWER;
}
// A command of the library that the card refused: from_status(), and a text that names both.
peal_error refused(const char* command, uint32_t status);
const char* last_error_text();

}  // namespace peal::host
