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

// Broadcast down a binomial tree, whole: the block's way has at most log2(ranks) hops. Whoever is
// late holds back its own subtree alone, as far as cards hold puts (docs/decisions/0048).
Program binomial_broadcast(uint32_t rank, uint32_t ranks, uint32_t root, void* buffer,
                           uint64_t bytes, const std::vector<Program::Remote>& buffers);

// In round k to rank + 2^k, and from rank - 2^k.
Program dissemination_barrier(uint32_t rank, uint32_t ranks);

// What an allgather works on. In place: `send` is the own block in `receive`.
struct Gathering {
  uint32_t rank = 0;
  uint32_t ranks = 1;
  const void* send = nullptr;
  uint8_t* receive = nullptr;
  uint64_t block_bytes = 0;
  Program::Remote own;                    // as `receive` is known to others
  std::vector<Program::Remote> receives;  // everybody's, by rank
  // Exchanges of up to so many bytes go through everybody's collective buffer, and from there to
  // the user's memory in one copy (Sur, Bondhugula and others, "High Performance RDMA Based
  // All-to-all Broadcast for InfiniBand Clusters": the threshold M_T). 0: none does.
  uint64_t copied_bytes = 0;
  uint8_t* collective = nullptr;  // collective_bytes() long
  std::vector<Program::Remote> collectives;
};
// What the collective buffer of such an allgather has to hold.
uint64_t collective_bytes(uint32_t ranks, uint64_t block_bytes, uint64_t copied_bytes);

// Allgather in log2(ranks) exchanges of all that is held so far: with rank ^ 2^k where ranks are a
// power of two, else from rank + 2^k to rank (Bruck's order, every block at its place).
Program doubling_allgather(const Gathering& gathering);
// Allgather by a ring: each arriving block moves the scheduling pointer by one, and so sends itself
// on to rank + 1. Nothing is copied but the own block.
Program ring_allgather(const Gathering& gathering);

// One rank's block for another.
struct PairBlock {
  const void* from = nullptr;
  uint64_t bytes = 0;
  Program::Remote to;  // there
};
// By pairs: at step k to rank + k, with `window` puts under way at most; each waits for its
// receiver by itself, as far as cards hold puts. `copied` is what is copied
// within this rank before anybody is told that it is ready: what others' blocks will overwrite.
Program pairwise_exchange(uint32_t rank, const std::vector<PairBlock>& blocks, uint32_t window,
                          const std::vector<PairBlock>& copied = {});

// Two programs that are started in turn, each with collective buffers of its own, need no word that
// these are ready, where no rank can end a start before all have begun it. Whoever puts in start
// i + 1 has ended start i, so that the owner has begun start i, and so ended start i - 1, the last
// one that used this buffer. User memory is written by its own rank alone.
struct Collecting {
  uint32_t rank = 0;
  uint32_t ranks = 1;
  const uint8_t* send = nullptr;  // in place: the receive buffer; else, of an allgather, one block
  bool in_place = false;
  uint64_t block_bytes = 0;
  Program::Remote own;            // the receive buffer, as it is known to others
  uint8_t* collective = nullptr;  // as long as the receive buffer
  std::vector<Program::Remote> collectives;
};
// All-to-all by pairs, all of which goes through the collective buffers, and from there to its
// place in one copy.
Program collected_alltoall(const Collecting& collecting);
// Allgather by doubling, the same.
Program collected_allgather(const Collecting& collecting);

// All-to-all by pairs (Kandalla and others, "Improving Parallel 3D FFT Performance using Hardware
// Offloaded Collective Communication"): at step k to rank + k, with `window` puts under way at
// most. `receives`: everybody's receive buffers, by rank.
Program pairwise_alltoall(uint32_t rank, uint32_t ranks, const void* send, uint64_t block_bytes,
                          uint32_t window, const std::vector<Program::Remote>& receives);

}  // namespace peal::host
