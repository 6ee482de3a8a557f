// SPDX-License-Identifier: BSD-2-Clause
// Error codes and texts; see error.h.
#include "hostlib/error.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "abi/status.h"
#include "base/names.h"

namespace peal::host {
namespace {

constexpr size_t kTextBytes = 512;
thread_local char last_text[kTextBytes] = "";

// The codes of the card keep their numbers through the library.
#define PEAL_ERR_OK PEAL_OK
#define PEAL_SAME_NUMBER(value, symbol, name, text) \
  static_assert(int{PEAL_ERR_##symbol} == (value));
PEAL_STATUSES(PEAL_SAME_NUMBER)
#undef PEAL_SAME_NUMBER

void append_errno(int number) {
  const size_t used = strlen(last_text);
  char buffer[128];
  // The GNU strerror_r: thread-safe, and may return static storage instead of the buffer.
  snprintf(last_text + used, kTextBytes - used, ": %s", strerror_r(number, buffer, sizeof(buffer)));
}

}  // namespace

peal_error fail(peal_error error, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last_text, kTextBytes, format, arguments);
  va_end(arguments);
  return error;
}

peal_error fail_errno(peal_error error, const char* format, ...) {
  const int number = errno;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last_text, kTextBytes, format, arguments);
  va_end(arguments);
  append_errno(number);
  return error;
}

peal_error refused(const char* command, uint32_t status) {
  const peal_error error = from_status(status);
  return fail(error, "%s: the card refused with %s: %s", command, names::status(status).c_str(),
              peal_strerror(error));
}

const char* last_error_text() { return last_text; }

}  // namespace peal::host

extern "C" const char* peal_last_error_text(void) { return peal::host::last_error_text(); }

extern "C" const char* peal_version(void) { return PEAL_VERSION_TEXT; }

extern "C" const char* peal_strerror(peal_error error) {
  switch (error) {
#define PEAL_STATUS_CASE(value, symbol, name, text) \
  case PEAL_ERR_##symbol:                           \
    return text;
    PEAL_STATUSES(PEAL_STATUS_CASE)
#undef PEAL_STATUS_CASE
    case PEAL_ERR_INVALID_ARGUMENT:
      return "an argument makes no sense";
    case PEAL_ERR_NOT_REGISTERED:
      return "the buffer is in no memory from peal_alloc() or peal_register()";
    case PEAL_ERR_NO_MEMORY:
      return "out of memory";
    case PEAL_ERR_SYSTEM:
      return "a system call failed";
    case PEAL_ERR_NO_CARD:
      return "no card under that name";
    case PEAL_ERR_CARD_GONE:
      return "the card died or closed the connection";
    case PEAL_ERR_CARD_ANSWER:
      return "the card's answer makes no sense";
    case PEAL_ERR_OUT_OF_BAND:
      return "the out-of-band exchange failed";
    case PEAL_ERR_PEER_REFUSED:
      return "another rank could not make the group";
    case PEAL_ERR_TIMED_OUT:
      return "still pending after the given time";
    case PEAL_ERR_FORKED:
      return "it belongs to the parent of this process";
  }
  return "unknown error";
}
