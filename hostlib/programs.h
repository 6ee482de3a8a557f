// SPDX-License-Identifier: BSD-2-Clause
// Programs of the C API, as the library's own parts see them.
#pragma once

#include "hostlib/handles.h"
#include "hostlib/program.h"

namespace peal::host {

// A program that the library has written. `work` (or none) is memory of its own beside the
// caller's, and goes with it, or at once where it is not committed. Collective, as
// peal_program_commit(). Without the context's lock.
peal_error commit_written(peal_group& group, Program written, const Allocation& work,
                          peal_program** program);
// One iteration of it.
Posting start_of(const peal_program& program);
void delete_program(peal_program* program);

}  // namespace peal::host
