// SPDX-License-Identifier: BSD-2-Clause
// What is over is given back: memory of the library's own that the card could reach, programs and
// groups. Nobody waits for the card: what it still reads goes later. All under the context's lock,
// but where it is said.
#pragma once

#include <vector>

#include "hostlib/handles.h"

namespace peal::host {

// What the card still reads goes with the next that is left, or with the context. (Where there is
// none, so do those before.) The thread's text stays.
void leave_memory(peal_context& context, const Allocation& memory);
// The same for what peal_alloc() made. Without the lock.
void leave_allocated(peal_context& context, void* memory);

// The card has given up the member.
void drop_table(peal_context& context, AddressTables::Place* table);

// BUSY while the card carries it out. Else it is of no group any more.
peal_error take_back(peal_program& program);
// Gives those of requests that are gone back to the card.
void forget_ended_programs(peal_context& context);

// The group is over, and the card has let go of its programs or will: they can only be freed. What
// they lay in is the caller's to release.
std::vector<Allocation> orphan_programs(peal_group& group);

// Its destroy is over; it is gone.
void forget_group(peal_context& context, peal_group* group);
// Those of persistent requests that are gone.
void forget_ended_groups(peal_context& context);

}  // namespace peal::host
