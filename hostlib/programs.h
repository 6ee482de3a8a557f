// SPDX-License-Identifier: BSD-2-Clause
// Programs of the C API, as the library's own parts see them.
#pragma once

#include <vector>

#include "hostlib/handles.h"
#include "hostlib/program.h"

namespace peal::host {

// The group is over, and the card has let go of its programs or will: they can only be freed. What
// they lay in is the caller's to release. Under the context's lock.
std::vector<Allocation> orphan_programs(peal_group& group);

// A program that the library has written. `work` (or none) is memory of its own beside the
// caller's, and goes with it, or at once where it is not committed. Collective, as
// peal_program_commit(). Without the context's lock.
peal_error commit_written(peal_group& group, Program written, const Allocation& work,
                          peal_program** program);
// One iteration of it.
Posting start_of(const peal_program& program);
// Gives those of requests that are gone back to the card. Under the context's lock.
void forget_ended_programs(peal_context& context);
void delete_program(peal_program* program);

}  // namespace peal::host
