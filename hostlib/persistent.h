// SPDX-License-Identifier: BSD-2-Clause
// Persistent requests (MPI-4, 6.13): an operation is described once, and started as often as its
// owner likes. Each has a group of its own, of the same ranks, so that starts of one request are
// matched with each other alone, and several requests may be started in any order. All that a
// start needs is there from the beginning: memory keys, the table of parts, a request, a place in
// the ring. So it is one entry, whatever the length.
#pragma once

#include <functional>

#include "hostlib/handles.h"

namespace peal::host {

// Says what is to be posted in the request's group: that has the parent's rank and size, and goes
// with the request. Under the context's lock.
using DescribePosting = std::function<peal_error(peal_group& group, Posting* posting)>;

// Collective over the parent's ranks, in the order of such calls and of its other operations:
// addresses are exchanged by two of its allgathers. It succeeds on all ranks or fails on all, with
// MISMATCH where they mean different operations, roots or lengths. Without the context's lock.
peal_error make_persistent(peal_group& parent, const DescribePosting& describe,
                           peal_request** request);

}  // namespace peal::host
