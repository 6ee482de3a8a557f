// SPDX-License-Identifier: BSD-2-Clause
// Persistent requests (MPI-4, 6.13): an operation is described once, and started as often as its
// owner likes. It is a program of the card (persistent_program.h), which has its own iterations;
// or, where a card has no room for one, an operation in a group of its own, of the same ranks. So
// starts of one request are matched with each other alone, and several requests may be started in
// any order. All that a start needs is there from the beginning: memory keys, the program or the
// table of parts, a request, a place in the ring. So it is one entry, whatever the length.
#pragma once

#include <functional>

#include "hostlib/handles.h"
#include "hostlib/persistent_program.h"

namespace peal::host {

// Says what is to be posted in the request's group: that has the parent's rank and size, and goes
// with the request. Under the context's lock.
using DescribePosting = std::function<peal_error(peal_group& group, Posting* posting)>;

// Says what a program is to do instead, and in the posting what all ranks must mean alike. Under
// the context's lock.
using DescribeOperation =
    std::function<peal_error(peal_group& group, Posting* posting, PersistentOperation* operation)>;

// Collective over the parent's ranks, in the order of such calls and of its other operations:
// what ranks must know of each other goes over their cards. It succeeds on all ranks or fails on
// all, with MISMATCH where they mean different operations, roots or lengths. Without the context's
// lock.
peal_error make_persistent(peal_group& parent, const DescribePosting& describe_posting,
                           const DescribeOperation& describe_operation, peal_request** request);

}  // namespace peal::host
