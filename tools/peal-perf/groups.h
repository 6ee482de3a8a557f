// SPDX-License-Identifier: BSD-2-Clause
// What making and destroying a group takes. The two exchanges in making one are the caller's, and
// wait for the slowest rank: so the time beside them is measured too.
#pragma once

#include "tools/peal-perf/options.h"
#include "tools/peal-perf/report.h"
#include "tools/peal-perf/side.h"

namespace peal::perf {

// Collective. Groups are made `at_once` one after the other, used for a barrier each, and destroyed
// in the same order.
GroupRecord measure_groups(const Job& job, const Options& options);

}  // namespace peal::perf
