// SPDX-License-Identifier: BSD-2-Clause
// Collectives as programs: what each rank's card has to do, start after start. Whoever puts into
// another's memory waits for that rank's word that it is ready, in each iteration; all that is
// needed from hosts is a start.
#pragma once

#include <vector>

#include "hostlib/program.h"

namespace peal::host {

// Broadcast down a chain, in segments (Morie and others, "Prototyping of Offloaded Persistent
// Broadcast on Tofu2 Interconnect": the single-path pipelined broadcast). root, root + 1, …: each
// arriving segment moves the next card's scheduling pointer by one, and so sends itself on.
// `buffers`: everybody's, by rank; `buffer` the own one. At least one segment.
Program chain_broadcast(uint32_t rank, uint32_t ranks, uint32_t root, void* buffer, uint64_t bytes,
                        uint64_t segment_bytes, const std::vector<Program::Remote>& buffers);

// All-to-all by pairs (Kandalla and others, "Improving Parallel 3D FFT Performance using Hardware
// Offloaded Collective Communication"): at step k to rank + k, with `window` puts under way at
// most. `receives`: everybody's receive buffers, by rank.
Program pairwise_alltoall(uint32_t rank, uint32_t ranks, const void* send, uint64_t block_bytes,
                          uint32_t window, const std::vector<Program::Remote>& receives);

}  // namespace peal::host
