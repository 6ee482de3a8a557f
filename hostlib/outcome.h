// SPDX-License-Identifier: BSD-2-Clause
// How requests end. Needs the context's lock.
#pragma once

#include <span>
#include <string>

#include "hostlib/handles.h"

namespace peal::host {

// How a finished request ended, explained in the thread's text.
[[gnu::cold]] peal_error explain(const peal_request& request);
inline peal_error outcome(const peal_request& request) {
  return request.result == PEAL_OK ? PEAL_OK : explain(request);
}

// As point-to-point is called in texts: "put to rank 3".
std::string message_title(uint8_t operation, uint32_t rank);

}  // namespace peal::host
