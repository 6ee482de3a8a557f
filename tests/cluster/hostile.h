// SPDX-License-Identifier: BSD-2-Clause
// A host and a wire that mean harm: entries with wrong keys, bounds and handles, frames with every
// field wrong. The card must name each mistake, and nothing outside of the hostile process may
// change.
#pragma once

#include "emulator/cluster/run.h"

namespace peal::sim {

// A host that posts one bad entry after the other, between good operations. Findings: "isolation"
// for memory that was touched, "status" for a wrong answer, "stuck" for none.
[[nodiscard]] Report run_hostile_host();
// A stranger who knows the group and forges frames, with right checksums, one wrong field each.
[[nodiscard]] Report run_hostile_wire();

}  // namespace peal::sim
