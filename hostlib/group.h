// SPDX-License-Identifier: BSD-2-Clause
// Making groups, for whoever makes one that nobody asked for by its name: a persistent request has
// a group of its own (persistent.h).
#pragma once

#include "hostlib/handles.h"

namespace peal::host {

// Where a new group's set-up comes from: the caller and the environment, or another group of the
// same ranks.
struct GroupSource {
  const peal_group_params* params = nullptr;
  const peal_group* parent = nullptr;  // has the word where it is given
};

// As peal_group_begin().
peal_error begin_group(peal_context& context, uint32_t rank, uint32_t size,
                       const GroupSource& source, peal_group_builder** builder);
// The group that is being made; nobody else knows it yet.
peal_group& group_of(peal_group_builder& builder);
// What it is for, as all ranks must say; 0 where nobody says anything.
void set_purpose(peal_group_builder& builder, uint32_t purpose);
// Remembers the first failure with the text that explains it, so that it fails on all ranks.
void note(peal_group_builder& builder, peal_error error);
// Both exchanges. The builder is gone, and the group is made or the error says why not.
peal_error finish_group(peal_group_builder* builder, peal_exchange_callback exchange,
                        void* argument, peal_group** group);

}  // namespace peal::host
