// SPDX-License-Identifier: BSD-2-Clause
// How requests end. Needs the context's lock.
#pragma once

#include <span>

#include "hostlib/handles.h"

namespace peal::host {

// How a finished request ended, explained in the thread's text.
[[gnu::cold]] peal_error explain(const peal_request& request);
inline peal_error outcome(const peal_request& request) {
  return request.result == PEAL_OK ? PEAL_OK : explain(request);
}

}  // namespace peal::host
