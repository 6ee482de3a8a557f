// SPDX-License-Identifier: BSD-2-Clause
// Error codes and texts; see error.h.
#include "hostlib/error.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "abi/status.h"

namespace peal::host {
namespace {

constexpr size_t kTextBytes = 512;
thread_local char last_text[kTextBytes] = "";

// The codes of the card keep their numbers through the library.
static_assert(int{PEAL_ERR_PEER_DEAD} == int{PEAL_STATUS_PEER_DEAD});
static_assert(int{PEAL_ERR_BAD_KEY} == int{PEAL_STATUS_BAD_KEY});
static_assert(int{PEAL_ERR_BAD_RANK} == int{PEAL_STATUS_BAD_RANK});
static_assert(PEAL_STATUS_COUNT == 21, "a new status needs a peal_error and a text");

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

peal_error from_status(uint32_t status) {
  if (status < PEAL_STATUS_COUNT) return static_cast<peal_error>(status);
  return PEAL_ERR_CARD_ANSWER;
}

const char* last_error_text() { return last_text; }

}  // namespace peal::host

extern "C" const char* peal_last_error_text(void) { return peal::host::last_error_text(); }

extern "C" const char* peal_version(void) { return PEAL_VERSION_TEXT; }

extern "C" const char* peal_strerror(peal_error error) {
  switch (error) {
    case PEAL_OK:
      return "success";
    case PEAL_ERR_PEER_DEAD:
      return "a member of the group died";
    case PEAL_ERR_MISMATCH:
      return "ranks disagree";
    case PEAL_ERR_BAD_OPCODE:
      return "the card does not know this operation";
    case PEAL_ERR_BAD_ALGORITHM:
      return "the card does not know this algorithm";
    case PEAL_ERR_BAD_FLAGS:
      return "the card does not know a flag";
    case PEAL_ERR_BAD_GROUP:
      return "the card knows no such group of this context";
    case PEAL_ERR_BAD_SEQUENCE:
      return "not the next operation of the group";
    case PEAL_ERR_BAD_KEY:
      return "the card knows no such memory key of this context";
    case PEAL_ERR_BAD_BOUNDS:
      return "the range leaves its registered memory";
    case PEAL_ERR_BAD_ACCESS:
      return "the memory was not registered for this direction";
    case PEAL_ERR_BAD_LENGTH:
      return "a length that this card cannot do";
    case PEAL_ERR_BAD_ROOT:
      return "no such root rank";
    case PEAL_ERR_TOO_MANY:
      return "too many operations outstanding; wait for some";
    case PEAL_ERR_NO_RESOURCES:
      return "a fixed pool of the card is used up";
    case PEAL_ERR_BUSY:
      return "still in use by a pending operation";
    case PEAL_ERR_CLOSED:
      return "the group was destroyed";
    case PEAL_ERR_DMA_FAULT:
      return "the card could not reach the memory";
    case PEAL_ERR_BAD_VERSION:
      return "the library and the card or driver do not speak the same version";
    case PEAL_ERR_BAD_ADDRESS:
      return "an address or descriptor is unusable";
    case PEAL_ERR_BAD_RANK:
      return "rank or group size out of range";
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
